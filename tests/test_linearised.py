"""Leave-one-out of the linearised network against refitting without each example."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pactrain.problem.batches import LoaderBatches, TensorBatches, as_batches
from pactrain.problem.losses import AnyLoss, names_classes, resolve
from pactrain.problem.scores import chance
from pactrain.rules.gamma.layer_factors import Unlike
from pactrain.rules.gamma.linear_leave_one_out import GAINS, Linearised, _leave_out, linearise
from pactrain.rules.presets import AUTO
from pactrain.runtime.gave_up import collected
from tests.zoo import build, rows

CPU = torch.device("cpu")


def noisy_line(noise: float, n: int = 120) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=source, dtype=torch.float64)
    return x, x.sum(1) + noise * torch.randn(n, generator=source, dtype=torch.float64)


def refuse(*_: Any) -> None:
    raise Unlike


def found(model: nn.Module, data: Any, loss: str | AnyLoss | None = None) -> Linearised:
    batches = as_batches(data, batch_size=None, device=CPU, dtype=torch.float64)
    measured = linearise(model, batches, resolve(loss, next(iter(batches.ordered()))), seed=0)
    assert measured is not None
    return measured


def test_left_out_residuals_are_those_of_refitting_without_the_example() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    measured = _leave_out(torch.from_numpy(x @ x.T), torch.from_numpy(y))
    for place in (0, 20, 40, len(GAINS) - 1):
        ridge = np.diag(x @ x.T).mean() / GAINS[place]
        squares = []
        for j in range(len(y)):
            rest = np.arange(len(y)) != j
            weights = np.linalg.solve(x[rest].T @ x[rest] + ridge * np.eye(8), x[rest].T @ y[rest])
            squares.append((y[j] - x[j] @ weights) ** 2)
        assert measured.left_out[place] == pytest.approx(np.mean(squares), rel=1e-8)
    assert measured.untrained == pytest.approx(np.mean(y**2))


def test_the_kernel_of_a_linear_network_is_its_inputs() -> None:
    x, y = noisy_line(0.1)
    torch.manual_seed(0)  # residuals that happen to be nearly zero are rounded up
    measured = found(nn.Linear(5, 1).double(), (x, y))
    assert measured.scale == pytest.approx(float((x.square().sum(1) + 1).mean()))


@pytest.mark.parametrize("name", ["mlp", "tied", "frozen", "unused", "batchnorm"])
def test_gradients_taken_together_are_those_taken_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = TensorBatches(rows(), 16)
    loss = resolve(None, rows())
    by_rows = linearise(build(name), data, loss, seed=0)
    monkeypatch.setattr("pactrain.rules.gamma.linear_leave_one_out.row_factors", refuse)
    together = linearise(build(name), data, loss, seed=0)
    monkeypatch.setattr("pactrain.rules.gamma.linear_leave_one_out.NUMBERS_AT_ONCE", 0)
    alone = linearise(build(name), data, loss, seed=0)
    assert alone is not None
    for other in (by_rows, together):
        assert other is not None
        assert other.scale == pytest.approx(alone.scale, rel=1e-4)
        np.testing.assert_allclose(other.left_out, alone.left_out, rtol=1e-2)  # float32 tells at the largest gain


def test_gamma_follows_the_scale_of_the_loss_and_of_the_prior() -> None:
    x, y = noisy_line(1.0)
    model = nn.Linear(5, 1).double()
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    one, ten = found(model, (x, y)), found(model, (x, 10 * y))
    assert one.best_gain() == ten.best_gain()
    assert one.scale == pytest.approx(ten.scale)  # the residual's own gradient does not change with its size
    assert one.gamma(2.0, 0.1) == pytest.approx(4 * one.gamma(2.0, 0.2)) == pytest.approx(2 * one.gamma(1.0, 0.1))
    scaled = found(model, (x, y), lambda predict, b: 100 * (predict(b[0])[:, 0] - b[1]).square())
    assert scaled.gamma(scaled.best_gain(), 0.1) == pytest.approx(one.gamma(one.best_gain(), 0.1) / 100)


def test_noisier_data_is_held_closer_to_the_prior() -> None:
    gains = [found(nn.Linear(5, 1).double(), noisy_line(noise)).best_gain() for noise in (0.01, 1.0, 10.0)]
    assert gains[0] > gains[1] > gains[2]


def test_the_least_gain_is_enough_and_no_more_than_the_best() -> None:
    falling = Linearised(1.0, 1.0, tuple(1 / (1 + GAINS)), (0.0,) * len(GAINS))
    least = falling.least_gain(0.8, 0.01)
    assert 1 - 1 / (1 + least) == pytest.approx(0.8, abs=0.05)
    assert falling.least_gain(0.8, 50.0) >= 50.0
    rising = Linearised(1.0, 1.0, tuple(1 + GAINS), (0.0,) * len(GAINS))
    assert falling.best_gain() == GAINS[-1]
    unsure = Linearised(1.0, 1.0, tuple(1 / (1 + GAINS)), (0.1,) * len(GAINS))
    assert unsure.best_gain() == pytest.approx(9, rel=0.3)
    assert rising.least_gain(0.8, 1.0) == rising.best_gain() == GAINS[0]


def test_the_signal_of_noisy_lines_is_about_right() -> None:
    """Slopes that are all one, and inputs of unit size: the signal is 5, relative to a squared noise."""
    model = nn.Linear(5, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    for noise in (0.5, 1.0, 3.0):
        measured = found(model, noisy_line(noise, 500)).signal(1.0)
        assert 0.5 < measured / (5 / noise**2) < 1.15, noise


def test_no_signal_is_seen_in_what_the_shares_of_the_classes_tell() -> None:
    source = torch.Generator().manual_seed(0)
    x, y = torch.randn(500, 10, generator=source), (torch.rand(500, generator=source) < 0.02).long()
    batches = TensorBatches((x, y), 64)
    loss = resolve(None, (x, y))
    measured = linearise(nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2)), batches, loss, seed=0)
    assert measured is not None
    share = float(y.double().mean())
    assert chance(batches, loss) == pytest.approx(-share * np.log(share) - (1 - share) * np.log(1 - share))
    assert measured.signal(1.0, chance(batches, loss)) < 1 < 3 < measured.signal(1.0)


def test_the_gain_for_classes_follows_the_signal_above_one() -> None:
    def gain(left_out: float) -> float:  # at gain 1, with hardly any loss at larger ones
        losses = np.where(GAINS < 1, 1.0, np.where(GAINS < 50, left_out, left_out / 1.01))
        return AUTO.gain_for_classes(Linearised(1.0, 1.0, tuple(losses.tolist()), (0.0,) * len(GAINS)))

    assert gain(0.5) == gain(0.3) == 1.0
    assert gain(0.1) == pytest.approx(3, rel=0.34)
    assert gain(0.01) == pytest.approx(33, rel=0.34)
    assert gain(1e-6) == pytest.approx(50, rel=0.34)  # no more than the best


@pytest.mark.parametrize("name", ["mlp", "batchnorm", "tied"])
def test_the_network_is_left_as_it_was(name: str) -> None:
    model = build(name)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    modes = [m.training for m in model.modules()]
    batches = TensorBatches(rows(80), 40)
    assert linearise(model, batches, resolve(None, rows(80)), seed=0) is not None
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert [m.training for m in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())


def test_batches_of_any_kind_agree_with_rows() -> None:
    data = rows(50)
    loss = resolve(None, data)
    by_row = linearise(build("mlp"), TensorBatches(data, 50), loss, seed=0)
    by_batch = linearise(build("mlp"), LoaderBatches([data], CPU), loss, seed=0)
    assert by_row is not None
    assert by_batch is not None
    assert by_row.left_out == pytest.approx(by_batch.left_out, rel=1e-3)


def test_what_cannot_be_linearised_falls_back() -> None:
    model = build("mlp")
    flat: AnyLoss = lambda predict, batch: 0.0 * predict(batch[0]).sum(1)  # noqa: E731
    batches = TensorBatches(rows(50), 50)
    with collected() as notes:
        assert linearise(model, batches, flat, seed=0) is None
    assert "no example has a finite loss with a gradient" in notes[0]
    with collected():
        assert AUTO.held_gamma(AUTO.strength(model, batches, flat, 0), 0.1) == AUTO.gamma_max


def test_classes_are_recognised() -> None:
    x, y = rows(4)
    custom: AnyLoss = lambda predict, batch: predict(batch[0])[:, 0]  # noqa: E731
    assert names_classes(resolve("cross_entropy", (x, y)), (x, y))
    assert not names_classes(resolve("mse", (x, x[:, 0])), (x, x[:, 0]))
    assert names_classes(custom, (x, y))
    assert names_classes(custom, {"x": x, "labels": y})
    assert not names_classes(custom, (x, x[:, 0]))
    assert not names_classes(custom, x)
