"""What an epoch leaves in the history: the scores of the mean network, and the bound with its terms."""

from collections.abc import Iterable
from typing import Any

from pactrain.batches import Batches
from pactrain.bounds.base import Bound
from pactrain.bounds.unbounded import Unbounded
from pactrain.evaluate import evaluate, measure
from pactrain.losses import AnyLoss
from pactrain.modes import batch_norms, batch_statistics
from pactrain.posterior import Posterior
from pactrain.seeds import derive

Record = dict[str, Any]

HISTORY_EXAMPLES = 2048
"""Rows on which the history is measured each epoch, so that its cost does not grow with the data."""


class Measurement:
    """Measures the same rows of training and test data each time."""

    def __init__(
        self,
        posterior: Posterior,
        bound: Unbounded | Bound,
        loss: AnyLoss,
        *,
        train: Batches,
        test: Batches | None,
        seed: int,
    ) -> None:
        self.posterior, self.bound, self.loss = posterior, bound, loss
        self._train = train.subset(HISTORY_EXAMPLES, derive(seed, "history"))
        self._test = test.subset(HISTORY_EXAMPLES, derive(seed, "history")) if test is not None else None

    def __call__(self, risk: float) -> Record:
        """Everything but where the run is, with the mean `risk` of the epoch's steps."""
        posterior = self.posterior
        kl = float(posterior.kl_by_group().sum())
        total, gamma, kl_term, complexity = self._terms(risk, kl)
        return {
            "risk": risk,
            "train": self._scores(self._train),
            "test": self._scores(self._test) if self._test else None,
            "kl": kl,
            "gamma": gamma,
            "bound": total,
            "kl_term": kl_term,
            "complexity": complexity,
            "prior_std": posterior.prior_std(),
            "posterior_std": posterior.mean_std(),
        }

    def _terms(self, risk: float, kl: float) -> tuple[float, float, float, float]:
        """The bound, γ, and how the bound is made up beside the risk: the divergence's term and the complexity."""
        bound = self.bound
        if isinstance(bound, Unbounded):
            total, gamma, complexity = bound.value(risk, kl, self.posterior.prior_log_std.detach())
            return total, gamma, (bound.nats + kl) / (gamma * bound.n), complexity
        total = bound.value(risk, kl)
        slope_risk, slope_kl = bound.slopes(min(max(risk, 1e-6), 1 - 1e-6), kl)
        return total, slope_risk / (slope_kl * bound.n), total - risk, 0.0

    def _scores(self, view: Iterable[Any]) -> Record:
        model = self.posterior.model
        if batch_norms(model):
            with batch_statistics(model):
                scores = measure(model, view, self.loss)
        else:
            scores = evaluate(model, view, self.loss)
        return {k: v for k, v in scores.items() if k != "n"}
