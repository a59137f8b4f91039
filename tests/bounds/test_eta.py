"""The η of the paper as printed."""

import mpmath
import pytest
from mpmath import mpf

from pactrain.bounds.eta import eta_paper


@pytest.mark.parametrize(
    ("gammas", "sizes"), [((0.5, 4.0), (0.03, 0.02)), ((3.0, 30.0), (1e-9, 1e-8)), ((0.1, 7.0), (3.0, 2.0))]
)
def test_eta_as_printed(gammas: tuple[float, float], sizes: tuple[float, float]) -> None:
    (low, high), (size, variance) = gammas, sizes
    found = eta_paper(
        groups=7, weights=900, n=400, mean_size=size, mean_variance=variance,
        largest_kl=33.0, largest_k=5.0, delta=0.04, gamma_min=low, gamma_max=high,
    )  # fmt: skip
    k, d, n, a, b, g1, g2, big_m, big_t = map(mpf, (7, 900, 400, 12, 2, low, high, size, variance))
    l1 = max(d, mpmath.exp(a) * (2 * mpmath.sqrt(d) * big_m + d * big_t)) / 2
    l2 = (2 * d * big_m**2 * mpmath.exp(2 * a) + d * (a + b) / 2) / g1**2
    big_b = (33 + mpmath.log(1 / mpf(0.04))) / (n * g1**2) + 5
    inside = 2 * ((1 / (g1 * n) + g2) * (l1 + l2) + big_b) * max(b + a, 2 * (g2 - g1)) * g1 * n / k
    assert found == pytest.approx(float(k / (g1 * n) * (1 + mpmath.log(inside))), rel=1e-13)
