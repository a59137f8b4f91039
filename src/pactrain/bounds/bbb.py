"""Bayes by backprop:  risk + penalty · KL / n.  An objective, not a bound: it certifies nothing."""

from dataclasses import dataclass

from pactrain.bounds.base import Assumptions, Bound


@dataclass(frozen=True)
class BBB(Bound):
    """The variational objective with a weight on the divergence."""

    penalty: float = 1.0

    name = "bbb"
    assumptions = Assumptions(loss="any", prior="any", examples="any")
    certifies = False

    def value(self, risk: float, kl: float) -> float:
        return risk + self.penalty * kl / self.n

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        return 1.0, self.penalty / self.n
