"""The divergence of a posterior from its prior, against torch.distributions and at draws."""

import pytest
import torch
from torch import nn

from pactrain import Posterior
from pactrain.distributions.gaussian import log_density_ratio
from tests.distributions.small_posteriors import moved
from tests.oracle import definitions
from tests.zoo import ZOO


@pytest.mark.parametrize("per", ["model", "layer", "tensor"])
@pytest.mark.parametrize("name", ZOO)
def test_kl_is_that_of_torch_distributions(name: str, per: str) -> None:
    posterior = moved(name, per)
    assert posterior.kl().item() == pytest.approx(definitions.kl(posterior), rel=1e-6)
    assert posterior.kl_by_group().sum().item() == pytest.approx(definitions.kl(posterior), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_divergence_inside_the_block_is_that_of_the_means(dtype: torch.dtype) -> None:
    posterior = Posterior(nn.Linear(3, 2).to(dtype))
    with torch.no_grad():
        posterior.means()[0].add_(0.1)
    before, noise = [p.detach().clone() for p in posterior.means()], posterior.fresh_noise()
    prior = posterior.prior_log_std.detach()
    wanted = posterior.kl_by_group(), posterior.log_ratio(noise, prior)
    with posterior.sampled():
        assert torch.equal(posterior.kl_by_group(), wanted[0])
        assert posterior.log_ratio(noise, prior) == wanted[1]
    assert all(torch.equal(p, b) for p, b in zip(posterior.means(), before, strict=True))


def test_log_density_ratio_averages_to_the_kl() -> None:
    posterior = moved("adapter").double()
    shift, ratios = posterior.mean_shift(), []
    for i in range(4000):
        noise = posterior.fresh_noise(torch.Generator().manual_seed(i))
        h = shift + noise * posterior.log_std.detach().exp()
        args = (h, noise, posterior.log_std.detach(), posterior.prior_log_std.detach(), posterior.group_slices)
        ratios.append(log_density_ratio(*args).item())
    values = torch.tensor(ratios)
    assert values.mean().item() == pytest.approx(posterior.kl().item(), abs=5 * values.std().item() / 4000**0.5)


def test_a_divergence_taken_outside_the_block_has_the_same_gradient_inside() -> None:
    posterior = moved("mlp").double()
    wanted = torch.autograd.grad(posterior.kl(), posterior.log_std)[0]
    kl = posterior.kl()
    with posterior.sampled():
        kl.backward()
    torch.testing.assert_close(posterior.log_std.grad, wanted)
    posterior.zero_grad(set_to_none=True)
    with posterior.sampled():
        kl = posterior.kl()
    kl.backward()
    torch.testing.assert_close(posterior.log_std.grad, wanted)


def test_a_posterior_at_its_prior_has_no_divergence_however_many_weights() -> None:
    assert Posterior(nn.Linear(1000, 1000)).kl().item() == 0.0
