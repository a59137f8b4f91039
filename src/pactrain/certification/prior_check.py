"""Detecting a prior that has seen the counted examples, by the scores of the network at its mean.

Weights that were trained on the counted examples make every bound that is centred at them void, and nothing in the weights says
so: they may have been copied, loaded from a file, or trained in another process.  But the network at the prior's mean is then
better than it can be by luck: better than the best constant answer, and better than the same network with the entries of each weight
tensor shuffled, which is as random as fresh weights are.  (Fresh weights alone often beat a constant answer: of two classes
that lie apart, half of all random networks do.)
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.certification.feature_check import clearly_better, read_out
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating, restored_values
from pactrain.problem.scores import measure
from pactrain.runtime.seeds import generator

CHANCE = 1e-3
"""Probability with which a network as good as the best constant answer looks better than it."""

SHUFFLES = 200
"""Shuffled networks that a suspicious network has to beat, all of them; the first that is as good clears it."""

EXAMPLES = 500
"""Examples on which shuffled networks are measured."""


def initial_caveats(
    posterior: Posterior, batches: Batches, loss: Loss, constant: ConstantAnswer | None, *, seed: int
) -> list[Caveat]:
    """Judge the network that a training part by part begins with: it may have seen the counted rows before."""
    with evaluating(posterior.model):
        return prior_caveats(posterior, batches, loss, constant, seed=seed, advice="build the network anew")


@torch.no_grad()
def prior_caveats(
    posterior: Posterior,
    batches: Batches,
    loss: Loss,
    constant: ConstantAnswer | None,
    *,
    seed: int,
    advice: str = "use prior_data",
) -> list[Caveat]:
    """A caveat if the network at the prior's mean is better than chance on the counted examples and no source is stated."""
    if posterior.prior_source is not None or constant is None:
        return []
    with _holding(posterior, posterior.prior_mean) as model:
        scores = measure(model, batches.ordered(), loss)
    subset = batches.subset(EXAMPLES, seed)
    if not _better(scores, constant) or not _beats_shuffles(posterior, subset, loss, seed):
        if not _features_know(posterior, subset, loss, seed):
            return []
        return [_suspicion("has features that know more of the counted examples than chance allows", advice)]
    found = f"{100 * scores['accuracy']:.1f} % correct" if "accuracy" in scores else f"loss {scores['loss']:.3g}"
    trivial = f"{100 * (1 - (constant.error or 0)):.1f} %" if "accuracy" in scores else f"{constant.loss or 0:.3g}"
    return [
        _suspicion(
            f"is better on the counted examples than chance allows ({found}; a constant answer: {trivial})", advice
        )
    ]


def _suspicion(what: str, advice: str) -> Caveat:
    return Caveat(
        f"the initial network {what}, so its weights may have been trained on them; {advice}, or, if they come from other data, "
        'say from where (Prior(source="…"))'
    )


def _better(scores: dict[str, float], constant: ConstantAnswer) -> bool:
    """True if a network as good as the constant answer has such scores with a probability of less than `CHANCE`."""
    n = int(scores["n"])
    if "accuracy" in scores and constant.error is not None:
        from scipy.stats import binom

        return bool(binom.cdf(round((1 - scores["accuracy"]) * n), n, constant.error) < CHANCE)
    if (losses := constant.losses) is None:
        return False
    return scores["loss"] < float(losses.mean()) - 3.1 * float(losses.std(correction=0)) / math.sqrt(n)


def _beats_shuffles(posterior: Posterior, subset: list[Any], loss: Loss, seed: int) -> bool:
    """True if the network at the prior's mean beats every one of the same networks with shuffled weights."""
    with _holding(posterior, posterior.prior_mean) as model:
        mine = _badness(model, subset, loss)
    return all(_badness(model, subset, loss) > mine for model in _shuffled_networks(posterior, seed))


def _features_know(posterior: Posterior, subset: list[Any], loss: Loss, seed: int) -> bool:
    """True if the targets can be read out of the last layer's inputs clearly better than from those of every shuffled network.

    Buffers stay as they are: masks and positions are part of what a network is, and shuffled features would be the worse for it.
    """
    with _holding(posterior, posterior.prior_mean) as model:
        found = read_out(model, subset, loss)
    if found is None or not clearly_better(*found):
        return False
    others = (read_out(model, subset, loss) for model in _shuffled_networks(posterior, seed, buffers=False))
    return all(other is not None and clearly_better(found[0], other[0]) for other in others)


def _shuffled_networks(posterior: Posterior, seed: int, *, buffers: bool = True) -> Iterator[nn.Module]:
    """The network at the prior's mean, with the entries of its tensors in other orders."""
    source = generator(posterior.log_std.device, seed, "shuffled priors")
    scales = posterior.units if posterior.units is not None else torch.ones_like(posterior.prior_mean)
    for _ in range(SHUFFLES):
        weights = (posterior.prior_mean / scales).clone()
        for at in posterior.parameter_slices:
            weights[at] = _shuffled(weights[at], source)
        with _holding(posterior, weights * scales) as model, _others_shuffled(posterior, source, buffers=buffers):
            yield model


def _shuffled(values: Tensor, source: torch.Generator) -> Tensor:
    order = torch.randperm(values.numel(), generator=source, device=source.device).to(values.device)
    return values.reshape(-1)[order].view_as(values)


@contextmanager
def _others_shuffled(posterior: Posterior, source: torch.Generator, *, buffers: bool = True) -> Iterator[None]:
    """Inside the block frozen weights and buffers are shuffled too: what a network knows may stand there."""
    random = {id(p) for p in posterior.means()}
    tensors = [*posterior.model.parameters(), *(posterior.model.buffers() if buffers else ())]
    others = [t for t in tensors if id(t) not in random and t.is_floating_point()]
    with restored_values(others):
        for t in others:
            t.copy_(_shuffled(t, source))
        yield


def _badness(model: nn.Module, subset: list[Any], loss: Loss) -> float:
    scores = measure(model, iter(subset), loss)
    return -scores["accuracy"] if "accuracy" in scores else scores["loss"]


@contextmanager
def _holding(posterior: Posterior, weights: Tensor) -> Iterator[nn.Module]:
    """Inside the block the model has these weights, flat; afterwards its own, bit for bit."""
    with posterior.shifted(None):
        for p, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
            p.copy_(weights[at].view_as(p))
        yield posterior.model
