"""The training objective and the constants of the paper's η, from a run's history and its scan of the prior."""

import math
from dataclasses import dataclass

import numpy as np

from tests.oracle.formulas import Array, kl_inverse, n_fold


@dataclass(frozen=True)
class Objective:
    """What was minimised: the rules, the scan logM[std, draw, γ], and the mean loss of the last epoch of stage 1 as the history has it."""

    risk: float
    n: int
    delta: float
    bounded: bool  # the kl bound of a clipped loss; otherwise a bound for unbounded losses
    mode: str
    average: str
    at: str
    nats: float
    gamma_min: float
    gamma_max: float
    gammas: Array
    log_stds: Array
    log_moments: Array

    def psi(self, average: str) -> Array:
        """ψ[std, γ], made non-decreasing in the std."""
        n = self.n if average == "mfold" else 1
        return np.maximum.accumulate(np.array([n_fold(table, n) for table in self.log_moments]), axis=0)

    def k(self, average: str) -> Array:
        """The largest ψ(γ)/γ² for each std."""
        assert self.gamma_min <= self.gammas.min() * (1 + 1e-9)
        assert self.gamma_max >= self.gammas.max() * (1 - 1e-9)
        return np.asarray((self.psi(average) / self.gammas**2).max(1))


def objective_terms(own: Objective, kl: float, prior_log_std: Array) -> dict[str, float]:
    """risk, kl_term and complexity at a divergence and a prior."""
    if own.bounded:
        nats = kl + math.log(2 * math.sqrt(own.n) / own.delta)
        return {"risk": own.risk, "kl_term": kl_inverse(own.risk, nats / own.n) - own.risk, "complexity": 0.0}
    price = (own.nats + kl) / own.n
    where = float(prior_log_std.max() if own.at == "max" else prior_log_std.mean())
    if own.mode == "cgf":
        row = np.array([np.interp(where, own.log_stds, column) for column in own.psi(own.average).T])
        best = int(((price + row) / own.gammas).argmin())
        gamma, complexity = own.gammas[best], row[best] / own.gammas[best]
    else:
        k = float(np.interp(where, own.log_stds, own.k(own.average)))
        gamma = min(max(math.sqrt(price / k), own.gammas[0]), own.gammas[-1])
        complexity = gamma * k
    return {"risk": own.risk, "kl_term": price / float(gamma), "complexity": float(complexity)}


def eta_constants(own: Objective, *, mean: Array, variance: Array, groups: int, largest_kl: float) -> dict[str, float]:
    """The inputs of η but for the objective; means and variances in the units that the network was trained in."""
    return {
        "groups": groups,
        "weights": len(mean),
        "n": own.n,
        "mean_size": float(np.sqrt((mean**2).mean())),
        "mean_variance": float(variance.mean()),
        "largest_kl": largest_kl,
        "largest_k": float(own.k("mean").max()),
        "delta": own.delta,
        "gamma_min": own.gamma_min,
        "gamma_max": own.gamma_max,
    }
