"""What a posterior says of weights in units."""

import pytest
import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.rules.choose_units import BASE
from tests.rules.raw_tables import perceptron


def moved(model: nn.Module) -> Posterior:
    """A posterior away from its prior."""
    posterior = Posterior(model)
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in (*posterior.means(), posterior.log_std):
            p.add_(0.1 * torch.randn(p.shape, generator=source))
    return posterior


def in_units(posterior: Posterior) -> dict[str, Tensor]:
    scales = {"0.weight": torch.pow(BASE, torch.arange(-2.0, 2.0)).expand(20, 4), "2.bias": torch.full((3,), 16.0)}
    with torch.no_grad():
        for name, scale in scales.items():
            posterior.model.get_parameter(name).mul_(scale)
    posterior.change_units(scales)
    return scales


def test_the_divergence_and_its_gradients_are_those_of_the_weights_in_their_units() -> None:
    posterior, plain = moved(perceptron()), moved(perceptron())
    scales = in_units(posterior)
    assert posterior.kl().item() == pytest.approx(plain.kl().item(), rel=1e-5)
    assert torch.allclose(posterior.kl_by_group(), plain.kl_by_group(), rtol=1e-5)
    noise = plain.fresh_noise(torch.Generator().manual_seed(0))
    prior = plain.prior_log_std.detach()
    assert posterior.log_ratio(noise, prior) == pytest.approx(plain.log_ratio(noise, prior), rel=1e-4)
    for one in (posterior, plain):
        one.kl().backward()
    assert torch.allclose(posterior.log_std.grad, plain.log_std.grad, rtol=1e-3, atol=1e-4)  # type: ignore[arg-type]
    for name in posterior.names:
        found, expected = (one.model.get_parameter(name).grad for one in (posterior, plain))
        assert found is not None
        assert expected is not None
        assert torch.allclose(found * scales.get(name, torch.ones(())), expected, rtol=1e-4, atol=1e-5)


def test_draws_of_prior_and_posterior_are_the_same_networks() -> None:
    posterior, plain = moved(perceptron()), moved(perceptron())
    scales = in_units(posterior)
    noise, prior = plain.fresh_noise(torch.Generator().manual_seed(0)), plain.prior_log_std.detach()
    with posterior.prior_draw(prior, noise), plain.prior_draw(prior, noise):
        for name in plain.names:
            own = plain.model.get_parameter(name) * scales.get(name, torch.ones(()))
            assert torch.allclose(posterior.model.get_parameter(name), own, rtol=1e-5)
    stacked, expected = (one.prior_networks([(noise, prior)]) for one in (posterior, plain))
    for name in plain.names:
        assert torch.allclose(stacked[name], expected[name] * scales.get(name, torch.ones(())), rtol=1e-5)
    drawn, theirs = (one.draw(torch.Generator().manual_seed(1)) for one in (posterior, plain))
    for name in plain.names:
        assert torch.allclose(drawn[name], theirs[name] * scales.get(name, torch.ones(())), rtol=1e-4)


def test_units_go_with_the_state_dict() -> None:
    posterior, other = moved(perceptron()), Posterior(perceptron())
    in_units(posterior)
    posterior.unit_nats = 3.5
    other.load_state_dict(posterior.state_dict())
    assert other.kl().item() == pytest.approx(posterior.kl().item())
    assert other.unit_nats == 3.5


def test_stds_that_are_set_are_in_the_units_of_their_weights() -> None:
    posterior = Posterior(perceptron())
    in_units(posterior)
    posterior.reset_std(0.1)
    assert posterior.kl().item() == pytest.approx(0.0, abs=1e-3)
