"""Training during the search over γ: the leave-one-out loss is estimated after each segment, and at the end the best state is restored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut, LeftOutEstimate
from pactrain.rules.gamma.walk import FEWEST_EPOCHS, GammaWalk
from pactrain.runtime import distributed
from pactrain.training.curvature import CurvatureStds
from pactrain.training.history import Record


class Walker:
    """Leads training along a walk, and keeps the state of its best place."""

    def __init__(self, walk: GammaWalk, left_out: LeaveOneOut) -> None:
        self.walk, self.left_out = walk, left_out
        self._best: dict[str, Tensor] | None = None

    def after_epoch(self, curvature: CurvatureStds, epochs: int, *, over: bool, record: Record) -> tuple[bool, Record]:
        """Choose the γ of the next segment if this one is over; returns whether the search has ended, and the record it ends with."""
        walk, place = self.walk, self.walk.here
        if not over and walk.part(epochs) == 1:
            found = self.left_out.estimate(walk.gamma, curvature.drawn) if distributed.rank() == 0 else None
            over = not walk.go_on(LeftOutEstimate(*distributed.document_from_first(found)), epochs)
            if walk.best == place:
                walk.record, self._best = record, _copied(_whole(curvature))
        if over and walk.answers and walk.best != place:  # also in the middle of a segment, with no time for more
            assert self._best is not None
            walk.here, record = walk.best, walk.record
            with torch.no_grad():
                for name, tensor in _whole(curvature).items():
                    tensor.copy_(self._best[name])
            curvature.follow()
        return over, record

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The best state's tensors, if there is one yet, and where the walk is."""
        return self._best or {}, self.walk.state()

    def load(self, best: Mapping[str, Tensor], walk: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.walk.load(walk)
        self._best = _copied(best) if best else None


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: t.detach().clone() for name, t in tensors.items()}


def _whole(curvature: CurvatureStds) -> dict[str, Tensor]:
    return {"prior": curvature.posterior.prior_log_std, **curvature.best()}


@dataclass(frozen=True)
class HeldGamma:
    """The γ that stage 1 is held at first, and what the search for a better one needs.

    Attributes:
        value: That γ.
        left_out: The leave-one-out estimate that the search follows; None for no search.
    """

    value: float
    left_out: LeaveOneOut | None = None

    def search(self, epochs: int, most: float) -> Walker | None:
        """The search with so many epochs at one γ and no larger γ above `most`; None where a segment would be too short."""
        if self.left_out is None or epochs < FEWEST_EPOCHS:
            return None
        return Walker(GammaWalk(self.value, epochs, max(most, self.value)), self.left_out)
