"""Plain training and its regularisers, against torch's own loops and known answers."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pactrain import fit
from pactrain.baselines.grid_search import grid, hold_out, search
from pactrain.baselines.plain_training import LOOK, Settings, rank, train
from pactrain.baselines.weight_noise import noisy
from pactrain.problem.batches import TensorBatches
from pactrain.problem.dropout import dropping
from pactrain.runtime.errors import DataError, PactrainError, TrainingError
from pactrain.runtime.seeds import derive


def problem(n: int = 120, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).long()


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


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


def test_noise_is_in_the_gradient_and_not_in_the_weights() -> None:
    """The mean of the gradients of w²/2 at w + noise is w, and its deviation that of the noise."""
    weight = nn.Parameter(torch.full((20_000,), 3.0))
    before = weight.detach().clone()
    with noisy([weight], 0.5, torch.Generator().manual_seed(0)):
        (0.5 * weight.square()).sum().backward()
    assert torch.equal(weight.detach(), before)
    assert weight.grad is not None
    assert float(weight.grad.mean()) == pytest.approx(3.0, abs=0.02)
    assert float(weight.grad.std()) == pytest.approx(0.5, abs=0.02)


def test_noise_and_dropout_regularise_and_are_seeded() -> None:
    data, found = problem(), {}
    for name, settings in (
        ("plain", Settings(lr=0.01, steps=60)),
        ("noise", Settings(lr=0.01, steps=60, noise=0.3)),
        ("dropout", Settings(lr=0.01, steps=60, dropout=0.5)),
    ):
        losses = []
        for seed in (0, 0, 1):
            model = network()
            losses.append((train(model, data, settings, seed=seed).train["loss"], weights(model)))
        assert torch.equal(losses[0][1], losses[1][1])
        assert not torch.equal(losses[0][1], losses[2][1])
        found[name] = losses[0][0]
    assert found["noise"] > found["plain"]
    assert found["dropout"] > found["plain"]


def test_dropout_behind_activations_leaves_no_trace() -> None:
    model, x = network().train(), problem()[0]
    names, clean = set(model.state_dict()), model(x)
    with dropping(model, 0.5):
        hidden: list[Tensor] = []
        hook = model[2].register_forward_hook(lambda _, inputs, __: hidden.append(inputs[0]))
        assert not torch.equal(model(x), clean)
        alive = model[:1](x).relu() > 0
        assert float((hidden[0][alive] == 0).double().mean()) == pytest.approx(0.5, abs=0.06)  # of about a thousand
        hook.remove()
        model.eval()
        assert torch.equal(model(x), clean)  # as any Dropout layer
        model.train()
    assert torch.equal(model(x), clean)
    assert set(model.state_dict()) == names


def test_dropout_of_a_network_that_has_it() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
    layer = model[2]
    assert isinstance(layer, nn.Dropout)
    with dropping(model, 0.7):
        assert layer.p == 0.7
        assert not model[1]._forward_hooks
    assert layer.p == 0.1
    with pytest.raises(PactrainError, match="no activation layer"), dropping(nn.Linear(2, 2), 0.5):
        pass


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
    assert found.best_step % LOOK == 0
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


def test_ranks() -> None:
    assert rank({"loss": 5.0, "accuracy": 0.9}) > rank({"loss": 0.1, "accuracy": 0.8})
    assert rank({"loss": 0.1, "accuracy": 0.8}) > rank({"loss": 0.2, "accuracy": 0.8})
    assert rank({"loss": 0.1, "rmse": 1.0}) > rank({"loss": 0.2, "rmse": 0.5})
    assert rank({"loss": 0.2}) > rank({"loss": math.nan, "accuracy": 1.0})


def test_a_search_takes_what_is_best_on_the_validation_rows_and_trains_again_on_everything() -> None:
    everything = problem(200)
    training, validation = hold_out(everything, 3)
    assert (len(training[0]), len(validation[0])) == (160, 40)
    together = torch.cat([training[0], validation[0]])
    assert torch.equal(together.sort(0).values, everything[0].sort(0).values)
    candidates = grid(Settings("adam", steps=60), lr=(1e-5, 3e-2), noise=(0.0, 0.05))
    found = search(network, candidates, training=training, validation=validation, everything=everything, seed=3)
    assert [s.lr for s in candidates] == [1e-5, 1e-5, 3e-2, 3e-2]
    assert found.chosen.lr == 3e-2
    assert found.trainings == 5
    best = max(t.rank for _, t in found.trials if t is not None)
    assert dict(found.trials)[found.chosen].rank == best  # type: ignore[union-attr]
    twin = copy.deepcopy(network())
    train(twin, everything, found.chosen, stop_at=found.best_step, seed=3)
    assert torch.equal(weights(twin), weights(found.model))


def test_a_search_with_settings_that_explode() -> None:
    x, y = problem()
    data = (1e3 * x, 1e3 * y.float())
    training, validation = hold_out(data, 0)
    bad, good = Settings("sgd", 10.0, steps=40), Settings("adam", 0.01, steps=40)
    parts: dict[str, Any] = {"training": training, "validation": validation, "everything": data}
    found = search(lambda: nn.Linear(4, 1), [bad, good], **parts)
    assert found.chosen == good
    assert dict(found.trials)[bad] is None
    with pytest.raises(PactrainError, match="smaller learning rates"):
        search(lambda: nn.Linear(4, 1), [bad], **parts)
    with pytest.raises(DataError, match="too few"):
        hold_out((x[:2], y[:2]), 0)
