"""`fit` from end to end: every network, loss, bound and optimiser."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError
from pactrain.rules.presets import AUTO, PRESETS
from tests.zoo import ZOO, Normed, build, rows

SHORT = "6 epochs"
FAST = AUTO.replace(lr=5e-2)


def weights(model: nn.Module) -> Tensor:
    """All weights of a network as one vector."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ZOO)
def test_every_network_with_every_preset(name: str, preset: str) -> None:
    model, data, loss = build(name), ZOO[name][1](), ZOO[name][2]
    model.train()
    frozen = {n: p.clone() for n, p in model.named_parameters() if not p.requires_grad}
    result = pactrain.fit(model, data, loss=loss, preset=preset, budget=SHORT)
    assert result.model is model
    assert all(m.training for m in model.modules())
    assert len(result.history) == result.metrics["stage1_epochs"] + result.metrics["stage2_epochs"] <= 6
    assert all(np.isfinite(r["bound"]) for r in result.history)
    assert result.certificate.recheck()
    assert result.metrics["train"]["n"] == result.certificate.n == (20 if name == "graph" else 48)
    assert result.metrics["scan"]["of"] == result.certificate.n
    assert all(torch.equal(p, frozen[n]) for n, p in model.named_parameters() if n in frozen)
    assert bool(result.certificate.caveats) == (name == "batchnorm")


@pytest.mark.parametrize("loss", ["mse", "l1", "huber", "log_cosh", "quantile", "quantile:0.8"])
def test_regression_losses_learn(loss: str) -> None:
    x, _ = rows(200)
    y = x[:, 0] - 2 * x[:, 1]
    result = pactrain.fit(nn.Linear(6, 1), (x, y), loss=loss, preset=FAST, budget="40 epochs")
    assert result.metrics["train"]["rmse"] < 0.7 * y.std().item()


@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
def test_classification_losses_learn(loss: str) -> None:
    x, y = rows(600)
    data, test = (x[:400], y[:400]), (x[400:], y[400:])
    result = pactrain.fit(build("mlp"), data, loss=loss, test=test, preset=FAST, budget="40 epochs")
    with torch.no_grad():
        right = result.model(test[0]).argmax(1) == test[1]
    assert result.metrics["train"]["accuracy"] > 0.9
    assert result.metrics["test"]["accuracy"] == pytest.approx(float(right.double().mean()))
    assert result.metrics["test"]["accuracy"] > 0.9


def test_defaults_follow_the_target() -> None:
    x, y = rows()
    assert pactrain.fit(build("mlp"), (x, y), budget="1 epoch").config["loss"] == "cross_entropy"
    assert pactrain.fit(nn.Linear(6, 1), (x, x[:, 0]), budget="1 epoch").config["loss"] == "mse"


def test_a_seed_decides_everything_and_the_callers_randomness_is_left_alone() -> None:
    one, other = build("batchnorm"), build("batchnorm")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = pactrain.fit(one, rows(), seed=3, budget=SHORT)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(5)
    second = pactrain.fit(other, rows(), seed=3, budget=SHORT)
    assert torch.equal(weights(first.model), weights(second.model))
    assert first.certificate == second.certificate
    third = pactrain.fit(build("batchnorm"), rows(), seed=4, budget=SHORT)
    assert not torch.equal(weights(first.model), weights(third.model))


def test_batch_norm_ends_with_the_statistics_at_the_mean() -> None:
    model = build("batchnorm")
    x, _ = rows()
    pactrain.fit(model, rows(), budget=SHORT)
    assert isinstance(model, Normed)
    norm, hidden = model.layers[1], model.layers[0](x)
    torch.testing.assert_close(norm.running_mean, hidden.mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, hidden.var(0), rtol=1e-4, atol=1e-5)


def test_any_torch_optimiser() -> None:
    for make in (
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
        lambda groups: torch.optim.RMSprop(groups),
        lambda groups: torch.optim.AdamW(groups, weight_decay=0.01),
    ):
        result = pactrain.fit(build("mlp"), rows(), optimizer=make, budget=SHORT)
        assert result.history[-1]["risk"] < result.history[0]["risk"]


@pytest.mark.parametrize("bound", ["kl", "quad", "lambda", "classic", "catoni", "bbb", "subgaussian", "cgf_rodriguez"])
def test_every_bound_can_be_trained_with(bound: str) -> None:
    for preset in ("auto", "authors"):
        result = pactrain.fit(build("mlp"), rows(300), bound=bound, preset=preset, budget="15 epochs")
        bounded = bound in ("kl", "quad", "lambda", "classic", "catoni", "bbb")
        assert all(np.isfinite(r["bound"]) and r["bound"] > r["risk"] for r in result.history)
        assert (result.history[0]["risk"] < 0.3) is bounded  # cross-entropy clipped and scaled to [0, 1]
        assert result.config["loss"] == "cross_entropy"
    x, _ = rows()
    with pytest.raises(PactrainError, match="no upper limit"):
        pactrain.fit(nn.Linear(6, 1), (x, x[:, 0]), bound="kl")


def test_settings_of_the_user_are_followed() -> None:
    runs_of = {
        rate: weights(pactrain.fit(build("mlp"), rows(), optimizer=sgd(rate), budget=SHORT).model)
        for rate in (1e-6, 0.1)
    }
    assert not torch.allclose(runs_of[1e-6], runs_of[0.1])
    small, large = (
        pactrain.fit(build("mlp"), rows(), prior=pactrain.Prior(std=std), budget="1 epoch").history[0]["prior_std"]["0"]
        for std in (1e-2, 0.5)
    )
    assert small < 0.1 < large
    with pytest.raises(PactrainError, match="LBFGS"):
        pactrain.fit(build("mlp"), rows(), optimizer=lambda groups: torch.optim.LBFGS(groups))
    with pytest.raises(PactrainError, match="delta"):
        pactrain.fit(build("mlp"), rows(), delta=2)
    with pytest.raises(PactrainError, match="CUDA"):
        pactrain.fit(build("mlp"), rows(), device="cuda")
    with pytest.raises(PactrainError, match=r"device 'gpu' cannot be used .*; use cpu, cuda or auto"):
        pactrain.fit(build("mlp"), rows(), device="gpu")


def sgd(rate: float) -> Any:
    """A factory of plain gradient descent."""
    return lambda groups: torch.optim.SGD(groups, lr=rate)


def test_gradients_are_learned_from_after_a_callback_has_cleared_them() -> None:
    runs = []
    for clear in (False, True):
        model = build("mlp")
        callbacks = [lambda event, model=model: model.zero_grad()] if clear else []
        runs.append(weights(pactrain.fit(model, rows(), callbacks=callbacks, budget=SHORT).model))
    assert torch.equal(*runs)


@pytest.mark.parametrize("cache", [False, True])  # autocast keeps the weights that it has cast
def test_training_under_bfloat16_autocast(cache: bool) -> None:
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=cache):
        result = pactrain.fit(build("mlp"), rows(64), budget="4 epochs")
    plain = pactrain.fit(build("mlp"), rows(64), budget="4 epochs")
    assert all(p.dtype == torch.float32 for p in result.model.parameters())
    for halved, exact in zip(result.history, plain.history, strict=True):
        assert halved["train"]["loss"] == pytest.approx(exact["train"]["loss"], rel=2e-3)
