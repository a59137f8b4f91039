"""Bounds for unbounded losses from other papers, with the exponential moment of the scan.  Values are estimates.

sub-Gaussian (Alquier, theorem 5.1):  risk + (ln 1/δ + KL)/(γ n) + γ K_sub
CGF (Rodríguez-Gálvez et al., theorem 9):  risk + ((ln 1/δ + KL)/n + ψ(γ))/γ  with ψ = K_cgf γ²
γ-free CGF:  risk + inf_γ (s + ψ(γ))/γ,  s = (k + ln(π² k² / 6δ))/n,  k = max(1, ⌈KL⌉)
Casado et al. 2024:  risk + inf_γ ((KL + ln(n/δ))/(n − 1) + E_Q Λ_h(γ))/γ
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pactrain.bounds.base import Assumptions, ScalarBound


@dataclass(frozen=True)
class ConstantMoment(ScalarBound):
    """risk + (ln 1/δ + KL)/(γ n) + γ K with one K for the whole run, and the best γ in [gamma_min, gamma_max]."""

    k: float = 1.0
    gamma_min: float = 1e-3
    gamma_max: float = 10.0

    name = "constant_moment"
    assumptions = Assumptions(loss="with the exponential moment K, here estimated")
    certifies = False

    def gamma(self, kl: float) -> float:
        """Choose γ.

        Args:
            kl: KL(posterior ‖ prior) in nats.

        Returns:
            The γ in [gamma_min, gamma_max] that makes the bound smallest.
        """
        ideal = math.sqrt((math.log(1 / self.delta) + kl) / (self.n * max(self.k, 1e-300)))
        return min(max(ideal, self.gamma_min), self.gamma_max)

    def value(self, risk: float, kl: float) -> float:
        gamma = self.gamma(kl)
        return risk + (math.log(1 / self.delta) + kl) / (gamma * self.n) + gamma * self.k

    def slopes(self, risk: float, kl: float) -> tuple[float, float]:
        return 1.0, 1 / (self.gamma(kl) * self.n)


@dataclass(frozen=True)
class SubGaussian(ConstantMoment):
    """The sub-Gaussian bound (Alquier, theorem 5.1).

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        k: The supremum of ψ(γ)/γ² over |γ| ≤ 1, as the paper restricts it: an under-estimate of the true factor.
        gamma_min: Smallest γ.
        gamma_max: Largest γ.

    Example:
        >>> round(SubGaussian(1000, 0.05, k=0.5).value(risk=0.2, kl=20.0), 4)
        0.4145
    """

    name = "subgaussian"


@dataclass(frozen=True)
class CGF(ConstantMoment):
    """The bound of Rodríguez-Gálvez et al. (theorem 9) with ψ(γ) = K γ².

    Attributes:
        n: Number of examples.
        delta: Probability with which the bound may fail.
        k: The supremum of ψ(γ)/γ² over (0, γ2].
        gamma_min: Smallest γ.
        gamma_max: Largest γ, the paper's γ2.

    Example:
        >>> round(CGF(1000, 0.05, k=0.5).value(risk=0.2, kl=20.0), 4)
        0.4145
    """

    name = "cgf_rodriguez"


def gamma_free(risk: float, kl: float, n: int, delta: float, gammas: Sequence[float], psi: Sequence[float]) -> float:
    """Evaluate the CGF bound that holds for all γ at once, at the price of rounding the KL up to a whole number of nats.

    Args:
        risk: Mean loss under the posterior.
        kl: KL(posterior ‖ prior) in nats.
        n: Number of examples.
        delta: Probability with which the bound may fail.
        gammas: Values of γ to choose from.
        psi: ψ at each of them.

    Returns:
        The bound at the best γ.

    Example:
        >>> round(gamma_free(0.2, 20.0, 1000, 0.05, gammas=[0.1, 0.2], psi=[0.005, 0.02]), 4)
        0.4474
    """
    k = max(1, math.ceil(kl))
    s = (k + math.log(math.pi**2 * k**2 / (6 * delta))) / n
    return risk + min((s + p) / g for g, p in zip(gammas, psi, strict=True))


def casado(
    risk: float, kl: float, n: int, delta: float, gammas: Sequence[float], posterior_psi: Sequence[float]
) -> float:
    """Evaluate the bound of Casado et al. (2024) with the posterior's own cumulant function, which can only be estimated.

    Args:
        risk: Mean loss under the posterior.
        kl: KL(posterior ‖ prior) in nats.
        n: Number of examples, at least 2.
        delta: Probability with which the bound may fail.
        gammas: Values of γ to choose from.
        posterior_psi: E_Q Λ_h(γ) at each of them.

    Returns:
        The bound at the best γ.

    Example:
        >>> round(casado(0.2, 20.0, 1000, 0.05, gammas=[0.1, 0.2], posterior_psi=[0.005, 0.02]), 4)
        0.4497
    """
    s = (kl + math.log(n / delta)) / (n - 1)
    return risk + min((s + p) / g for g, p in zip(gammas, posterior_psi, strict=True))
