"""The walk in γ: where it goes and when it ends."""

from typing import Literal

import pytest
import torch
from sklearn.datasets import load_digits, load_iris
from torch import nn

import pactrain
from pactrain.models.mlp import mlp
from pactrain.rules.constants import FURTHER_LENGTH, NORMALISED_KL_WEIGHT, STEPS
from pactrain.rules.constants import GAMMA_STEP as STEP
from pactrain.rules.gamma.trained_leave_one_out import LeftOutEstimate
from pactrain.rules.gamma.walk import GammaWalk, longest
from pactrain.rules.presets import AUTO, CERTIFY
from pactrain.rules.start_values import held_gamma
from tests.rules.gamma.walks import SHORT, problem, wrongly_labelled


def walked(
    losses: list[float],
    *,
    most: float = 2000.0,
    slopes: str = "++++++",
    wrong: tuple[float, ...] = (0.1,) * 6,
) -> GammaWalk:
    """`slopes` says of each place whether the network is too sure of itself there."""
    walk, epoch = GammaWalk(100.0, 40, most), 0.0
    for k, (loss, slope, errors) in enumerate(zip(losses, slopes, wrong, strict=False)):
        epoch += 40 * (FURTHER_LENGTH if k else 1)
        assert walk.part(epoch - 1) < 1
        assert walk.part(epoch) == 1
        assert epoch <= longest(40)
        if not walk.go_on(LeftOutEstimate(loss, float(slope + "1"), errors), epoch):
            break
    return walk


def test_it_goes_up_where_the_network_is_not_sure_enough() -> None:
    better = walked([1.0, 0.5, 0.3, 0.4], slopes="----")
    assert list(better.answers) == [0, -1, -2, -3]
    assert better.gamma == pytest.approx(100 * STEP**2)
    at_most = walked([1.0, 0.5, 0.3, 0.2], slopes="----", most=300.0)
    assert (at_most.gamma, list(at_most.answers)) == (300.0, [0, -1])
    no_better = walked([1.0, 1.1, 0.5], slopes="---")
    assert (no_better.here, list(no_better.answers)) == (0, [0, -1])
    too_sure_there = walked([1.0, 0.5, 0.3], slopes="-+-")
    assert (too_sure_there.here, list(too_sure_there.answers)) == (-1, [0, -1])
    assert list(walked([1.0, 0.5], slopes="--", most=100.0).answers) == [0]


def test_inputs_that_were_not_scaled_are_learned() -> None:
    x, y = load_iris(return_X_y=True)
    data = torch.tensor(x[::2], dtype=torch.float32), torch.tensor(y[::2])
    model = mlp(4, 3, seed=0)
    result = pactrain.fit(model, data)
    first, second, *_ = (tried["gamma"] for tried in result.metrics["left_out"])
    assert second == pytest.approx(STEP * first)
    with torch.no_grad():
        right = model(torch.tensor(x[1::2], dtype=torch.float32)).argmax(1) == torch.tensor(y[1::2])
    assert float(right.float().mean()) > 0.9


def test_it_goes_down_while_the_left_out_loss_falls_and_then_back_to_the_best() -> None:
    clean = walked([0.1, 0.2])
    assert (clean.here, clean.gamma) == (0, 100.0)
    noisy = walked([3.0, 2.0, 1.0, 1.5])
    assert noisy.here == 2
    assert noisy.gamma == pytest.approx(100 / STEP**2)


def test_it_ends_where_it_is_when_the_last_place_is_the_best() -> None:
    walk = walked([4.0, 3.0, 2.0, 1.0])
    assert (walk.here, len(walk.answers)) == (STEPS, STEPS + 1)


