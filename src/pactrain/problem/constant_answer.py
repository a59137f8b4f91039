"""The best constant answer, which does not look at the inputs: a network has to beat its scores."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss, per_row
from pactrain.runtime.gave_up import Refused, gave_up, refusing

LEVELS = 19
"""Quantiles of the targets that are tried, beside their mean: 0.05, 0.10, …, 0.95."""


@dataclass(frozen=True)
class ConstantAnswer:
    """What the best constant answer has on some rows.

    errors:  0-1 error of each row (share of wrong pixels or tokens where a row has several); None for other tasks.
    losses:  loss of each row by the constant that is best in the mean; None where the loss takes no constant.
    several: True if a row has several classes to tell: pixels, tokens.
    targets: the targets of a regression, in their own units.
    """

    errors: Tensor | None
    losses: Tensor | None
    several: bool = False
    targets: Tensor | None = None

    @property
    def error(self) -> float | None:
        """Mean 0-1 error."""
        return None if self.errors is None else float(self.errors.mean())

    @property
    def loss(self) -> float | None:
        """Mean loss."""
        return None if self.losses is None else float(self.losses.mean())

    def clipped(self, limit: float) -> float | None:
        """Mean loss with each row's loss brought to between 0 and `limit`."""
        return None if self.losses is None else float(self.losses.clamp(0, limit).mean())

    def by_squares(self, of: Callable[[Tensor], Tensor]) -> float | None:
        """The smallest mean of a function of a row's squared error that a constant has."""
        if self.targets is None:
            return None
        squares = (per_row((self.targets - level).square()) for level in _levels(self.targets))
        return min(float(of(x).double().mean()) for x in squares)


@torch.no_grad()
def best_constant(
    batches: Batches, loss: Loss, *, like: Tensor | None = None, losses: bool = True
) -> ConstantAnswer | None:
    """The best constant answer on the rows of `batches`; None for a callable, which does not say what its targets are.

    Classification: always the most common class (or set of labels); for the loss, the classes' own shares as probabilities.
    Regression: the best of the mean and the quantiles of the targets.

    like:   an output of the network, in whose shape and type a constant may have to come.
    losses: False leaves out the losses.

    >>> from pactrain.problem.batches import TensorBatches
    >>> from pactrain.problem.named_losses import LOSSES
    >>> rows = TensorBatches((torch.zeros(4, 1), torch.tensor([0, 1, 1, 1])), 4)
    >>> best_constant(rows, LOSSES["cross_entropy"]).error
    0.25
    """
    if loss.task is None:
        return None
    target = torch.cat([loss.target(batch) for batch in batches.ordered()])
    tried = _Tried(loss, like) if losses and loss.plain is loss else None
    if loss.several_labels:
        return _labels(target, tried)
    if loss.task == "regression":
        exact = target.double()
        rows = None if tried is None else tried.rows(_levels(exact), exact)
        return ConstantAnswer(None, rows, targets=exact * loss.unit)
    if target.is_floating_point():
        hard = target.ndim == 1 and torch.equal(target, target.round())
        return _classes(target.long(), tried, loss) if hard else None
    return _classes(target, tried, loss)


def _levels(target: Tensor) -> list[Tensor]:
    """The mean of the targets and their quantiles, each of one row."""
    ordered = target.sort(0).values
    places = [round((len(target) - 1) * (i + 1) / (LEVELS + 1)) for i in range(LEVELS)]
    return [target.mean(0), *(ordered[at] for at in places)]


def _classes(target: Tensor, tried: "_Tried | None", loss: Loss) -> ConstantAnswer:
    counts = torch.bincount(target[target != loss.ignore].clamp(min=0)).double()
    shares = counts / counts.sum()
    wrong = loss.rows((target != int(shares.argmax())).double(), target)
    return ConstantAnswer(wrong, None if tried is None else tried.classes(shares, target), target.ndim > 1)


def _labels(target: Tensor, tried: "_Tried | None") -> ConstantAnswer:
    rows = target.reshape(len(target), -1)
    patterns, counts = rows.unique(dim=0, return_counts=True)
    wrong = (rows != patterns[counts.argmax()]).any(1).double()
    if target.ndim > 2:  # pixels, of which the share that is wrong counts
        wrong = (rows != rows.double().mean().round()).double().mean(1)
    shares = target.double().mean(0).clamp(1e-12, 1 - 1e-12)
    return ConstantAnswer(wrong, None if tried is None else tried.rows([tried.loss.output_at(shares)], target.double()))


@dataclass(frozen=True)
class _Tried:
    """Constant outputs put into a loss: in float64 where it takes that, else as the network's own outputs are."""

    loss: Loss
    like: Tensor | None

    def rows(self, outputs: Sequence[Tensor], target: Tensor) -> Tensor | None:
        """Losses of the rows at the constant output whose mean loss is smallest."""
        shapes = {o.shape for o in outputs} | ({self.like.shape[1:]} if self.like is not None else set())

        def at(dtype: torch.dtype, shape: torch.Size) -> list[Tensor]:
            fitting = [o.to(dtype).reshape(shape) for o in outputs if o.numel() == shape.numel()]
            return [self._losses(o.expand(len(target), *shape), target.to(dtype)) for o in fitting]

        return self._first([partial(at, dtype, shape) for shape in shapes for dtype in self._dtypes()])

    def classes(self, shares: Tensor, target: Tensor) -> Tensor | None:
        """Losses of the rows at the best constant output for classes, each of which has one loss wherever it occurs."""
        number = max(len(shares), 0 if self.like is None or self.like.ndim < 2 else self.like.shape[1])
        padded = torch.nn.functional.pad(shares, (0, number - len(shares)))
        outputs = [padded.log().clamp(min=math.log(1e-12)), torch.zeros_like(padded)]
        outputs.append(torch.nn.functional.one_hot(padded.argmax(), number).double())
        every = torch.arange(number, device=target.device)

        def at(dtype: torch.dtype) -> list[Tensor]:
            tables = [self._losses(o.to(every.device, dtype).expand(number, -1), every) for o in outputs]
            return [self.loss.rows(table[target.clamp(0, number - 1)], target) for table in tables]

        return self._first([partial(at, dtype) for dtype in self._dtypes()])

    def _dtypes(self) -> list[torch.dtype]:
        return list(dict.fromkeys([torch.float64, torch.float64 if self.like is None else self.like.dtype]))

    def _losses(self, output: Tensor, target: Tensor) -> Tensor:
        return per_row(refusing(self.loss.per_example)(output, target)).double()

    def _first(self, ways: Sequence[Callable[[], list[Tensor]]]) -> Tensor | None:
        """The best constant by the first way that the loss takes."""
        refused: Refused | None = None
        for way in ways:
            try:
                found = way()
            except Refused as error:
                refused = error
                continue
            if found:
                return min(found, key=lambda losses: float(losses.mean()))
        if refused is not None:
            gave_up(
                "The loss of the best constant answer is not known", refused, instead="losses are not compared with it"
            )
        return None
