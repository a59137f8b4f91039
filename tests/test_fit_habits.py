"""What people who train with torch are used to: own metrics, precision, accumulation, clipping, stopping, familiar arguments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError
from pactrain.runtime.events import Event
from tests.zoo import build, rows, weights


def hits(output: Tensor, target: Tensor) -> Tensor:
    """A metric of one's own."""
    return (output.argmax(1) == target).double().mean()


def test_own_metrics_are_in_history_and_result() -> None:
    result = pactrain.fit(build("mlp"), rows(96), test=rows(40, seed=1), metrics={"hits": hits}, budget="5 epochs")
    for part in ("train", "test"):
        assert result.metrics[part]["hits"] == pytest.approx(result.metrics[part]["accuracy"])
        assert result.history[-1][part]["hits"] == pytest.approx(result.history[-1][part]["accuracy"])


def test_metrics_of_amounts_are_in_the_units_of_the_target() -> None:
    x = rows(200)[0]
    target = 4000 * x[:, :1] + 9000

    def rmse(output: Tensor, target: Tensor) -> Tensor:
        return (output - target).square().mean().sqrt()

    result = pactrain.fit(nn.Linear(6, 1), (x, target), metrics={"own": rmse}, budget="5 epochs")
    assert result.history[-1]["train"]["own"] == pytest.approx(result.history[-1]["train"]["rmse"], rel=1e-4)
    assert result.metrics["train"]["own"] == pytest.approx(result.metrics["train"]["rmse"], rel=1e-4)


def test_metrics_that_fail_or_have_our_names() -> None:
    with pytest.raises(PactrainError, match="the metric 'odd' failed on outputs of shape"):
        pactrain.fit(build("mlp"), rows(), metrics={"odd": lambda o, t: 1 / 0}, budget="1 epoch")
    with pytest.raises(PactrainError, match="metrics named accuracy are measured anyway"):
        pactrain.fit(build("mlp"), rows(), metrics={"accuracy": hits})


def test_a_callback_stops_training() -> None:
    def enough(event: Event) -> None:
        if event.phase == "scan" or (event.phase == "train" and event.done == 3):
            event.stop()

    result = pactrain.fit(build("mlp"), rows(), callbacks=[enough])
    assert result.interrupted
    assert len(result.history) == 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lr", "optimizer=lambda groups"), ("learning_rate", "optimizer=lambda groups"), ("epochs", "budget='20 epochs'"),
        ("batch_size", r"replace\(batch_size=64\)"), ("verbose", "callbacks="), ("patience", r"event\.stop\(\)"),
        ("weight_decay", "replaces weight decay"), ("criterion", "loss="), ("validation_split", "test="),
        ("bugdet", "did you mean budget="), ("xyzzy", "it takes loss, prior"),
    ],
)  # fmt: skip
def test_arguments_of_other_libraries_are_answered(name: str, words: str) -> None:
    with pytest.raises(TypeError, match=words) as error:
        pactrain.fit(build("mlp"), rows(), **{name: 1})  # type: ignore[arg-type]
    assert isinstance(error.value, PactrainError)


def test_what_the_words_recommend_works() -> None:
    rules = pactrain.rules.presets.AUTO.replace(batch_size=16)
    result = pactrain.fit(
        build("mlp"),
        rows(),
        budget="2 epochs",
        preset=rules,
        optimizer=lambda groups: torch.optim.Adam(groups, lr=1e-3),
    )
    assert result.metrics["steps"] == 2 * 3


def test_seeds_optimisers_and_devices_of_the_wrong_kind() -> None:
    def refused(words: str, **options: Any) -> None:
        with pytest.raises(PactrainError, match=words):
            pactrain.fit(build("mlp"), rows(), **options)

    for seed in (1.5, "7", None, True):
        refused("must be a whole number", seed=seed)
    finished = torch.optim.SGD(build("mlp").parameters(), lr=0.3)
    for optimizer in (finished, "adam"):
        refused(r"must be a function from parameter groups .* lambda groups: torch.optim.SGD", optimizer=optimizer)
    refused("have no float64", device="mps")
    refused("use 'bf16' or 'fp32'", precision="fp16")
    for pieces in (0, 2.0, True):
        refused("accumulate=.* must be a whole number", accumulate=pieces)
    refused("above zero", clip_norm=0.0)
    refused("above zero", clip_norm="1")
    for metrics in ("f1", ["f1"], {"f1": 1}):
        refused("must be functions by name", metrics=metrics)
    refused("whose bound needs whole batches", accumulate=2, preset="paper")


