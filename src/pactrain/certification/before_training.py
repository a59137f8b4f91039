"""Caveats known before training: those that the owner of the data states, and those found in data and network."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from pactrain.certification.caveats import BALANCED, seen_before
from pactrain.certification.prior_check import initial_caveats
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Posterior
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.read import Problem
from pactrain.runtime.arguments import check_texts
from pactrain.runtime.errors import PactrainError
from pactrain.training.options import Options


@dataclass(frozen=True)
class Described:
    """Training data with what its owner knows about it; `fit` takes it in place of the data alone.

    Attributes:
        data: The data, in any form that `fit` takes.
        caveats: Reasons why the assumptions of a certificate may not hold for it; printed with the certificate, and each
            takes labels away.
        test_doubts: Reasons why the test rows are no independent examples; the test set then proves nothing.
        config: Anything to be kept with the configuration of the run.
        preprocess: How raw rows become those of the data (see `runs/prediction.py`); `result.predict` then takes raw rows.
        labels: What the report shows of a held-out row (of a training row, if none is held out) beside its features, by its place.

    Raises:
        PactrainError: `caveats` are no texts, or JSON cannot hold `config`.

    Example:
        >>> Described([1, 2], caveats=["the rows come from one patient"]).caveats
        ['the rows come from one patient']
    """

    data: Any
    caveats: Sequence[str | Caveat] = ()
    test_doubts: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    preprocess: Any = None
    labels: Callable[[int], Mapping[str, str]] | None = None

    def __post_init__(self) -> None:
        check_texts("caveats", self.caveats, (str, Caveat), "'the rows are not independent'")
        check_texts("test_doubts", self.test_doubts, str, "'the rows are not independent'")
        try:
            json.dumps(dict(self.config))
        except (TypeError, ValueError) as error:
            raise PactrainError(f"config must be a mapping that JSON can hold: {error}") from error

    @classmethod
    def of(cls, data: Any) -> "Described":
        """Wrap data that is not described yet.

        Args:
            data: Data in any form that `fit` takes, or a `Described`.

        Returns:
            The `Described` that was given, or one that knows nothing about the data.
        """
        return data if isinstance(data, cls) else cls(data)


def doubts_before_training(model: nn.Module, problem: Problem, options: Options) -> list[Caveat]:
    """Caveats for a network that was trained before, and for a prior whose start has seen the rows that are counted."""
    doubts = seen_before(model)
    counted = None if problem.prior_rows is None else problem.batches
    if problem.blocks:
        counted = problem.blocks[0].joined(problem.blocks[1:])
    if counted is not None:
        initial, constant = Posterior(model, options.prior_spec), best_constant(counted, problem.loss)
        doubts += initial_caveats(initial, counted, problem.loss, constant, seed=options.seed)
    if isinstance(options.class_weight, str):
        doubts.append(BALANCED)
    return doubts
