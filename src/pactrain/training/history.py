"""The history's record of an epoch: the scores of the mean network, and the bound with its terms."""

from collections.abc import Iterable
from typing import Any

from pactrain.bounds.base import Bound
from pactrain.distributions.posterior import Posterior
from pactrain.problem.module_modes import batch_norms, batch_statistics, evaluating
from pactrain.problem.read import Problem
from pactrain.problem.scores import evaluate, measure, own_scores
from pactrain.runtime.seeds import derive

Record = dict[str, Any]

HISTORY_EXAMPLES, FEWEST_EXAMPLES, TRAINING_PART = 2048, 512, 4
"""Most rows on which the history is measured, so that its cost does not grow with the data; of training rows no more than one in
`TRAINING_PART`, unless that leaves too few: an epoch takes three passes over all of them, and a measurement should cost little beside it."""

MEASUREMENTS = 100
"""About how many times the network and its divergence are measured, however many epochs there are: with all data in one batch an epoch is a
single step, and a measurement costs as much."""


def rows_measured(n: int) -> int:
    """Number of training rows, of n, that each measurement uses."""
    return min(n, HISTORY_EXAMPLES, max(FEWEST_EXAMPLES, n // TRAINING_PART))


def epochs_between(epochs: int) -> int:
    """Epochs from one measurement to the next in a training of `epochs`."""
    return max(1, epochs // MEASUREMENTS)


def is_fresh(record: Record) -> bool:
    """True if the scores of a record were measured in its own epoch."""
    return bool(record.get("scores_epoch", record["epoch"]) == record["epoch"])


class Measurement:
    """Measures the same rows of training and test data each time."""

    def __init__(self, posterior: Posterior, bound: Bound, problem: Problem, *, seed: int) -> None:
        self.posterior, self.bound, self.loss, self.metrics = posterior, bound, problem.loss, problem.metrics
        train, test = problem.batches, problem.test
        n = bound.n if train.table is None else len(train.table)
        self._train = train.subset(rows_measured(n), derive(seed, "history"))
        self._test = test.subset(HISTORY_EXAMPLES, derive(seed, "history")) if test is not None else None

    def measure(self, epoch: int) -> Record:
        """The scores of the network as it is, its divergence and stds, and when they were taken."""
        posterior = self.posterior
        return {
            "train": self._scores(self._train),
            "test": self._scores(self._test) if self._test else None,
            "kl": float(posterior.kl_by_group().sum()),
            "prior_std": posterior.prior_std(),
            "posterior_std": posterior.mean_std(),
            "scores_epoch": epoch,
        }

    def __call__(self, risk: float, measured: Record) -> Record:
        """A record without the epoch and the time: the mean `risk` of the epoch's steps, the last measurement, and the bound with its terms."""
        total, gamma, kl_term, complexity = self.bound.terms(
            risk, measured["kl"], self.posterior.prior_log_std.detach()
        )
        terms = {"bound": total, "gamma": gamma, "kl_term": kl_term, "complexity": complexity}
        return {"risk": risk, **measured, **terms}

    def training_errors(self) -> float | None:
        """The share of wrong classes on the training rows that are measured, by the weights that are in place; None without classes."""
        scores = evaluate(self.posterior.model, self._train, self.loss)
        return 1 - scores["accuracy"] if "accuracy" in scores else None

    def _scores(self, view: Iterable[Any]) -> Record:
        model = self.posterior.model
        if batch_norms(model):
            with batch_statistics(model):
                scores = measure(model, view, self.loss) | own_scores(model, view, self.loss, self.metrics)
        else:
            with evaluating(model):
                scores = measure(model, view, self.loss) | own_scores(model, view, self.loss, self.metrics)
        return {k: v for k, v in scores.items() if k != "n"}