def test_seeds_and_numbers_of_numpy(tmp_path: Path) -> None:
    numpys: tuple[str, Any, Any] = ("numpy", np.int64(3), np.float32(0.125))
    plain, other = (
        pactrain.fit(build("mlp"), rows(), seed=seed, delta=delta, budget="1 epoch", out=tmp_path / name)
        for name, seed, delta in (("plain", 3, 0.125), numpys)
    )
    assert torch.equal(weights(plain.model), weights(other.model))
    assert str(plain.certificate) == str(other.certificate)
    assert pactrain.certify(plain.posterior, rows(), draws=20, seed=numpys[1]).seed == 3


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"accumulate": np.int64(3)}, {"clip_norm": 1e6}])
def test_the_way_of_computing_hardly_changes_what_is_learned(options: dict[str, Any]) -> None:
    plain, other = (pactrain.fit(build("mlp"), rows(300), budget="30 epochs", **o) for o in ({}, options))
    assert other.metrics["train"]["loss"] == pytest.approx(plain.metrics["train"]["loss"], rel=0.05)
    assert other.metrics["train"]["accuracy"] > 0.9
    changed = (weights(other.model) - weights(plain.model)).abs().max()
    assert changed < (0.1 if "precision" in options else 1e-3)
    assert all(p.dtype == torch.float32 for p in other.model.parameters())


def test_dict_batches_are_accumulated_too() -> None:
    x, y = rows(60)
    data = [{"left": x[i : i + 20, :3], "right": x[i : i + 20, 3:], "labels": y[i : i + 20]} for i in (0, 20, 40)]
    plain, other = (pactrain.fit(build("keywords"), data, budget="4 epochs", accumulate=k) for k in (1, 4))
    assert torch.allclose(weights(plain.model), weights(other.model), atol=1e-4)
    with pytest.raises(PactrainError, match="cuts batches into pieces"):
        pactrain.fit(build("two inputs"), [((x[:, :3], x[:, 3:]), y)], budget="1 epoch", accumulate=2)


def test_clipping_limits_what_a_step_may_do() -> None:
    def moved(clip: float | None) -> float:
        rules = pactrain.rules.presets.AUTO.replace(strengthen=False)
        sgd = lambda groups: torch.optim.SGD(groups, lr=1.0)  # noqa: E731
        result = pactrain.fit(
            build("mlp"), rows(96), budget="1 epoch", clip_norm=clip, preset=rules, optimizer=sgd, seed=1
        )
        return float((weights(result.model) - weights(build("mlp"))).norm())

    free, held = moved(None), moved(0.01)
    assert free > 0.05
    assert held < 0.03  # two steps at most, each of a hundredth


@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own use of torch
def test_a_compiled_network_learns_the_same() -> None:
    plain, inner = build("mlp"), build("mlp")
    compiled: Any = torch.compile(inner, backend="aot_eager")
    results = [pactrain.fit(m, rows(96), budget="10 epochs") for m in (plain, compiled)]
    assert torch.allclose(weights(plain), weights(inner), atol=1e-4)
    assert results[0].metrics["train"]["accuracy"] == results[1].metrics["train"]["accuracy"]


def test_rows_given_as_two_arguments_are_answered() -> None:
    with pytest.raises(TypeError, match=r"got 3: data: fit\(model, \(X, y\)\)"):
        pactrain.fit(build("mlp"), *rows())


def test_nested_lists_are_rows_and_named_inputs_come_in_batches() -> None:
    x, y = rows(30)
    plain, nested = (pactrain.fit(build("mlp"), data, budget="1 epoch") for data in ((x, y), (x.tolist(), y.tolist())))
    assert torch.allclose(weights(plain.model), weights(nested.model))
    with pytest.raises(PactrainError, match="a pair of named inputs and a target; pass a DataLoader"):
        pactrain.fit(build("keywords"), ({"left": x[:, :3], "right": x[:, 3:]}, y), budget="1 epoch")
