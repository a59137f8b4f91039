"""Per-example losses of networks drawn from the prior: several networks in one pass where they are small."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.modules.conv import _ConvNd

from pactrain.batches import rows
from pactrain.losses import AnyLoss, per_example
from pactrain.posterior import Posterior

WEIGHTS_AT_ONCE, EXAMPLES_AT_ONCE = 2**20, 4096
"""Weights, and examples, of all networks in one pass.  Beyond that the calls that are saved cost less than the cache they take."""

Place = tuple[Tensor, Tensor]  # noise, one entry a weight; log-stds of the prior, one a group


class PriorLosses:
    """Draws prior mean + std·noise and measures them on the same batches.

    `at_once` networks are measured in one pass; what cannot be batched is measured one by one.
    """

    def __init__(self, posterior: Posterior, batches: list[Any], loss: AnyLoss) -> None:
        self.posterior, self.batches, self.loss = posterior, batches, loss
        largest = max((rows(batch) for batch in batches), default=1)
        room = min(WEIGHTS_AT_ONCE // posterior.num_weights, EXAMPLES_AT_ONCE // max(1, largest))
        self.at_once = 1 if convolves(posterior.model) else max(1, room)

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
        if len(places) > 1:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # vmap warns where it would only loop
                    found = self._together(places)
                yield from found
                return
            except Exception:  # a layer or a loss that vmap cannot take; one at a time takes any
                self.at_once = 1
        for noise, log_std in places:
            with self.posterior.prior_draw(log_std, noise) as model:
                losses = [per_example(self.loss, model, batch) for batch in self.batches]
            yield torch.cat(losses).double().cpu().numpy()

    def _together(self, places: list[Place]) -> NDArray[np.float64]:
        posterior, loss = self.posterior, self.loss
        weights = posterior.prior_networks(places)

        def losses(weights: dict[str, Tensor], batch: Any) -> Tensor:
            return per_example(loss, lambda *a, **k: functional_call(posterior.model, weights, a, k), batch)

        found = [vmap(losses, in_dims=(0, None))(weights, batch) for batch in self.batches]
        return torch.cat(found, 1).double().cpu().numpy()


def convolves(model: nn.Module) -> bool:
    """Are there convolutions?  Those of several networks are done one after the other even in one call, and slower."""
    return any(isinstance(module, _ConvNd) for module in model.modules())
