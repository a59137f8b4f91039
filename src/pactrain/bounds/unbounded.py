"""The bound for unbounded losses.

    L(Q, γ, prior std) = risk + (ln(1/δ) + KL) / (γ n) + complexity(γ, prior std)

    mode "paper":  complexity = γ K,      K = sup over γ in [γ1, γ2] of ψ(γ)/γ²,   γ in closed form
    mode "cgf":    complexity = ψ(γ)/γ,                                            γ minimised over the scan's grid

γK ≥ ψ(γ)/γ always, so "cgf" is the tighter one.  γ is chosen and then held constant in the gradient, which is exact at
an interior minimum.  ψ is an estimate from the training data: values of this bound are *estimated*, never certified.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from pactrain.bounds.moment import Average, Moment, gammas_between
from pactrain.bounds.objective import Objective
from pactrain.distributions.posterior import Posterior
from pactrain.runtime.errors import PactrainError

Mode = Literal["paper", "cgf"]
At = Literal["max", "mean"]


class Unbounded:
    """The bound, ready to be called as an objective.

    n:        number of examples.
    delta:    probability with which the bound may fail.
    moment:   the scan of the prior.
    at:       where a layerwise prior reads the scalar table: at its largest std, or at the geometric mean.
    nats:     what stands instead of ln(1/δ), if anything else should.
    """

    def __init__(
        self,
        n: int,
        delta: float = 0.05,
        *,
        moment: Moment,
        mode: Mode = "cgf",
        average: Average = "mfold",
        at: At = "max",
        gamma_min: float = 0.0,
        gamma_max: float = math.inf,
        nats: float | None = None,
    ) -> None:
        if n < 1:
            raise PactrainError(f"n={n}: the bound needs at least one example")
        if not 0 < delta < 1:
            raise PactrainError(f"delta={delta} must lie strictly between 0 and 1; 0.05 means 95 % confidence")
        if mode not in ("paper", "cgf") or at not in ("max", "mean"):
            raise PactrainError(f"mode={mode!r}, at={at!r}: use mode 'paper' or 'cgf' and at 'max' or 'mean'")
        self.n, self.delta, self.moment = n, delta, moment
        self.mode, self.average, self.at = mode, average, at
        self.nats = nats if nats is not None else math.log(1 / delta)
        inside = gammas_between(moment.gammas, gamma_min, gamma_max)
        psi = torch.from_numpy(moment.psi(average)[:, inside])
        self.gammas = torch.from_numpy(moment.gammas[inside])
        self.log_stds = torch.from_numpy(moment.log_stds)
        self._table = psi if mode == "cgf" else (psi / self.gammas**2).amax(1, keepdim=True)

    def __call__(self, losses: Tensor, posterior: Posterior) -> Objective:
        """The objective at per-example losses (or their mean) under one draw of `posterior`."""
        risk = losses.mean()
        kl = posterior.kl()
        gamma, complexity = self._gamma_and_complexity(kl.detach(), posterior.prior_log_std)
        total = risk + (self.nats + kl) / (gamma * self.n) + complexity
        return Objective(total, risk, complexity, kl, gamma)

    def value(self, risk: float, kl: float, prior_log_std: Tensor) -> tuple[float, float, float]:
        """(bound, γ, complexity) in float64."""
        exact = torch.tensor(kl, dtype=torch.float64)
        with torch.no_grad():
            gamma, complexity = self._gamma_and_complexity(exact, prior_log_std)
        return risk + (self.nats + kl) / (gamma * self.n) + float(complexity), gamma, float(complexity)

    def at_start(self) -> Tensor:
        """The bound at initialisation for each scanned std: there the KL is zero and the risk is the scan's."""
        price = self.nats / (self.gammas * self.n)
        if self.mode == "cgf":
            extra = (price + self._table / self.gammas).amin(1)
        else:
            extra = (price + self.gammas * self._table).amin(1)
        return torch.from_numpy(self.moment.loss()) + extra

    def _gamma_and_complexity(self, kl: Tensor, prior_log_std: Tensor) -> tuple[float, Tensor]:
        row = self._read(prior_log_std)
        price = (self.nats + kl.cpu()) / self.n
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
