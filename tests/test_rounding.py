"""What a prior chosen by the data costs, against brute force over every choice."""

import math

import numpy as np
import pytest
import torch

from pactrain import Posterior, Prior
from pactrain.bounds.prior_price import PRIOR_GRID, priced_priors, round_prior, round_prior_dziugaite_roy
from tests.zoo import build


def posterior(*, learn: bool = True) -> Posterior:
    """Two groups with learned scales between grid points, away from the prior; float64."""
    torch.manual_seed(0)
    out = Posterior(build("mlp"), Prior(per="layer", std=0.1, learn=learn)).double()
    with torch.no_grad():
        for p in out.means():
            p.add_(0.1 * torch.randn_like(p))
        out.log_std.sub_(0.4)
        out.prior_log_std.copy_(torch.linspace(-2.1234, -1.0007, len(out.prior_log_std)))
    return out


def kl_of_group(q: Posterior, group: int, prior_log_std: float) -> float:
    """The textbook KL of one group."""
    at = q.group_slices[group]
    means = torch.cat([q.model.get_parameter(n).detach().reshape(-1) for n in q.names])[at]
    shift, s, p = (means - q.prior_mean[at]).numpy(), q.log_std.detach()[at].exp().numpy(), math.exp(prior_log_std)
    return float(((s**2 + shift**2) / (2 * p**2) - 0.5 + np.log(p / s)).sum())


def test_the_grid() -> None:
    np.testing.assert_allclose(PRIOR_GRID, np.linspace(-6, 1, 1401), atol=1e-12)


def test_rounding_to_the_grid() -> None:
    q = posterior()
    rounded, price = round_prior(q)
    own = q.prior_log_std.detach().numpy()
    np.testing.assert_allclose(rounded.numpy(), np.round(own / 0.005) * 0.005, atol=1e-12)
    assert rounded.dtype == q.prior_log_std.dtype
    assert price == pytest.approx(len(own) * math.log(1401))
    with torch.no_grad():
        q.prior_log_std.fill_(7.0)
    assert round_prior(q)[0].tolist() == pytest.approx([1.0] * len(own))


def test_rounding_to_the_scale_of_dziugaite_and_roy() -> None:
    # the third lies between j = 2 and 3, where the price decides; the last above √0.1, where there is one choice alone
    for first in (-2.1234, -1.2, (math.log(0.1) - 0.025) / 2, 2.0):
        q = posterior()
        with torch.no_grad():
            q.prior_log_std[0] = first
        rounded, price = round_prior_dziugaite_roy(q)
        nats = 0.0
        for group, own in enumerate(q.prior_log_std.tolist()):
            j = 100 * (math.log(0.1) - 2 * own)
            tried = {i: (math.log(0.1) - i / 100) / 2 for i in (max(1, math.floor(j)), max(1, math.ceil(j)))}
            price_of = {i: 2 * math.log(i) + math.log(math.pi**2 / 6) for i in tried}
            best = min(tried, key=lambda i: kl_of_group(q, group, tried[i]) + price_of[i])
            nats += price_of[best]
            assert rounded[group].item() == pytest.approx(tried[best], abs=1e-12)
        assert price == pytest.approx(nats)
        assert rounded.dtype == q.prior_log_std.dtype


def test_all_choices_are_charged() -> None:
    q = posterior()
    q.prior_choices, q.unit_nats = 3, 1.25
    ways = priced_priors(q)
    assert list(ways) == ["prior grid", "Dziugaite-Roy"]
    for (log_stds, price), (plain, nats) in zip(
        ways.values(), (round_prior(q), round_prior_dziugaite_roy(q)), strict=True
    ):
        assert torch.equal(log_stds, plain)
        assert price == pytest.approx(nats + math.log(3) + 1.25)


def test_a_prior_fixed_in_advance_is_free_but_for_other_choices() -> None:
    q = posterior(learn=False)
    (log_stds, price) = priced_priors(q)["fixed in advance"]
    assert (price, list(priced_priors(q))) == (0.0, ["fixed in advance"])
    assert torch.equal(log_stds, q.prior_log_std)
    assert not log_stds.requires_grad
    q.prior_choices, q.unit_nats = 3, 1.25
    assert priced_priors(q)["fixed in advance"][1] == pytest.approx(math.log(3) + 1.25)
