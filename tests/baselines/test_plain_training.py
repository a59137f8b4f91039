"""Plain training and its regularisers, against torch's own loops and known answers."""

from typing import Any

import pytest
import torch
from torch import nn

from pactrain import fit
from pactrain.baselines.plain_training import MEASURE_EVERY, Settings, train
from pactrain.problem.batches import TensorBatches
from pactrain.runtime.errors import PactrainError, TrainingError
from pactrain.runtime.seeds import derive
from tests.baselines.small_problem import network, problem
from tests.zoo import weights


@pytest.mark.parametrize(
    ("settings", "make"),
    [
        (
            Settings("sgd", 0.1, momentum=0.9, weight_decay=0.01, batch_size=40, epochs=3),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        ),
        (
            Settings("adam", 0.01, weight_decay=0.1, batch_size=40, steps=9),
            lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
        ),
        (
            Settings("adamw", 0.01, weight_decay=0.1, batch_size=40, epochs=3),
            lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
        ),
    ],
)
def test_the_steps_are_those_of_torch(settings: Settings, make: Any) -> None:
    data, ours, theirs = problem(), network(), network()
    assert train(ours, data, settings, seed=5).steps == 9
    optimizer = make(theirs.parameters())
    for epoch in range(3):
        for x, y in TensorBatches(data, 40).epoch(derive(5, "order", epoch)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(theirs(x), y).backward()
            optimizer.step()
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-4, atol=1e-6)


def test_the_cosine_starts_at_the_rate_and_ends_at_zero() -> None:
    settings = Settings(lr=0.2, schedule="cosine")
    assert [settings.rate(step, 10) for step in (0, 5, 10)] == pytest.approx([0.2, 0.1, 0.0])
    short, long = network(), network()
    train(short, problem(), Settings("sgd", 0.5, schedule="cosine", steps=40), stop_at=10)
    train(long, problem(), Settings("sgd", 0.5, schedule="cosine", steps=10))
    assert not torch.equal(weights(short), weights(long))  # stop_at cuts the schedule off and does not squeeze it


def test_validation_ends_with_the_best_weights_seen() -> None:
    x, y = problem(60)
    wrong = y.clone()
    wrong[::3] = 1 - wrong[::3]  # enough wrong labels that going on makes validation worse
    validation = problem(400, seed=1)
    model = network()
    found = train(model, (x, wrong), Settings(lr=0.02, steps=600), validation=validation)
    assert found.best_step is not None
    assert found.validation is not None
    assert 0 < found.best_step < 600
    assert found.best_step % MEASURE_EVERY == 0
    with torch.no_grad():
        accuracy = float((model.eval()(validation[0]).argmax(1) == validation[1]).double().mean())
    assert accuracy == pytest.approx(found.validation["accuracy"])
    last = network()
    train(last, (x, wrong), Settings(lr=0.02, steps=600))
    with torch.no_grad():
        assert float((last.eval()(validation[0]).argmax(1) == validation[1]).double().mean()) < accuracy
    again = network()
    train(again, (x, wrong), Settings(lr=0.02, steps=600), stop_at=found.best_step)
    assert torch.equal(weights(again), weights(model))


def test_data_and_losses_of_every_kind() -> None:
    x, y = problem()
    batches = [{"input": x[:60], "labels": y[:60]}, {"input": x[60:], "labels": y[60:]}]
    by_dict, by_callable = network(), network()
    assert train(by_dict, batches, Settings(lr=0.01, epochs=30)).steps == 60
    train(
        by_callable,
        [(x[:60], y[:60]), (x[60:], y[60:])],
        Settings(lr=0.01, epochs=30),
        loss=lambda predict, batch: nn.functional.cross_entropy(predict(batch[0]), batch[1], reduction="none"),
    )
    assert torch.equal(weights(by_dict), weights(by_callable))
    line = nn.Linear(4, 1)
    assert train(line, (x, x[:, 0] * 2), Settings("sgd", 0.1, epochs=40)).train["rmse"] < 0.05


def test_the_callers_modes_and_randomness_are_left_alone() -> None:
    model = network().eval()
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    train(model, problem(), Settings(steps=3, dropout=0.2, noise=0.1))
    assert torch.equal(torch.rand(1), expected)
    assert not model.training


def test_fit_after_it_doubts_the_prior() -> None:
    model = network()
    train(model, problem(), Settings(steps=3))
    result = fit(model, problem(), budget="1 epochs")
    assert any("trained the network before" in c.reason for c in result.certificate.caveats)


def test_a_loss_that_explodes_is_an_error() -> None:
    x, y = problem()
    with pytest.raises(TrainingError, match="smaller learning rate"):
        train(nn.Linear(4, 1), (1e3 * x, 1e3 * y.float()), Settings("sgd", 10.0, steps=200))


@pytest.mark.parametrize(
    "wrong",
    [
        {"optimizer": "lbfgs"},
        {"schedule": "linear"},
        {"momentum": 0.9},
        {"epochs": 1, "steps": 1},
        {"lr": 0.0},
        {"weight_decay": -1.0},
        {"dropout": 1.0},
        {"batch_size": 0},
    ],
)
def test_settings_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(PactrainError):
        Settings(**wrong)


def test_bfloat16_rounds_the_forward_pass_and_learns_the_same() -> None:
    settings, found = Settings("adam", 0.01, batch_size=40, steps=60), {}
    for precision in ("fp32", "bf16"):
        model = network()
        found[precision] = train(model, problem(), settings, precision=precision).train
        assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert found["fp32"] == train(network(), problem(), settings).train
    assert found["bf16"]["loss"] != found["fp32"]["loss"]
    assert found["bf16"]["loss"] == pytest.approx(found["fp32"]["loss"], rel=0.05)
    with pytest.raises(PactrainError, match="precision='half' is not known"):
        train(network(), problem(), settings, precision="half")
