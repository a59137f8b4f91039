"""Each formula of a step against the same formula in numpy, and Adam against torch's own."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pactrain.training.update_formulas import (
    BETA1,
    Moves,
    Vectors,
    draw_weights,
    information,
    numbers_of,
    update,
)

WEIGHTS, KL_WEIGHT, MEMORY, RATE = 40, 0.02, 0.9, 0.05
PRECISION = torch.full((WEIGHTS,), 25.0, dtype=torch.float64)


def vectors(**changes: Tensor) -> Vectors:
    """Vectors of a network some way into training."""
    g = torch.Generator().manual_seed(0)
    drawn = [torch.randn(WEIGHTS, generator=g, dtype=torch.float64) for _ in Vectors._fields]
    own = Vectors(*drawn)
    return own._replace(curvature=own.curvature.abs(), second_moment=own.second_moment.abs())._replace(**changes)


def in_numpy(v: Vectors) -> dict[str, np.ndarray]:
    """Copies, which no step changes."""
    return {name: tensor.numpy().copy() for name, tensor in v._asdict().items()}


def test_a_draw_is_mean_plus_std_times_noise() -> None:
    v = vectors()
    b = in_numpy(v)
    root = draw_weights(v.curvature, v.means, v.draw, PRECISION, KL_WEIGHT, out=v.draw)
    precision = 25.0 + b["curvature"] / KL_WEIGHT
    assert root.numpy() == pytest.approx(np.sqrt(precision))
    assert v.draw.numpy() == pytest.approx(b["means"] + b["draw"] / np.sqrt(precision))


@pytest.mark.parametrize("moves", ["natural", "none"])
def test_a_step_is_that_of_the_formulas(moves: Moves) -> None:
    v = vectors()
    b = in_numpy(v)
    update(v, PRECISION, numbers_of(3, kl_weight=KL_WEIGHT, memory=MEMORY, rate=RATE), moves)
    std2 = 1 / (25.0 + b["curvature"] / KL_WEIGHT)
    gap = b["curvature"] - b["grads"] * (b["draw"] - b["means"]) / std2
    curvature = b["curvature"] - 0.1 * gap + 0.5 * 0.1**2 * gap**2 * std2 / KL_WEIGHT
    assert v.curvature.numpy() == pytest.approx(np.maximum(curvature, 0))
    assert not v.grads.any()
    if moves == "none":
        assert (v.means.numpy() == b["means"]).all()
        return
    slope = b["grads"] + KL_WEIGHT * 25.0 * (b["means"] - b["prior_mean"])
    momentum = BETA1 * b["first_moment"] + (1 - BETA1) * slope
    weight = v.curvature.numpy() + KL_WEIGHT * 25.0
    newton = momentum / weight / (1 - BETA1**4)
    limit = np.sqrt(KL_WEIGHT / weight)  # one std
    assert v.means.numpy() == pytest.approx(b["means"] - RATE * np.clip(newton, -limit, limit))


def test_without_stds_adam_is_torchs_on_the_gradient_alone() -> None:
    zeros = torch.zeros(WEIGHTS, dtype=torch.float64)
    v = vectors(first_moment=zeros.clone(), second_moment=zeros.clone())
    p = torch.nn.Parameter(v.means.clone())
    optimizer = torch.optim.Adam([p], lr=RATE)
    for step in range(3):
        gradient = torch.sin(torch.arange(WEIGHTS, dtype=torch.float64) + step)
        p.grad = gradient.clone()
        optimizer.step()
        v.grads.copy_(gradient)
        before = v.curvature.clone()
        update(v, PRECISION, numbers_of(step, kl_weight=KL_WEIGHT, memory=MEMORY, rate=RATE), "adam", stds=False)
        assert torch.equal(v.curvature, before)
        assert v.means.numpy() == pytest.approx(p.detach().numpy())


def test_numbers_that_are_tensors_give_what_floats_give() -> None:
    """Compiled code passes tensors."""
    v = vectors()
    numbers = numbers_of(5, kl_weight=KL_WEIGHT, memory=MEMORY, rate=RATE)
    other = Vectors(*(t.clone() for t in v))
    update(v, PRECISION, numbers, "natural")
    update(other, PRECISION, type(numbers)(*(torch.tensor(x, dtype=torch.float64) for x in numbers)), "natural")
    for one, two in zip(v, other, strict=True):
        assert one.numpy() == pytest.approx(two.numpy())


def test_information_never_falls_below_the_prior() -> None:
    found = information(torch.zeros(3), torch.tensor(4.0), KL_WEIGHT)
    assert found.tolist() == [4.0] * 3
    assert float(information(torch.tensor(1.0), torch.tensor(4.0), 0.5)) == 4 + 1 / 0.5
    assert math.isinf(float(information(torch.tensor(math.inf), torch.tensor(4.0), 0.5)))
