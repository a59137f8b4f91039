"""Predictions for new rows: answers of the trained network, and how much they vary over the posterior."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import EVALUATION_BATCH
from pactrain.problem.call_network import check_plain, scores_of
from pactrain.problem.losses import Meaning
from pactrain.problem.module_modes import evaluating
from pactrain.problem.probabilities import SOFTMAX_LAST, name_of_probabilities
from pactrain.runs.conformal import Calibration, class_scores
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.gave_up import Refused, refusing

NUMBERS_AT_ONCE = 1 << 22
"""Numbers of the inputs that are on their way through the network at a time, in `EVALUATION_BATCH` rows at most."""

DRAWS = 32
"""Networks drawn to measure the spread."""


Call = tuple[tuple[Tensor, ...], dict[str, Any]]
"""Inputs by place, and by name."""


class Preprocess(Protocol):
    """How raw rows become the network's inputs, and what its outputs mean; `data/encoder.py` has the one for tables."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; none for amounts."""

    @property
    def target_mean(self) -> float:
        """What an output of 0 means."""

    @property
    def target_std(self) -> float:
        """What a step of 1 in the output means."""

    def rows(self, raw: Any) -> NDArray[np.float32]:
        """Raw rows as features."""


@dataclass(frozen=True)
class Prediction:
    """What is predicted for new rows; arrays of one entry per row.

    Attributes:
        values: Classes (their names, or numbers from 0), labels (True if there), or amounts in the target's own units.
        probabilities: Of every class or label, by the trained network; None for amounts.
        spread: Standard deviation over networks drawn from the posterior, of the probabilities or the amounts.  It is that of
            the weights alone; noise in the target comes on top.
        low: Lower ends of the intervals, if `coverage` was asked for and amounts are predicted.
        high: Their upper ends.
        sets: Of each class (of one label: its absence and its presence), whether it is in the row's set, if `coverage` was asked
            for.  An empty set says that every class fits worse than classes usually do.
        classes: Names of the classes, in the order of the columns.
        guarantee: What is known about the coverage, with its label.

    Example:
        >>> import pactrain
        >>> X = torch.linspace(-1, 1, 60)[:, None]
        >>> result = pactrain.fit(nn.Linear(1, 1), (X, 2 * X[:, 0]), budget="3 epochs")
        >>> prediction = result.predict(X[:5])
        >>> prediction.values.shape, prediction.spread.shape, prediction.probabilities
        ((5,), (5,), None)
    """

    values: NDArray[Any]
    spread: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    sets: NDArray[np.bool_] | None = None
    classes: tuple[str, ...] = ()
    guarantee: str = ""


@dataclass(frozen=True)
class Predictor:
    """What predictions are made of: a posterior, what its outputs mean, how rows are prepared, and scores of other rows."""

    posterior: Posterior
    answers: Meaning
    preprocess: Preprocess | None
    calibration: Calibration | None

    def __call__(self, rows: Any, *, coverage: float | None, draws: int) -> Prediction:
        """Predict for new rows."""
        if coverage is not None and self.calibration is None:
            raise PactrainError(
                "coverage needs rows that training has not seen: pass test=(X, y) or calibration=(X, y) to fit; and a network that "
                "predicts one class, one label or amounts (not several labels, or what a loss of your own makes of it)"
            )
        outputs, spread = self._measured(rows, draws)
        prepare = self.preprocess
        names = prepare.classes if prepare is not None else ()
        limits = None if coverage is None or self.calibration is None else self.calibration.limits(coverage)
        guarantee = "" if coverage is None or self.calibration is None else self.calibration.guarantee(coverage)
        if self.answers in ("values", "outputs"):
            return self._amounts(outputs.numpy(), spread.numpy(), limits, guarantee)
        to_probabilities = self.posterior.probabilities
        chances = None if to_probabilities is None else to_probabilities(outputs).numpy()
        if self.answers == "labels":
            there = outputs.numpy() > 0 if chances is None else chances > 0.5
            sets = (
                None
                if limits is None
                else (class_scores(outputs, to_probabilities, one_label=True).numpy() <= limits[0])
            )
            return Prediction(_narrow(there), spread.numpy(), chances, sets=sets, classes=names, guarantee=guarantee)
        best = outputs.argmax(-1 if name_of_probabilities(to_probabilities) == SOFTMAX_LAST else 1).numpy()
        sets = None if limits is None else (class_scores(outputs, to_probabilities).numpy() <= limits[0])
        values = np.asarray(names)[best] if names else best
        return Prediction(values, spread.numpy(), chances, sets=sets, classes=names, guarantee=guarantee)

    def _amounts(
        self, outputs: NDArray[Any], spread: NDArray[Any], limits: NDArray[np.float64] | None, guarantee: str
    ) -> Prediction:
        mean, std = (0.0, 1.0) if self.preprocess is None else (self.preprocess.target_mean, self.preprocess.target_std)
        values = _narrow(outputs * std + mean)
        if limits is None:
            return Prediction(values, _narrow(spread * std))
        half = limits * std if values.ndim > 1 else limits[0] * std
        return Prediction(values, _narrow(spread * std), low=values - half, high=values + half, guarantee=guarantee)

    @torch.no_grad()
    def _measured(self, rows: Any, draws: int) -> tuple[Tensor, Tensor]:
        """Outputs of the network in float64, and the spread over draws, some rows at a time."""
        model = self.posterior.model
        raw = rows if self.preprocess is None else self.preprocess.rows(rows)
        outputs: list[Tensor] = []
        spreads: list[Tensor] = []
        with evaluating(model):
            for args, named in _chunks(model, raw):
                answered = scores_of(_answers(model, args, named)).double().cpu()
                outputs.append(finite(answered, sum(map(len, outputs))))
                spreads.append(self.posterior.predict(*args, draws=draws, **named).std.cpu())
        return torch.cat(outputs), torch.cat(spreads)


