"""Per-example losses of networks drawn from the prior: several networks in one pass where they are small."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.sampling import try_with
from pactrain.problem.call_network import scores_of
from pactrain.problem.losses import Loss, per_example
from pactrain.runtime.vmap import Together, rows_of_each

WEIGHTS_AT_ONCE, EXAMPLES_AT_ONCE = 2**20, 4096
"""Weights, and examples, of all networks in one pass.  Beyond that the calls that are saved cost less than the cache they take."""

Place = tuple[Tensor, Tensor]  # noise, one entry per weight; log-stds of the prior, one per group


class PriorLosses:
    """Draws prior mean + std·noise and measures them on the same batches.

    `at_once` networks are measured in one pass; what cannot be batched is measured one by one.
    """

    def __init__(self, posterior: Posterior, batches: list[Any], loss: Loss) -> None:
        self.posterior, self.batches, self.loss = posterior, batches, loss
        self.at_once = 1
        if loss.of_outputs and all(map(is_plain, batches)) and not convolves(posterior.model):
            largest = max((len(batch[-1]) for batch in batches), default=1)
            room = min(WEIGHTS_AT_ONCE // posterior.num_weights, EXAMPLES_AT_ONCE // max(1, largest))
            self.at_once = max(1, room)

    @torch.no_grad()
    def at(self, places: Iterable[Place]) -> Iterator[NDArray[np.float64]]:
        """The losses at each place, in its order."""
        waiting: list[Place] = []
        for place in places:
            waiting.append(place)
            if len(waiting) >= self.at_once:
                yield from self._measured(waiting)
                waiting = []
        yield from self._measured(waiting)

    def _measured(self, places: list[Place]) -> Iterator[NDArray[np.float64]]:
        several = len(places) > 1
        either = Together("Losses of several networks of the prior were", tried=several)
        yield from either(lambda: self._together(places), lambda: self._one_by_one(places))
        if several and not either.tried:
            self.at_once = 1

    def _one_by_one(self, places: list[Place]) -> Iterable[NDArray[np.float64]]:
        for noise, log_std in places:
            with self.posterior.prior_draw(log_std, noise) as model:
                losses = [per_example(self.loss, model, batch) for batch in self.batches]
            yield torch.cat(losses).double().cpu().numpy()

    def _together(self, places: list[Place]) -> Iterable[NDArray[np.float64]]:
        """All networks' outputs at once, then the loss of all their examples as if they were those of one network."""
        model, weights, found = self.posterior.model, self.posterior.prior_networks(places), []
        loss = self.loss.guarded()

        def predict(*inputs: Tensor) -> Tensor:
            return rows_of_each(lambda own: scores_of(try_with(model, own, inputs)), weights)

        for *inputs, target in self.batches:
            repeated = target.repeat(len(places), *(1 for _ in target.shape[1:]))
            found.append(per_example(loss, predict, (*inputs, repeated)).view(len(places), -1))
        return list(torch.cat(found, 1).double().cpu().numpy())


def is_plain(batch: Any) -> bool:
    """True for (inputs, …, target), all of them tensors with one row per example."""
    if type(batch) not in (tuple, list) or len(batch) < 2:
        return False
    return all(isinstance(t, Tensor) and t.ndim and len(t) == len(batch[-1]) for t in batch)


def convolves(model: nn.Module) -> bool:
    """True if the network has convolutions.  vmap computes those of several networks one after the other, and slower."""
    return any(isinstance(module, _ConvNd) for module in model.modules())
