"""The randomised predictor's mean and spread against what is known of them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError, Posterior, Prior
from tests.zoo import build, rows


def test_a_linear_layer_has_a_known_spread() -> None:
    posterior = Posterior(nn.Linear(6, 2), Prior(std=0.3))
    x, _ = rows(20)
    mean, std = posterior.predict(x, draws=4000, seed=1)
    expected = 0.3 * (x.square().sum(1, keepdim=True) + 1).sqrt().double()
    torch.testing.assert_close(std, expected.expand(20, 2), rtol=0.05, atol=0)
    error = (mean - posterior.model(x)).abs() / (expected / 4000**0.5)
    assert 1 < error.max() < 4.5  # standard errors: 40 of them


@pytest.mark.parametrize("at_once", [1, 700, 2**20])
def test_the_result_does_not_depend_on_how_many_draws_are_computed_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, (x, _) = Posterior(build("mlp")), rows(20)
    posterior.probabilities = torch.nn.Softmax(1)
    whole = posterior.predict(x, draws=13)
    monkeypatch.setattr("pactrain.distributions.sampling.NUMBERS_AT_ONCE", at_once)
    parts = posterior.predict(x, draws=13)
    torch.testing.assert_close(parts.mean, whole.mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(parts.std, whole.std, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(whole.mean.sum(1), torch.ones(20, dtype=torch.float64))


@pytest.mark.parametrize("name", ["tied", "frozen", "batchnorm", "adapter"])
def test_every_network_can_be_drawn(name: str) -> None:
    model, (x, _) = build(name), rows(20)
    posterior = Posterior(model)
    mean, std = posterior.predict(x, draws=5)
    again = torch.stack([output_of(posterior, x, i) for i in range(5)]).double()
    torch.testing.assert_close(mean, again.mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(std, again.std(0), rtol=1e-4, atol=1e-5)
    assert model.training


def output_of(posterior: Posterior, x: Tensor, index: int, **by_name: Tensor) -> Tensor:
    """The output of one draw, by the way that changes the weights in place."""
    from pactrain.problem.module_modes import evaluating
    from pactrain.runtime.seeds import generator

    with evaluating(posterior.model), posterior.sampled(generator(x.device, 0, "predict", index)) as model:
        output: Tensor = model(**by_name) if by_name else model(x)
        return output.detach()


class Branching(nn.Module):
    """Looks at a value to decide what to do, which cannot be done for many draws at once."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out if float(out.detach().sum()) > 0 else -out


def test_networks_that_cannot_be_vectorised_are_drawn_one_after_another() -> None:
    posterior, (x, _) = Posterior(Branching()), rows(20)
    mean, _ = posterior.predict(x, draws=5)
    torch.testing.assert_close(mean, torch.stack([output_of(posterior, x, i) for i in range(5)]).double().mean(0))


def test_keywords_and_dicts() -> None:
    posterior, (x, _) = Posterior(build("keywords")), rows(20)
    by_name: dict[str, Any] = {"left": x[:, :3], "right": x[:, 3:]}
    alone = torch.stack([output_of(posterior, x, i, **by_name) for i in range(3)]).double()
    torch.testing.assert_close(posterior.predict(**by_name, draws=3).mean, alone.mean(0), rtol=1e-4, atol=1e-5)


def test_mistakes() -> None:
    posterior, (x, _) = Posterior(build("mlp")), rows(20)
    with pytest.raises(PactrainError, match="at least 2"):
        posterior.predict(x, draws=1)
    with posterior.sampled(), pytest.raises(PactrainError, match="outside the block"):
        posterior.predict(x)


def test_after_fit_classifiers_give_probabilities() -> None:
    data: Any = rows(200)
    result = pactrain.fit(build("mlp"), data, budget="60 epochs")
    mean, std = result.posterior.predict(data[0], draws=50)
    torch.testing.assert_close(mean.sum(1), torch.ones(200, dtype=torch.float64))
    assert 0 < std.max() < 0.5
    assert (mean.argmax(1) == data[1]).double().mean() > 0.8
