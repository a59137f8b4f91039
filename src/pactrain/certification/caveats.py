"""Caveats about the network, the data and the measuring, which limit the label that a certificate's numbers may carry."""

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
from torch import Tensor, nn

from pactrain.certification.data_checks import as_table, by_chance, digest_tensors, row_digests, shared_rows
from pactrain.certification.risks import Risks
from pactrain.certification.statement import FORMULAS, Caveat, Statement
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import batch_norms, own_buffers
from pactrain.runtime.trained_models import TRAINED


def seen_before(model: nn.Module) -> list[Caveat]:
    """A caveat for a network that `fit` has trained in this process."""
    if model not in TRAINED:
        return []
    return [
        Caveat(
            "pactrain trained the network before, so its initial weights may have seen these examples; build it anew"
        )
    ]


def model_caveats(model: nn.Module) -> list[Caveat]:
    """A caveat for running statistics of BatchNorm."""
    if not batch_norms(model):
        return []
    return [
        Caveat(
            "BatchNorm's running statistics come from the training data and are not counted in the divergence; convert "
            "the network before training with pactrain.models.to_group_norm"
        )
    ]


def buffer_caveats(model: nn.Module, before: Mapping[str, Tensor]) -> list[Caveat]:
    """A caveat for buffers that are not what they were before the counted examples were seen.

    Those of BatchNorm have a caveat of their own.
    """
    changed = [
        name
        for name, buffer in own_buffers(model).items()
        if name not in before or digest_tensors([buffer]) != digest_tensors([before[name]])
    ]
    if not changed:
        return []
    return [
        Caveat(
            f"training changed the buffers {', '.join(changed)}, which come from the training data and are not counted in "
            "the divergence; leave out the layers that keep them (spectral_norm, running statistics)"
        )
    ]


def dropout_note(model: nn.Module) -> list[str]:
    """What is said of a network with dropout."""
    layers = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    if any((isinstance(m, layers) and m.p > 0) or _drops_inside(m) for m in model.modules()):
        return ["dropout is switched off in the predictor that these numbers speak of"]
    return []


def _drops_inside(module: nn.Module) -> bool:
    """True for attention and recurrent layers, which keep the rate of their own dropout as a number."""
    rate = getattr(module, "dropout", None)
    return isinstance(rate, float) and rate > 0


def measuring_notes(statements: Sequence[Statement], risks: Risks) -> list[str]:
    """A note if more draws would lower a bound on the 0-1 error by over a tenth."""
    for s in statements:
        measured = s.bound == "kl" and s.quantity == "0-1 error" and not s.vacuous
        if measured and s.value - FORMULAS["kl"](**s.inputs, exactly=True) > 0.1 * s.value:
            return [f"measuring with {int(risks.values):,} draws costs over a tenth of the 0-1 bound; ask for more"]
    return []


def leaks(batches: Batches, held_out: Batches) -> list[str]:
    """Reasons why held-out rows are not independent of the training rows."""
    common = shared_rows(batches, held_out)
    if not common:
        return []
    return [f"{common:,} test rows are also in the training data, so the test set proves nothing; remove them"]


def prior_rows_counted(posterior: Posterior, batches: Batches) -> list[Caveat]:
    """A caveat if rows that the prior's mean was trained on are counted."""
    table = None if posterior.prior_rows is None else as_table(batches)
    if posterior.prior_rows is None or table is None:
        return []
    known = posterior.prior_rows.numpy().view(np.uint64)
    found = np.isin(row_digests(table), known).nonzero()[0].tolist()
    if by_chance(copy(table), table, found):
        return []
    return [
        Caveat(
            f"{len(found):,} rows stand both in the prior's part and in the counted part of the data; count rows that the prior "
            "has not seen, each once"
        )
    ]


BALANCED = Caveat("the class weights were computed from the same training rows", "estimated")


def weight_remarks(loss: Loss) -> list[str]:
    """What is said of a loss that weighs classes or examples."""
    if not loss.name.startswith("weighted_"):
        return []
    return [
        "the loss weighs classes or examples: what is said of the loss is about the weighted one; the 0-1 error counts every "
        "example once"
    ]


def rows_remarks(rows: int | None, n: int) -> list[str]:
    """What is said of a risk that was measured on some of the rows."""
    if rows is None:
        return []
    return [
        f"the risk under noise was measured on {rows:,} of the {n:,} rows, chosen at random: as many as the budget allowed; "
        "nothing is stated about a single drawn network, which needs them all"
    ]


def counting_remarks(batches: Batches) -> list[str]:
    """What is said of an objective that counts augmented copies as examples."""
    if batches.counts == 1:
        return []
    return [
        f"the objective that was trained with counted every example {batches.counts} times (heuristic: augmented copies are "
        "not independent examples); apart from the heuristic numbers, everything here counts it once"
    ]
