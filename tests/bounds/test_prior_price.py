"""What a prior chosen by the data costs, against brute force over every choice."""

import math

import numpy as np
import pytest
import torch

from pactrain import Posterior, Prior
from pactrain.bounds.prior_price import priced_prior, step_price
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


def price(k: int, r: int) -> float:
    """−ln of the probability of k steps of 2^−r: proportional to 1/(1 + (k/2^r)²), and one in all."""
    whole = sum(1 / (1 + (i / 2**r) ** 2) for i in range(-(10**6), 10**6 + 1)) + 2 * 4**r / 10**6
    return math.log(whole * (1 + (k / 2**r) ** 2))


@pytest.mark.parametrize(("k", "r"), [(0, 0), (1, 0), (-3, 0), (5, 2), (-40, 5)])
def test_the_price_of_a_step(k: int, r: int) -> None:
    assert step_price(k, r) == pytest.approx(price(k, r), abs=1e-5)


@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_the_cheapest_step_is_taken(noise: float) -> None:
    q = posterior()
    with torch.no_grad():
        for p in q.means():
            p.add_(noise * torch.randn_like(p))
        q.prior_log_std.copy_(torch.linspace(-2.1234, 0.7, len(q.prior_log_std)))
    centres = [-0.5 * math.log(q.model.get_parameter(f"{g}.weight").shape[1]) for g in q.groups]
    ways = []
    for r in range(13):
        steps = [round((own - centre) * 2**r) for own, centre in zip(q.prior_log_std.tolist(), centres, strict=True)]
        rounded = [centre + k / 2**r for centre, k in zip(centres, steps, strict=True)]
        nats = math.log(13) + sum(step_price(k, r) for k in steps)
        ways.append((sum(kl_of_group(q, g, x) for g, x in enumerate(rounded)) + nats, nats, rounded))
    _, nats, rounded = min(ways)
    found = priced_prior(q)
    assert found.name == "dyadic steps"
    assert found.nats == pytest.approx(nats)
    assert found.log_std.tolist() == pytest.approx(rounded, abs=1e-12)
    assert found.log_std.dtype == q.prior_log_std.dtype


def test_all_choices_are_charged() -> None:
    q = posterior()
    before = priced_prior(q)
    q.unit_nats = 1.25
    assert priced_prior(q).nats == pytest.approx(before.nats + 1.25)


def test_groups_are_centred_by_their_largest_tensor() -> None:
    q = Posterior(
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5), torch.nn.Flatten(), torch.nn.Linear(9, 2)), Prior(std=1e-9)
    )
    with torch.no_grad():
        q.prior_log_std.copy_(torch.tensor([-0.5 * math.log(75), -0.5 * math.log(9)]))
    found = priced_prior(q)
    assert found.nats == pytest.approx(math.log(13) + 2 * step_price(0, 0))
    one = Posterior(torch.nn.BatchNorm1d(3), Prior(per="tensor"))  # vectors: one input per unit
    with torch.no_grad():
        one.prior_log_std.fill_(0.0)
        one.log_std.fill_(0.0)
    assert priced_prior(one).log_std.tolist() == [0.0, 0.0]


def test_a_prior_fixed_in_advance_is_free_but_for_other_choices() -> None:
    q = posterior(learn=False)
    found = priced_prior(q)
    assert (found.name, found.nats) == ("fixed in advance", 0.0)
    assert torch.equal(found.log_std, q.prior_log_std)
    assert not found.log_std.requires_grad
    q.unit_nats = 1.25
    assert priced_prior(q).nats == 1.25
