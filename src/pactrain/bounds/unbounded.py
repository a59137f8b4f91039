"""The bound for unbounded losses.

    L(Q, γ, prior std) = risk + (ln(1/δ) + KL) / (γ n) + complexity(γ, prior std)

    mode "paper":  complexity = γ K,      K = sup over γ in [γ1, γ2] of ψ(γ)/γ²,   γ in closed form
    mode "cgf":    complexity = ψ(γ)/γ,                                            γ minimised over the scan's grid

γK ≥ ψ(γ)/γ always, so "cgf" is the tighter one.  γ is chosen and then held constant in the gradient, which is exact at
an interior minimum.  ψ is an estimate from the training data: values of this bound are *estimated*, never certified.
"""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pactrain.bounds.base import Assumptions, Bound
from pactrain.bounds.moment import Average, Moment, gammas_between
from pactrain.bounds.objective import HasDivergence, Objective, Terms
from pactrain.runtime.errors import PactrainError

Mode = Literal["paper", "cgf"]
At = Literal["max", "mean"]


@dataclass(frozen=True)
class Unbounded(Bound):
    """The bound for unbounded losses.

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        moment: The scan of the prior.
        mode: "cgf" or "paper": the two forms of the complexity.
        average: How the moments of the prior's draws are averaged.
        at: Where a layerwise prior reads the scalar table: at its largest std ("max"), or at the geometric mean ("mean").
        gamma_min: Smallest γ.
        gamma_max: Largest γ.
        nats: What stands instead of ln(1/δ); None for ln(1/δ) itself.

    Raises:
        PactrainError: An argument is out of its range, or the scan has no γ between `gamma_min` and `gamma_max`.

    Example:
        >>> from pactrain import Posterior, estimate_moment
        >>> X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
        >>> data, posterior = (X, (X[:, 0] > 0).long()), Posterior(torch.nn.Linear(3, 2))
        >>> bound = Unbounded(n=50, moment=estimate_moment(posterior, data, draws=2))
        >>> terms = bound.terms(risk=0.4, kl=2.0, prior_log_std=posterior.prior_log_std)
        >>> abs(terms.total - (0.4 + terms.kl_term + terms.complexity)) < 1e-12
        True
    """

    _: KW_ONLY
    moment: Moment
    mode: Mode = "cgf"
    average: Average = "mfold"
    at: At = "max"
    gamma_min: float = 0.0
    gamma_max: float = math.inf
    nats: float | None = None

    name = "unbounded"
    assumptions = Assumptions(loss="with the exponential moment ψ, here estimated")
    certifies = False
    holds_gamma = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in ("paper", "cgf") or self.at not in ("max", "mean"):
            raise PactrainError(f"mode={self.mode!r}, at={self.at!r}: use mode 'paper' or 'cgf' and at 'max' or 'mean'")
        _ = self._table  # says now, not at the first call, if the scan has no such γ

    @cached_property
    def confidence_nats(self) -> float:
        """What is paid for confidence: ln(1/δ), or what stands instead of it."""
        return self.nats if self.nats is not None else math.log(1 / self.delta)

    @cached_property
    def gammas(self) -> Tensor:
        """γ that may be chosen."""
        return torch.from_numpy(self.moment.gammas[self._inside])

    @cached_property
    def log_stds(self) -> Tensor:
        """Log-stds that were scanned."""
        return torch.from_numpy(self.moment.log_stds)

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        return gammas_between(self.moment.gammas, self.gamma_min, self.gamma_max)

    @cached_property
    def _table(self) -> Tensor:
        """ψ[std, γ], or K[std, 1]."""
        psi = torch.from_numpy(self.moment.psi(self.average)[:, self._inside])
        return psi if self.mode == "cgf" else (psi / self.gammas**2).amax(1, keepdim=True)

    def __call__(self, losses: Tensor, posterior: HasDivergence) -> Objective:
        risk = losses.mean()
        kl = posterior.kl()
        gamma, complexity = self._gamma_and_complexity(kl.detach(), posterior.prior_log_std)
        total = risk + (self.confidence_nats + kl) / (gamma * self.n) + complexity
        return Objective(total, risk, complexity, kl, gamma)

    def terms(self, risk: float, kl: float, prior_log_std: Tensor) -> Terms:
        exact = torch.tensor(kl, dtype=torch.float64, device="cpu")
        with torch.no_grad():
            gamma, complexity = self._gamma_and_complexity(exact, prior_log_std)
        kl_term = (self.confidence_nats + kl) / (gamma * self.n)
        return Terms(risk + kl_term + float(complexity), gamma, kl_term, float(complexity))

    def kl_weight(self, risk: float, kl: float, held_gamma: float) -> float:
        return 1 / (held_gamma * self.n)

    def at_start(self) -> Tensor:
        """Evaluate the bound at initialisation, where the KL is zero and the risk is the scan's.

        Returns:
            The value for each scanned std.
        """
        price = self.confidence_nats / (self.gammas * self.n)
        if self.mode == "cgf":
            extra = (price + self._table / self.gammas).amin(1)
        else:
            extra = (price + self.gammas * self._table).amin(1)
        return torch.from_numpy(self.moment.loss()) + extra

    def _gamma_and_complexity(self, kl: Tensor, prior_log_std: Tensor) -> tuple[float, Tensor]:
        row = self._read(prior_log_std)
        price = (self.confidence_nats + kl.cpu()) / self.n
        if self.mode == "cgf":
            best = int(torch.argmin((price + row.detach()) / self.gammas))
            gamma = float(self.gammas[best])
            return gamma, (row[best] / gamma).to(prior_log_std.device)
        k = row[0]
        ideal = math.sqrt(float(price) / max(float(k.detach()), 1e-300))
        gamma = min(max(ideal, float(self.gammas[0])), float(self.gammas[-1]))
        return gamma, (gamma * k).to(prior_log_std.device)

    def _read(self, prior_log_std: Tensor) -> Tensor:
        """The table at the prior's stds: linear in log-std between grid points, constant outside."""
        values = prior_log_std.double().cpu()
        where = values.max() if self.at == "max" else values.mean()
        if len(self.log_stds) == 1:
            return self._table[0]
        inside = where.clamp(float(self.log_stds[0]), float(self.log_stds[-1]))
        i = int(torch.searchsorted(self.log_stds, inside.detach()).clamp(1, len(self.log_stds) - 1))
        share = (inside - self.log_stds[i - 1]) / (self.log_stds[i] - self.log_stds[i - 1])
        return torch.lerp(self._table[i - 1], self._table[i], share)
