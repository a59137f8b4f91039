"""`fit` from end to end: every network, loss, kind of data and way of ending."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain import PactrainError, Posterior, stages
from pactrain.auto import AUTHORS, AUTO, PAPER, PRESETS, Rules
from pactrain.budget import Budget
from pactrain.errors import DataError
from pactrain.events import Event
from pactrain.kl_weight import followed_weight
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
    labels = {s.label for s in result.certificate.statements}
    assert ("certified" in labels) == (name not in ("batchnorm", "graph"))


@pytest.mark.parametrize("loss", ["mse", "l1", "huber", "log_cosh", "quantile", "quantile:0.8"])
def test_regression_losses_learn(loss: str) -> None:
    x, _ = rows(200)
    y = x[:, 0] - 2 * x[:, 1]
    result = pactrain.fit(nn.Linear(6, 1), (x, y), loss=loss, preset=FAST, budget="40 epochs")
    assert result.metrics["train"]["rmse"] < 0.7 * y.std().item()


@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
def test_classification_losses_learn(loss: str) -> None:
    result = pactrain.fit(build("mlp"), rows(200), loss=loss, test=rows(200, seed=0), preset=FAST, budget="40 epochs")
    assert result.metrics["train"]["accuracy"] > 0.9
    assert result.metrics["test"]["accuracy"] > 0.9


def test_defaults_follow_the_target() -> None:
    x, y = rows()
    assert pactrain.fit(build("mlp"), (x, y), budget="1 epoch").config["loss"] == "cross_entropy"
    assert pactrain.fit(nn.Linear(6, 1), (x, x[:, 0]), budget="1 epoch").config["loss"] == "mse"


def test_all_kinds_of_data_are_read_alike() -> None:
    x, y = rows()
    batches = [(x[:24], y[:24]), (x[24:], y[24:])]
    kinds: list[Any] = [
        (x, y),
        (x.numpy().astype(np.float64), y.numpy().astype(np.int32)),
        TensorDataset(x, y),
        DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True),
        batches,
    ]
    for data in kinds:
        result = pactrain.fit(build("mlp"), data, budget="2 epochs")
        assert result.metrics["train"]["n"] == 48
    with pytest.raises(DataError, match="only once"):
        pactrain.fit(build("mlp"), iter(batches), budget="1 epoch")
    with pytest.raises(DataError, match="different numbers of rows"):
        pactrain.fit(build("mlp"), (x, y[:-1]))
    bad = x.clone()
    bad[3, 0] = float("nan")
    with pytest.raises(DataError, match="first in row 3"):
        pactrain.fit(build("mlp"), (bad, y))
    with pytest.raises(DataError, match="no rows"):
        pactrain.fit(build("mlp"), (x[:0], y[:0]))
    with pytest.raises(DataError, match="cannot be read"):
        pactrain.fit(build("mlp"), 3)


def test_a_seed_decides_everything_and_the_callers_randomness_is_left_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = pactrain.fit(build("batchnorm"), rows(), seed=3, budget=SHORT)
    torch.manual_seed(7)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(5)
    second = pactrain.fit(build("batchnorm"), rows(), seed=3, budget=SHORT)
    assert torch.equal(weights(first.model), weights(second.model))
    assert first.certificate == second.certificate
    other = pactrain.fit(build("batchnorm"), rows(), seed=4, budget=SHORT)
    assert not torch.equal(weights(first.model), weights(other.model))


def test_batch_norm_ends_with_the_statistics_at_the_mean() -> None:
    model = build("batchnorm")
    x, _ = rows()
    pactrain.fit(model, rows(), budget=SHORT)
    assert isinstance(model, Normed)
    norm, hidden = model.layers[1], model.layers[0](x)
    torch.testing.assert_close(norm.running_mean, hidden.mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, hidden.var(0), rtol=1e-4, atol=1e-5)


def test_budgets_are_honoured() -> None:
    import time

    events: list[Event] = []
    started = time.monotonic()
    result = pactrain.fit(build("mlp"), rows(2000), budget=0.5, callbacks=[events.append])
    assert result.metrics["steps"] > 5
    assert time.monotonic() - started < 10
    assert sum(r["stage"] == 1 for r in result.history) < AUTO.stage1_epochs(31)
    assert {e.phase for e in events} == {"scan", "train", "certify"}
    assert len(pactrain.fit(build("mlp"), rows(), budget="3 epochs").history) <= 3
    for bad in ("soon", "-3s", "3 weeks", "1.5 epochs", "..s"):
        with pytest.raises(PactrainError, match="not understood"):
            pactrain.fit(build("mlp"), rows(), budget=bad)


def test_any_torch_optimiser() -> None:
    for make in (
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
        lambda groups: torch.optim.RMSprop(groups),
        lambda groups: torch.optim.AdamW(groups, weight_decay=0.01),
    ):
        result = pactrain.fit(build("mlp"), rows(), optimizer=make, budget=SHORT)
        assert result.history[-1]["risk"] < result.history[0]["risk"]


def test_stage_2_keeps_the_noise_and_the_prior() -> None:
    rules = PAPER.replace(fixed_epochs=4)
    result = pactrain.fit(build("mlp"), rows(), preset=rules, budget="6 epochs")
    one, two = ([r for r in result.history if r["stage"] == s] for s in (1, 2))
    assert (len(one), len(two)) == (4, 2)
    assert all(r["posterior_std"] == one[-1]["posterior_std"] for r in two)
    assert all(r["prior_std"] == one[-1]["prior_std"] for r in two)
    assert result.metrics["stage1"]["bound"] == one[-1]["bound"]


def test_warm_up_moves_the_stds_of_a_group_together() -> None:
    for epochs, smallest, together in ((4, 1, True), (0, 1, False), (4, 1_000_000, False)):
        rules = AUTHORS.replace(fixed_epochs=4, stage2_share=0.0, warmup_epochs=epochs, warmup_weights=smallest)
        posterior = pactrain.fit(build("mlp"), rows(), preset=rules, budget="4 epochs").posterior
        spans = [float(posterior.log_std.detach()[at].std()) for at in posterior.group_slices]
        assert (max(spans) < 1e-5) is together


def test_presets_start_where_they_say() -> None:
    model = build("mlp")
    scale = float(weights(model).abs().mean())
    starts = {}
    for name, rules in PRESETS.items():
        posterior = Posterior(build("mlp"))
        moment = pactrain.estimate_moment(posterior, rows(), draws=3)
        starts[name] = rules.start_std(posterior, rules.bound(48, 0.05, moment, 2))
        if name == "auto":
            at_start = rules.bound(48, 0.05, moment, 2).at_start()
            chosen = int(np.argmin(np.abs(np.exp(moment.log_stds) - starts[name])))
            assert at_start[chosen] <= 1.02 * at_start.min()
            assert (at_start[chosen + 1 :] > 1.02 * at_start.min()).all()
    assert starts["authors"] == pytest.approx(scale)
    assert starts["paper"] == pytest.approx(scale**0.5)
    assert AUTHORS.confidence_nats(0.05, 4) == 22.0
    assert PAPER.confidence_nats(0.05, 4) == pytest.approx(np.log(20))
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), preset="best")
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), bound="best")


def test_a_network_that_cannot_learn_is_told_so() -> None:
    _, y = rows()
    result = pactrain.fit(build("mlp"), (torch.zeros(48, 6), y), budget="20 epochs")
    assert any("largest class" in note for note in result.notes)


def test_budget_is_shared_between_the_stages() -> None:
    rules = Rules(name="r", start="knee", stage2_share=0.5)
    assert Budget(epochs=30).epochs_of_stages(1000, rules) == (20, 10)
    assert Budget(epochs=30).epochs_of_stages(10, rules) == (10, 5)
    assert Budget().epochs_of_stages(100, rules) == (100, 50)


def test_losses_that_are_not_per_example_are_refused() -> None:
    with pytest.raises(PactrainError, match="one loss an example"):
        pactrain.fit(build("mlp"), rows(), loss=lambda predict, b: nn.functional.cross_entropy(predict(b[0]), b[1]))
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), loss="zero_one")
    with pytest.raises(DataError, match="none of them is a target"):
        pactrain.fit(build("keywords"), [{"left": torch.ones(2, 3), "right": torch.ones(2, 3)}])


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


def test_both_ends_of_training_are_certified_and_the_objective_is_a_heuristic() -> None:
    result = pactrain.fit(build("mlp"), rows(), preset=PAPER.replace(fixed_epochs=4), budget="6 epochs")
    statements = result.certificate.statements
    assert {s.when for s in statements if s.bound == "kl"} == {"end of training", "end of stage 1"}
    heuristic = {s.bound: s for s in statements if s.label == "heuristic"}
    objective = heuristic["training objective"]
    assert objective.value == pytest.approx(result.metrics["stage1"]["bound"])
    assert heuristic["training objective + η"].value > objective.value


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


def test_typical_mistakes_are_answered(recwarn: pytest.WarningsRecorder) -> None:
    x, y = rows()
    network = build("mlp")

    def refused(words: str, model: Any = network, data: Any = (x, y), **options: Any) -> None:
        with pytest.raises(PactrainError, match=words):
            pactrain.fit(model, data, **options)

    refused("the class Linear; make a network of it first", model=nn.Linear)
    refused("say which with out=", resume=True)
    refused("the training data is one Tensor; pass a pair", data=x)
    refused("the training data is one dict; pass a pair", data={"x": x, "y": y})
    refused(r"write \(X, y\) in round brackets", data=[x, y])
    refused(r"CrossEntropyLoss takes \(output, target\)", loss=nn.CrossEntropyLoss(reduction="none"))
    refused(r"mse_loss takes \(output, target\)", loss=F.mse_loss)
    refused("the training rows have 6 features and the test rows 5", test=(x[:, :5], y))
    frozen = x.numpy()
    frozen.flags.writeable = False  # as pandas gives them
    pactrain.fit(network, (frozen, y), budget="1 epoch")
    assert not recwarn.list


def sgd(rate: float) -> Any:
    """A factory of plain gradient descent."""
    return lambda groups: torch.optim.SGD(groups, lr=rate)


def test_ctrl_c_stops_between_steps_and_a_second_fit_is_told_of_the_first() -> None:
    import signal

    def press(event: Event) -> None:
        if event.phase == "train" and event.done == 2:
            signal.raise_signal(signal.SIGINT)

    model = build("mlp")
    handler = signal.getsignal(signal.SIGINT)
    first = pactrain.fit(model, rows(), callbacks=[press])
    assert first.interrupted
    assert len(first.history) == 2
    assert signal.getsignal(signal.SIGINT) is handler
    second = pactrain.fit(model, rows(), budget="1 epoch")
    assert any("trained by pactrain before" in note for note in second.certificate.notes)
    assert "certified" not in {s.label for s in second.certificate.statements}


def test_odd_targets_and_types() -> None:
    x, y = rows()
    wide = build("mlp").double()
    assert pactrain.fit(wide, (x.double(), y), budget="1 epoch").model[0].weight.dtype == torch.float64  # type: ignore[index]
    with pytest.raises(DataError, match="two at least"):
        pactrain.fit(nn.Linear(6, 1), (x, y))
    with pytest.raises(DataError, match="one class number"):
        pactrain.fit(build("mlp"), (x, y[:, None]))
    with pytest.raises(DataError, match="1 to 3; a network with 3 scores knows 0 to 2"):
        pactrain.fit(build("mlp"), (x, y + 1))


def test_a_network_that_was_trained_elsewhere_is_remarked_on() -> None:
    data = rows(200)
    model = build("mlp")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()
        optimizer.step()
    notes = pactrain.fit(model, data, budget="1 epoch").certificate.notes
    assert any("already names" in note for note in notes)
    assert not any(
        "already names" in note for note in pactrain.fit(build("mlp"), data, budget="1 epoch").certificate.notes
    )


def test_stage_2_is_judged_in_the_units_of_the_loss_that_is_trained_on() -> None:
    """At a standstill the clipped risk stays near its start, so stage 2 must follow although the number itself is small."""
    still = AUTO.replace(name="still", lr=1e-9, stage2_share=0.5, enter_stage2=0.5)
    result = pactrain.fit(build("mlp"), rows(), bound="kl", preset=still, budget="6 epochs")
    assert result.history[0]["risk"] < 0.5 * 1.1  # far below half the cross-entropy of three classes
    assert result.metrics["stage2_epochs"] > 0


def test_the_weight_of_the_divergence_follows_the_divergence_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def watched(bound: Any, held_gamma: float, risk: float, kl: float) -> float:
        seen.append(kl)
        return followed_weight(bound, held_gamma, risk, kl)

    monkeypatch.setattr(stages, "followed_weight", watched)
    result = pactrain.fit(build("mlp"), rows(300), bound="kl", budget="5 epochs")
    assert seen == pytest.approx([r["kl"] for r in result.history], rel=0.02)


def test_gradients_are_learned_from_after_a_callback_has_cleared_them() -> None:
    runs = []
    for clear in (False, True):
        model = build("mlp")
        callbacks = [lambda event, model=model: model.zero_grad()] if clear else []
        runs.append(weights(pactrain.fit(model, rows(), callbacks=callbacks, budget=SHORT).model))
    assert torch.equal(*runs)


class Viewing(nn.Module):
    """A convolution whose output is flattened by view(), which needs the usual layout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 64, 2)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.last(torch.relu(self.first(x)).view(len(x), -1))
        return scores


