"""Gradients of single examples: those of many in one pass, and gathered at weights that were picked at random."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from pactrain.distributions.sampling import try_with
from pactrain.problem.call_network import scores_of
from pactrain.runtime.vmap import rows_of_each

MANY_WEIGHTS = 1 << 20
"""Weights from which picking some of them avoids a list of all."""

NUMBERS_AT_ONCE = 1 << 20
"""Numbers in the gradients that are taken in one pass."""


def rows_at_once(weights: int) -> int:
    """Examples whose gradients for so many weights are taken in one pass; 0 or 1 where they are taken one by one."""
    return NUMBERS_AT_ONCE // max(1, weights)


def picked_weights(count: int, source: torch.Generator, most: int) -> Tensor:
    """Which of `count` weights are looked at, in order."""
    if count <= MANY_WEIGHTS:
        return torch.randperm(count, generator=source)[:most].sort().values
    chance = np.random.default_rng(int(torch.randint(2**31, (1,), generator=source)))
    return torch.from_numpy(np.sort(chance.choice(count, most, replace=False, shuffle=False)))


class PickedWeights:
    """Where the picked weights, numbered through all parameters, stand in each parameter."""

    def __init__(self, params: Sequence[nn.Parameter], kept: Tensor) -> None:
        edges = torch.tensor([0, *itertools.accumulate(p.numel() for p in params)], device="cpu")
        self._cuts = torch.searchsorted(kept, edges).tolist()
        self._places = [
            (kept[a:b] - start).to(p.device)
            for p, (a, b), start in zip(params, itertools.pairwise(self._cuts), edges.tolist(), strict=False)
        ]

    def gather(self, gradients: Sequence[Tensor | None], out: Tensor) -> None:
        """Write gradients to `out`, which has a row per example and a column per picked weight.

        Args:
            gradients: Of each parameter, with the examples in front; None where the parameter does not matter.
            out: Overwritten.
        """
        out.zero_()
        for g, at, (a, b) in zip(gradients, self._places, itertools.pairwise(self._cuts), strict=True):
            if g is not None:
                out[:, a:b] = g.reshape(len(out), -1).index_select(1, at)


def own_weights(weights: Mapping[str, Tensor], examples: int) -> dict[str, Tensor]:
    """Weights of each example's own, so that one ordinary backward pass gives the gradients of each.

    (`torch.func.grad`, and some losses under vmap, would import torch's compiler, which takes longer than all the rest.)
    """
    return {name: w.detach().expand(examples, *w.shape).requires_grad_() for name, w in weights.items()}


def with_own_weights(model: nn.Module, own: Mapping[str, Tensor]) -> Callable[..., Tensor]:
    """The network, called with a batch, each row of which goes through weights of its own; uses vmap."""

    def one(weights: dict[str, Tensor], *example: Tensor) -> Tensor:
        return scores_of(try_with(model, weights, tuple(t[None] for t in example)))

    return lambda *inputs: rows_of_each(one, own, *inputs)
