"""Leave-one-out of the linearised network against refitting without each example."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.losses import AnyLoss, CallableLoss
from pactrain.problem.read_data import as_batches
from pactrain.rules.gamma.example_kernel import NotLinearLayers
from pactrain.rules.gamma.linear_leave_one_out import GAINS, Linearised, leave_out_curve, linearise
from pactrain.rules.presets import AUTO
from pactrain.rules.start_values import held_gamma, strength
from pactrain.runtime.gave_up import collected
from tests.zoo import build, rows

CPU = torch.device("cpu")


def noisy_line(noise: float, n: int = 120) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=source, dtype=torch.float64)
    return x, x.sum(1) + noise * torch.randn(n, generator=source, dtype=torch.float64)


def refuse(*_: Any) -> None:
    raise NotLinearLayers


def found(model: nn.Module, data: Any, loss: str | AnyLoss | None = None) -> Linearised:
    batches = as_batches(data, batch_size=None, device=CPU, dtype=torch.float64)
    measured = linearise(Posterior(model), batches, as_loss(loss, next(iter(batches.ordered()))), seed=0)
    assert measured is not None
    return measured


def test_left_out_residuals_are_those_of_refitting_without_the_example() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    measured = leave_out_curve(torch.from_numpy(x @ x.T), torch.from_numpy(y))
    for place in (0, 20, 40, len(GAINS) - 1):
        ridge = np.diag(x @ x.T).mean() / GAINS[place]
        squares = []
        for j in range(len(y)):
            rest = np.arange(len(y)) != j
            weights = np.linalg.solve(x[rest].T @ x[rest] + ridge * np.eye(8), x[rest].T @ y[rest])
            squares.append((y[j] - x[j] @ weights) ** 2)
        assert measured.left_out[place] == pytest.approx(np.mean(squares), rel=1e-8)


def test_the_kernel_of_a_linear_network_is_its_inputs() -> None:
    x, y = noisy_line(0.1)
    torch.manual_seed(0)  # residuals that happen to be nearly zero are rounded up
    measured = found(nn.Linear(5, 1).double(), (x, y))
    assert measured.scale == pytest.approx(float((x.square().sum(1) + 1).mean()))


@pytest.mark.parametrize("name", ["mlp", "tied", "frozen", "unused", "batchnorm"])
def test_factors_give_what_single_examples_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = TensorBatches(rows(), 16)
    loss = as_loss(None, rows())
    by_rows = linearise(Posterior(build(name)), data, loss, seed=0)
    monkeypatch.setattr("pactrain.rules.gamma.example_kernel.factors_of", refuse)
    alone = linearise(Posterior(build(name)), data, loss, seed=0)
    assert by_rows is not None
    assert alone is not None
    assert by_rows.scale == pytest.approx(alone.scale, rel=1e-4)
    np.testing.assert_allclose(by_rows.left_out, alone.left_out, rtol=1e-2)  # float32 tells at the largest gain


def test_gamma_follows_the_scale_of_the_loss() -> None:
    x, y = noisy_line(1.0)
    model = nn.Linear(5, 1).double()
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    one, ten = found(model, (x, y)), found(model, (x, 10 * y))
    assert one.best_gain() == ten.best_gain()
    assert one.scale == pytest.approx(ten.scale)  # the residual's own gradient does not change with its size
    scaled = found(model, (x, y), lambda predict, b: 100 * (predict(b[0])[:, 0] - b[1]).square())
    assert scaled.best_gain() / scaled.scale == pytest.approx(one.best_gain() / one.scale / 100)


def test_noisier_data_is_held_closer_to_the_prior() -> None:
    gains = [found(nn.Linear(5, 1).double(), noisy_line(noise)).best_gain() for noise in (0.01, 1.0, 10.0)]
    assert gains[0] > gains[1] > gains[2]


def test_the_least_gain_that_is_as_good_as_the_best_and_for_classes_no_more_than_one() -> None:
    falling = Linearised(1.0, tuple(1 / (1 + GAINS)), (0.0,) * len(GAINS))
    assert falling.gain == GAINS[-1]
    assert replace(falling, classes=True).gain == 1.0
    unsure = Linearised(1.0, tuple(1 / (1 + GAINS)), (0.1,) * len(GAINS))
    assert unsure.gain == pytest.approx(9, rel=0.3)
    rising = Linearised(1.0, tuple(1 + GAINS), (0.0,) * len(GAINS))
    assert rising.gain == replace(rising, classes=True).gain == GAINS[0]


@pytest.mark.parametrize("name", ["mlp", "batchnorm", "tied"])
def test_the_network_is_left_as_it_was(name: str) -> None:
    model = build(name)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    modes = [m.training for m in model.modules()]
    batches = TensorBatches(rows(80), 40)
    assert linearise(Posterior(model), batches, as_loss(None, rows(80)), seed=0) is not None
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert [m.training for m in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())


def test_batches_of_any_kind_agree_with_rows() -> None:
    data = rows(50)
    loss = as_loss(None, data)
    by_row = linearise(Posterior(build("mlp")), TensorBatches(data, 50), loss, seed=0)
    by_batch = linearise(Posterior(build("mlp")), LoaderBatches([data], CPU), loss, seed=0)
    assert by_row is not None
    assert by_batch is not None
    assert by_row.left_out == pytest.approx(by_batch.left_out, rel=1e-3)


def test_what_cannot_be_linearised_falls_back() -> None:
    model = build("mlp")
    flat = CallableLoss.of(lambda predict, batch: 0.0 * predict(batch[0]).sum(1))
    batches = TensorBatches(rows(50), 50)
    with collected() as notes:
        assert linearise(Posterior(model), batches, flat, seed=0) is None
    assert "no example has a finite loss with a gradient" in notes[0]
    with collected():
        assert held_gamma(AUTO, strength(AUTO, Posterior(model), batches, flat, 0), 0.1) == AUTO.gamma_max


def test_classes_are_recognised() -> None:
    x, y = rows(4)
    custom = CallableLoss.of(lambda predict, batch: predict(batch[0])[:, 0])
    assert as_loss("cross_entropy", (x, y)).names_classes((x, y))
    assert not as_loss("mse", (x, x[:, 0])).names_classes((x, x[:, 0]))
    assert custom.names_classes((x, y))
    assert custom.names_classes({"x": x, "labels": y})
    assert not custom.names_classes((x, x[:, 0]))
    assert not custom.names_classes(x)