@pytest.mark.parametrize("network", ["flatten", "view"])
def test_images_are_laid_out_as_the_network_can_take_them(network: str) -> None:
    x = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 2))
    seen = []
    hooked = Viewing() if network == "view" else model
    hooked.register_forward_pre_hook(
        lambda _, args: seen.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    result = pactrain.fit(hooked, (x, (x.mean((1, 2, 3)) > 0).long()), budget="2 epochs")
    assert seen[-1] is (network == "flatten")
    assert result.metrics["train"]["n"] == 40


def test_training_under_bfloat16_autocast() -> None:
    x, y = rows(64)
    with torch.autocast("cpu", torch.bfloat16):
        result = pactrain.fit(build("mlp"), (x, y), budget="4 epochs")
    assert all(p.dtype == torch.float32 for p in result.model.parameters())
    assert math.isfinite(result.metrics["train"]["loss"])


@pytest.mark.parametrize("model", [nn.Linear(5, 2), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))])
def test_a_network_for_other_inputs_is_told_the_shape_of_the_data(model: nn.Module) -> None:
    data = torch.randn(50, 4), torch.arange(50) % 2
    with pytest.raises(DataError, match=r"shape \(50, 4\) .*cannot be multiplied"):
        pactrain.fit(model, data)


class Tokens(nn.Module):
    """The mean of what is looked up, and a linear layer."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(30, 8, sparse=sparse), nn.Linear(8, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.last(self.table(tokens).mean(1))
        return scores


@pytest.mark.parametrize("sparse", [False, True])
def test_texts_of_other_lengths_and_sparse_gradients(sparse: bool) -> None:
    torch.manual_seed(0)
    y = torch.arange(200) % 2
    tokens = torch.randint(0, 15, (200, 10)) + 15 * y[:, None]
    longer = torch.cat([tokens, tokens[:, :5]], 1)
    result = pactrain.fit(Tokens(sparse=sparse), (tokens, y), test=(longer, y), budget="20 epochs")
    assert result.metrics["test"]["accuracy"] > 0.9
