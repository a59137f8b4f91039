"""What stands against the numbers of a certificate: reasons in the network, in the data, and in the measuring."""

import math
from collections.abc import Sequence

from torch import Tensor, nn

from pactrain.audit import shared_rows
from pactrain.batches import Batches, BoundRows, PriorRows, TensorBatches
from pactrain.certificate import Statement
from pactrain.modes import batch_norms
from pactrain.posterior import Posterior
from pactrain.risks import Risks

PSI_DRAWS = 20
"""Draws of the prior from which a certificate estimates ψ."""


def model_caveats(model: nn.Module) -> list[str]:
    if batch_norms(model):
        return [
            "BatchNorm's running statistics come from the training data and are not counted in the divergence, so nothing is "
            "certified; convert the network before training with pactrain.models.to_group_norm"
        ]
    return []


def dropout_note(model: nn.Module) -> list[str]:
    layers = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    if any((isinstance(m, layers) and m.p > 0) or _drops_inside(m) for m in model.modules()):
        return ["dropout is switched off in the predictor that these numbers speak of"]
    return []


def _drops_inside(module: nn.Module) -> bool:
    """Attention and recurrent layers keep the rate of their own dropout as a number."""
    rate = getattr(module, "dropout", None)
    return isinstance(rate, float) and rate > 0


def measuring_notes(
    statements: Sequence[Statement], risks: Risks, posterior: Posterior, prior_log_std: Tensor
) -> list[str]:
    notes = []
    kl = float(posterior.kl_by_group(prior_log_std).sum())
    if kl > math.log(PSI_DRAWS):
        notes.append(
            f"the loss bound is estimated from {PSI_DRAWS} draws of the prior, too few to see the rare networks that a "
            f"divergence of {kl:,.0f} nats is about"
        )
    for s in statements:
        if s.bound == "kl" and s.quantity == "0-1 error" and not s.vacuous:
            exact = dict(s.inputs) | {"values": 10**12}
            if s.value - Statement(**{**s.__dict__, "inputs": exact}).recompute() > 0.1 * s.value:
                notes.append(f"measuring with {risks.values:,} draws costs over a tenth of the 0-1 bound; ask for more")
                break
    return notes


def leaks(batches: Batches, held_out: Batches) -> list[str]:
    common = shared_rows(batches, held_out)
    if not common:
        return []
    return [
        f"{common:,} test rows also stand in the training data, so the test set's number is not certified; remove them"
    ]


def check_disjoint(prior_part: PriorRows, bound_part: BoundRows) -> list[str]:
    """Reasons why the part that the prior was trained on may not be separate from the part that is counted."""
    common = shared_rows(prior_part, bound_part)
    return [f"{common:,} rows stand both in the prior's part and in the counted part of the data"] if common else []


def prior_remarks(accuracy: float | None, majority: float | None) -> list[str]:
    """A sign that the initial weights had seen data of this kind: the untrained network is already good."""
    if accuracy is None or majority is None or accuracy < 1 - (1 - majority) / 3:
        return []
    return [
        f"the initial network already names {100 * accuracy:.0f} % rightly: if its weights were trained on these examples, "
        "nothing here is certified; use prior_data, or weights from other data"
    ]


def counting_remarks(batches: Batches) -> list[str]:
    """What is said of an objective that counts augmented copies as examples."""
    if not isinstance(batches, TensorBatches) or batches.counts == 1:
        return []
    return [
        f"the objective that was trained with counted every example {batches.counts} times (heuristic: augmented copies are "
        "not independent examples); apart from the heuristic numbers, everything here counts it once"
    ]