def test_a_fall_within_one_standard_error_is_not_enough() -> None:
    def answers(*means: float) -> GammaWalk:
        walk = GammaWalk(100.0, 40)
        for k, mean in enumerate(means):
            losses = [mean + (-1) ** (i // 2**k) for i in range(96)]  # the standard error of a difference is 0.14
            walk.go_on(LeftOutEstimate(mean, 1.0, 0.1, losses), 40.0 + 10 * k)
        return walk

    assert answers(2.0, 1.9, 1.88, 1.9).here == 0
    assert answers(2.0, 1.7, 1.6, 1.65).here == 1
    assert answers(2.0, 1.9, 1.7, 1.8).here == 2


def test_without_an_error_any_fall_is_enough() -> None:
    walk = walked([2.0, 1.0, 0.99, 0.98])
    assert (walk.here, len(walk.answers)) == (3, 4)
    below_zero = walked([-2.0, -1.9])
    assert below_zero.here == 0
    in_the_end = walked([2.0, 1.9, 1.0, 1.1])
    assert in_the_end.here == 2


def test_on_the_way_up_a_slight_fall_is_enough() -> None:
    walk = walked([1.0, 0.99, 0.98, 1.2], slopes="----", most=1e4)
    assert (walk.here, list(walk.answers)) == (-2, [0, -1, -2, -3])
    assert walked([1.0, 0.99, 1.2], slopes="---", wrong=(0.3, 0.31, 0.3)).here == -1


def test_it_goes_no_further_down_where_the_network_is_not_too_sure_of_itself() -> None:
    soon = walked([3.0, 2.0, 1.0, 0.5], slopes="++-")
    assert (soon.here, list(soon.answers)) == (2, [0, 1, 2])


def test_on_the_way_down_a_place_with_more_examples_wrong_is_not_taken() -> None:
    assert walked([3.0, 2.0, 3.1], wrong=(0.1, 0.11, 0.1)).here == 0
    later = walked([3.0, 2.0, 1.0, 1.5], wrong=(0.1, 0.11, 0.1, 0.1))
    assert (later.here, list(later.answers)) == (2, [0, 1, 2, 3])


def test_wrong_labels_lead_to_a_smaller_gamma_and_fewer_errors() -> None:
    digits = load_digits()
    x, y = torch.tensor(digits.data[300:600] / 16, dtype=torch.float32), torch.tensor(digits.target[300:600])

    def trained(held: Literal["walk", "left out"]) -> tuple[float, float]:
        result = pactrain.fit(mlp(64, 10, seed=0), wrongly_labelled(), preset=AUTO.replace(held=held, fixed_epochs=60))
        with torch.no_grad():
            return result.metrics["held_gamma"], float((result.model(x).argmax(1) == y).float().mean())

    (gamma, score), (guess, at_guess) = trained("walk"), trained("left out")
    assert gamma < 0.5 * guess
    assert score > at_guess + 0.03


def test_networks_with_batchnorm_are_held_where_they_can_learn() -> None:
    _, data = problem(0.0)
    with_norm = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
    result = pactrain.fit(with_norm, data, preset=SHORT)
    assert result.metrics["held_gamma"] == AUTO.gamma_max
    assert result.metrics["left_out"] is None
    torch.manual_seed(0)
    numbers = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
    of_numbers = pactrain.fit(numbers, (data[0], data[0][:, :1] + torch.randn(120, 1)), preset=SHORT)
    assert of_numbers.metrics["held_gamma"] != AUTO.gamma_max  # γ comes from the linearised network, as always
    frozen = nn.Sequential(nn.BatchNorm1d(10, affine=False), *problem(0.0)[0].children())
    assert pactrain.fit(frozen, data, preset=SHORT).metrics["left_out"] is not None


def test_the_divergence_of_networks_with_batchnorm_has_one_weight_however_many_examples_there_are() -> None:
    assert held_gamma(AUTO, None, 0.1, normalised=5000) * 5000 == pytest.approx(1 / NORMALISED_KL_WEIGHT)
    assert held_gamma(AUTO, None, 0.1, normalised=10) == AUTO.gamma_max
    assert held_gamma(AUTO, None, 0.1) == held_gamma(CERTIFY, None, 0.1, normalised=5000) == AUTO.gamma_max
    model = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    x = torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    result = pactrain.fit(model, (x, (x[:, 0] > 0).long()), preset=AUTO.replace(fixed_epochs=2))
    assert result.metrics["held_gamma"] == pytest.approx(1 / NORMALISED_KL_WEIGHT / 500)
