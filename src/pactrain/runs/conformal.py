"""Intervals and sets with a stated coverage: split conformal prediction from rows that training has not seen.

With scores s₁ … sₙ of n such rows, a new row's score is at most the ⌈(n + 1) · coverage⌉-th smallest of them with at least that
probability, whatever the distribution and the network, if all n + 1 rows are exchangeable.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating
from pactrain.runs.weight_files import weights_of
from pactrain.runtime.arguments import check_share
from pactrain.runtime.files import save_state
from pactrain.runtime.untrusted import made_from

FILE = "calibration.safetensors"


@dataclass(frozen=True)
class Calibration:
    """Scores of rows that training has not seen.

    Attributes:
        scores: One row per example: 1 − the probability of its class, or the absolute error of each of its numbers.
        source: Which rows they are.
        doubts: Why the rows are not exchangeable with new ones; coverage is then not guaranteed.
    """

    scores: Tensor
    source: str
    doubts: tuple[str, ...] = ()

    def limits(self, coverage: float) -> NDArray[np.float64]:
        """What the scores of a new row stay below with this probability, one limit per number; infinite if the rows are too few."""
        return _limit(self.scores.double().numpy(), coverage)

    def guarantee(self, coverage: float) -> str:
        """What is known about intervals or sets of this coverage, with its label."""
        what = f"{100 * coverage:g} % coverage from {len(self.scores):,} {self.source} (split conformal)"
        if np.isinf(self.limits(coverage)).all():
            what += ", so few that every interval is infinite and every set full"
        if self.doubts:
            return f"heuristic: {what}; {'; '.join(self.doubts)}"
        return f"certified: {what}, on average over such rows, for new rows from the same source"

    def save(self, folder: Path) -> str:
        """Keep it in a run folder; returns the digest of the file."""
        return save_state(folder / FILE, {"scores": self.scores}, {"source": self.source, "doubts": list(self.doubts)})

    @classmethod
    def load(cls, folder: Path) -> "Calibration | None":
        """What a run folder holds; None if it holds none."""
        if not (folder / FILE).exists():
            return None
        tensors, values = weights_of(folder, FILE)
        return made_from(
            folder / FILE, lambda v: cls(tensors["scores"], str(v["source"]), tuple(map(str, v["doubts"]))), values
        )


def class_scores(
    output: Tensor, to_probabilities: Callable[[Tensor], Tensor] | None, *, one_label: bool = False
) -> Tensor:
    """Scores of all classes for each row: 1 − probability, by softmax where the loss knows no probabilities; of one label, those of
    its absence and its presence."""
    chances = output.double().softmax(1) if to_probabilities is None else to_probabilities(output.double())
    return torch.stack([chances.reshape(-1), 1 - chances.reshape(-1)], dim=1) if one_label else 1 - chances


@torch.no_grad()
def calibrated(
    model: nn.Module, batches: Batches, loss: Loss, *, source: str, doubts: tuple[str, ...] = ()
) -> Calibration | None:
    """Score rows that training has not seen; None where outputs are neither single classes or labels nor numbers."""
    if loss.meaning == "outputs" or not loss.of_outputs:
        return None
    scores = []
    with evaluating(model):
        for batch in batches.ordered():
            output, target = loss.read(model, batch)
            if loss.meaning == "values":
                scores.append((output.reshape(target.shape) - target).double().abs().reshape(len(target), -1))
                continue
            one_label = loss.meaning == "labels" and target.numel() == len(target) == output.numel()
            if one_label and bool(((target == 0) | (target == 1)).all()):
                target = target.reshape(-1).long()
            elif loss.meaning == "labels" or output.ndim != 2 or target.is_floating_point():
                return None
            known = target != loss.plain.ignore
            each = class_scores(output, loss.probabilities, one_label=one_label)[known]
            scores.append(each.gather(1, target[known, None]))
    return Calibration(torch.cat(scores).cpu(), source, doubts)


def conformal_quantiles(
    calibration: tuple[Any, Any, Any], new: tuple[Any, Any], *, coverage: float = 0.9
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Widen (or narrow) predicted quantiles until they hold what they say.

    Args:
        calibration: Low quantiles, high quantiles and true values of rows that training has not seen.
        new: Low and high quantiles of new rows.
        coverage: Probability with which a new row's value is to lie inside.

    Returns:
        Low and high ends of the intervals of the new rows.

    Raises:
        PactrainError: `coverage` is not between 0 and 1, or there are too few rows for it.

    Example:
        >>> import numpy as np
        >>> y = np.arange(99.0)
        >>> low, high = conformal_quantiles((y * 0 + 40, y * 0 + 60, y), (np.array([40.0]), np.array([60.0])), coverage=0.9)
        >>> float(low[0]), float(high[0])
        (5.0, 95.0)
    """
    low, high, true = (np.asarray(part, dtype=np.float64).reshape(-1) for part in calibration)
    limit = float(_limit(np.maximum(low - true, true - high)[:, None], coverage)[0])
    return np.asarray(new[0], dtype=np.float64) - limit, np.asarray(new[1], dtype=np.float64) + limit


def _limit(scores: NDArray[np.float64], coverage: float) -> NDArray[np.float64]:
    """The ⌈(n + 1) · coverage⌉-th smallest score of each column."""
    share = check_share("coverage", coverage, "0.9 means nine new rows in ten")
    rank = math.ceil(round((len(scores) + 1) * share, 9))
    if rank > len(scores):
        return np.full(scores.shape[1], np.inf)
    limits: NDArray[np.float64] = np.sort(scores, axis=0)[rank - 1]
    return limits
