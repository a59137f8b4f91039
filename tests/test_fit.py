"""`fit` from end to end: every network, loss, bound and optimiser."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pactrain
from pactrain import PactrainError
from pactrain.rules.presets import AUTO, PRESETS
from tests.zoo import SHORT, ZOO, Normed, build, rows, weights

FAST = AUTO.replace(lr=5e-2)


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


def test_batch_norm_ends_with_the_statistics_at_the_mean() -> None:
    model = build("batchnorm")
    x, _ = rows()
    pactrain.fit(model, rows(), budget=SHORT)
    assert isinstance(model, Normed)
    norm, hidden = model.layers[1], model.layers[0](x)
    torch.testing.assert_close(norm.running_mean, hidden.mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, hidden.var(0), rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize("cache", [False, True])  # autocast keeps the weights that it has cast
def test_training_under_bfloat16_autocast(cache: bool) -> None:
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=cache):
        result = pactrain.fit(build("mlp"), rows(64), budget="4 epochs")
    plain = pactrain.fit(build("mlp"), rows(64), budget="4 epochs")
    assert all(p.dtype == torch.float32 for p in result.model.parameters())
    for halved, exact in zip(result.history, plain.history, strict=True):
        assert halved["train"]["loss"] == pytest.approx(exact["train"]["loss"], rel=2e-3)
