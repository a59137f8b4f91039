"""Bayes by backprop:  risk + penalty · KL / n.  An objective, not a bound: it certifies nothing."""

from dataclasses import dataclass

from pactrain.bounds.base import Assumptions, ScalarBound


@dataclass(frozen=True)
class BBB(ScalarBound):
    """The variational objective with a weight on the divergence: an objective, not a bound.

    Attributes:
        n: Number of examples.
        delta: Not used; every bound has one.
        penalty: Weight of the KL; 1 is ordinary variational Bayes for a negative log-likelihood.

    Example:
        >>> BBB(1000, penalty=0.1).value(risk=0.2, kl=500.0)
        0.25
    """

    penalty: float = 1.0

    name = "bbb"
    assumptions = Assumptions(loss="any", prior="any", examples="any")
    certifies = False

    def value(self, risk: float, kl: float) -> float:
        return risk + self.penalty * kl / self.n

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        return 1.0, self.penalty / self.n