def _answers(model: nn.Module, args: tuple[Tensor, ...], named: dict[str, Tensor]) -> Any:
    """What the network answers; raises DataError if it does not take the rows, or gives no answer for each."""
    given = (*args, *named.values())
    try:
        output = refusing(model)(*args, **named)
        why = (
            ""
            if len(scores_of(output)) == len(given[0])
            else f"{len(given[0])} rows gave {len(scores_of(output))} answers"
        )
    except Refused as error:
        output, why = None, str(error)
    if why:
        shapes = ", ".join(str(tuple(part.shape)) for part in given)
        raise DataError(
            f"the network does not take inputs of shape {shapes} (rows first, a single one as X[None]): {why}"
        )
    return output


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """One amount per row as a vector."""
    return values.reshape(len(values)) if values.ndim == 2 and values.shape[1] == 1 else values


def finite(output: Tensor, before: int = 0) -> Tensor:
    """The network's answers; raises DataError where one is not a number, with its row, counted after the rows `before`."""
    bad = (~torch.isfinite(output.reshape(len(output), -1))).any(1).nonzero()
    if len(bad):
        raise DataError(
            f"the network's answer to row {before + int(bad[0]) + 1} is not finite: its numbers are too large for it"
        )
    return output


def _chunks(model: nn.Module, rows: Any) -> Iterator[Call]:
    """Inputs some rows at a time, in the network's precision and on its device: positional, and by name."""
    named = isinstance(rows, Mapping) and not hasattr(rows, "to_numpy")
    parts = dict(rows) if named else dict(enumerate(rows if isinstance(rows, tuple) else (rows,)))
    weight = next(p for p in model.parameters() if p.is_floating_point())
    tensors = _as_network_takes(
        model, {key: _tensor(part).to(weight.device) for key, part in parts.items()}, weight.dtype
    )
    count = min(map(len, tensors.values()), default=0)
    if not count or any(len(part) != count for part in tensors.values()):
        raise DataError(
            f"the inputs have {[len(part) for part in tensors.values()]} rows; there must be some, and as many in each"
        )
    numbers = sum(part[0].numel() for part in tensors.values())
    size = min(EVALUATION_BATCH, max(1, NUMBERS_AT_ONCE // max(1, numbers)))
    for start in range(0, count, size):
        yield _call({key: part[start : start + size] for key, part in tensors.items()})


def _call(tensors: dict[Any, Tensor]) -> Call:
    named = {key: part for key, part in tensors.items() if isinstance(key, str)}
    return tuple(part for key, part in tensors.items() if key not in named), named


def _tensor(part: Any) -> Tensor:
    """A tensor, an array, a frame or a nested list as a tensor without NaN or infinity."""
    if isinstance(part, (Dataset, DataLoader)):
        raise DataError(
            f"the inputs are a {type(part).__name__}; pass the inputs alone, without targets, as one tensor, array or frame"
        )
    tensor = part.detach() if isinstance(part, Tensor) else _from_numpy(part)
    check_plain(tensor, "an array of inputs")
    if not tensor.ndim:
        raise DataError(f"the inputs are {part!r:.60}, without rows")
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        row = int((~torch.isfinite(tensor.reshape(len(tensor), -1))).any(1).nonzero()[0])
        raise DataError(
            f"row {row + 1} holds NaN, infinity or a number too large for the network (beyond 3.4e38 after scaling)"
        )
    return tensor


def _from_numpy(part: Any) -> Tensor:
    """A copy in the machine's byte order: torch takes no other, and none that cannot be written."""
    try:
        array = np.asarray(part.to_numpy() if hasattr(part, "to_numpy") else part)
        plain = array.dtype.kind in "biufc" and array.dtype.itemsize <= 8
        return torch.as_tensor(np.array(array, dtype=array.dtype.newbyteorder("=") if plain else np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"the inputs cannot be read as numbers, in one array and without targets: {error}") from error


def _as_network_takes(model: nn.Module, tensors: dict[Any, Tensor], dtype: torch.dtype) -> dict[Any, Tensor]:
    """Floating-point numbers in the network's precision; whole ones too, unless the network takes them as they are, or as int64."""
    tensors = {key: part.to(dtype) if part.is_floating_point() else part for key, part in tensors.items()}
    if all(part.is_floating_point() for part in tensors.values()):
        return tensors
    whole = [key for key, part in tensors.items() if not part.is_floating_point() and not part.is_complex()]
    for tried in (tensors, tensors | {key: tensors[key].long() for key in whole}):
        args, named = _call({key: part[:2] for key, part in tried.items()})
        try:
            with evaluating(model):
                model(*args, **named)
        except (RuntimeError, TypeError, IndexError):  # a network that looks tokens up takes nothing but whole numbers
            continue
        return tried
    return tensors | {key: tensors[key].to(dtype) for key in whole}
