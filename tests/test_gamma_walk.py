"""The walk in γ: where it goes, what it sets aside, and that it can be interrupted."""

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from sklearn.datasets import load_digits, load_iris
from torch import Tensor, nn

import pactrain
from pactrain.models.mlp import mlp
from pactrain.rules.gamma.trained_leave_one_out import Answer
from pactrain.rules.gamma.walk import LEAST_FALL, LENGTHS, STEP, STEPS_DOWN, GammaWalk, longest
from pactrain.rules.presets import AUTO, CERTIFY
from pactrain.runs import folder as runs
from pactrain.runtime.events import Event
from tests.test_runs import epochs_of

SHORT = AUTO.replace(fixed_epochs=16)


def walked(
    losses: list[float],
    *,
    seen: float = 0.0,
    most: float = 2000.0,
    slopes: str = "++++++",
    wrong: tuple[float, ...] = (0.1,) * 6,
) -> GammaWalk:
    """`slopes` says of each place whether the network is too sure of itself there."""
    walk, epoch = GammaWalk(100.0, 40, most), 0.0
    for k, (loss, slope, errors) in enumerate(zip(losses, slopes, wrong, strict=False)):
        epoch += 40 * LENGTHS[min(k, 1)]
        assert walk.part(epoch - 1) < 1
        assert walk.part(epoch) == 1
        assert epoch <= longest(40)
        if not walk.go_on(Answer(loss, float(slope + "1"), errors), epoch, seen=seen):
            break
    return walk


def test_it_goes_up_where_what_was_seen_is_hardly_fitted() -> None:
    better = walked([1.0, 0.5, 0.3, 0.4], seen=0.9)
    assert list(better.answers) == [0, -1, -2]  # γ = 100 · 10^1.5 would exceed the most
    assert better.gamma == pytest.approx(100 * STEP**2)
    no_better = walked([1.0, 1.1, 0.5, 0.6], seen=0.9)
    assert list(no_better.answers) == [0, -1, 1, 2]
    assert no_better.gamma == pytest.approx(100 / STEP)
    more_wrong = walked([1.0, 0.99, 0.9, 0.8, 0.7], seen=0.9, wrong=(0.1, 0.2, 0.1, 0.1, 0.1))
    assert list(more_wrong.answers) == [0, -1, 1, 2, 3]
    assert more_wrong.gamma == pytest.approx(100 / STEP**3)
    assert list(walked([1.0, 0.5, 0.6], seen=0.9, most=300.0).answers) == [0, 1, 2]
    assert list(walked([1.0, 0.5, 0.6], seen=0.4).answers) == [0, 1, 2]


def wrongly_labelled() -> tuple[Tensor, Tensor]:
    """300 digits, 40 % of them with a label at random."""
    digits = load_digits()
    x, y = torch.tensor(digits.data[:300] / 16, dtype=torch.float32), torch.tensor(digits.target[:300])
    source = torch.Generator().manual_seed(0)
    wrong = torch.rand(300, generator=source) < 0.4
    return x, torch.where(wrong, torch.randint(10, (300,), generator=source), y)


def test_the_stds_after_going_back_are_those_of_the_place_it_goes_back_to() -> None:
    result = pactrain.fit(mlp(64, 10, seed=0), wrongly_labelled(), preset=AUTO.replace(fixed_epochs=60))
    assert result.metrics["held_gamma"] != result.metrics["left_out"][-1]["gamma"]
    assert float(result.posterior.kl_by_group().sum()) == pytest.approx(result.metrics["stage1"]["kl"], rel=1e-6)


@pytest.mark.parametrize("crash", [60, 70, 90])
def test_a_run_that_goes_up_can_be_interrupted(crash: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    x, y = load_iris(return_X_y=True)
    data = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    rules = AUTO.replace(fixed_epochs=60, class_signal=0.0)  # from a low first guess

    def stop(event: Event) -> None:
        if event.phase == "train" and event.done == crash:
            raise RuntimeError("the power goes off")

    whole = pactrain.fit(mlp(4, 3, seed=0), data, preset=rules)
    assert whole.metrics["left_out"][1]["gamma"] > whole.metrics["left_out"][0]["gamma"]
    assert len(whole.history) >= 90
    with pytest.raises(RuntimeError, match="power"):
        pactrain.fit(mlp(4, 3, seed=0), data, preset=rules, out=tmp_path / "run", callbacks=[stop])
    events: list[Event] = []
    again = pactrain.fit(
        mlp(4, 3, seed=0), data, preset=rules, out=tmp_path / "run", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events)[0] == crash + 1
    assert again.metrics["left_out"] == whole.metrics["left_out"]
    assert torch.equal(again.posterior.log_std, whole.posterior.log_std)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True))


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
    assert (walk.here, len(walk.answers)) == (STEPS_DOWN, STEPS_DOWN + 1)


def test_a_slight_fall_is_not_enough() -> None:
    walk = walked([2.0, 1.0, 0.99 * (1 - LEAST_FALL), 0.98 * (1 - LEAST_FALL)])
    assert (walk.here, len(walk.answers)) == (2, 4)
    below_zero = walked([-2.0, -1.9])
    assert below_zero.here == 0
    in_the_end = walked([2.0, 1.9, 1.0, 1.1])
    assert in_the_end.here == 2


def test_on_the_way_up_a_slight_fall_is_enough() -> None:
    walk = walked([1.0, 0.99, 0.98, 1.2], seen=0.9, most=1e4)
    assert (walk.here, list(walk.answers)) == (-2, [0, -1, -2, -3])
    assert walked([1.0, 0.99, 1.2], seen=0.9, wrong=(0.3, 0.31, 0.3)).here == 0


def test_it_goes_no_further_down_where_the_network_is_not_too_sure_of_itself() -> None:
    assert list(walked([0.2, 0.1], slopes="-").answers) == [0]
    soon = walked([3.0, 2.0, 1.0, 0.5], slopes="++-")
    assert (soon.here, list(soon.answers)) == (2, [0, 1, 2])
    assert list(walked([1.0, 1.1, 0.5], seen=0.9, slopes="-+").answers) == [0, -1]


def test_a_place_with_more_examples_wrong_is_not_taken() -> None:
    assert walked([3.0, 2.0, 2.9], wrong=(0.1, 0.11, 0.1)).here == 0
    later = walked([3.0, 2.0, 1.0, 1.5], wrong=(0.1, 0.11, 0.1, 0.1))
    assert (later.here, list(later.answers)) == (2, [0, 1, 2, 3])


def test_clean_labels_need_one_question() -> None:
    digits = load_digits()
    x, y = torch.tensor(digits.data[:300] / 16, dtype=torch.float32), torch.tensor(digits.target[:300])
    (only,) = pactrain.fit(mlp(64, 10, seed=0), (x, y)).metrics["left_out"]
    assert only["slope"] < 0 < only["loss"]


def problem(wrong: float) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(120, 10, generator=source)
    y = (x[:, 0] + x[:, 1] > 0).long()
    flipped = torch.rand(len(y), generator=source) < wrong
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2)), (x, torch.where(flipped, 1 - y, y))


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
    assert AUTO.held_gamma(None, 0.1, normalised=5000) * 5000 == pytest.approx(AUTO.normalised_gamma_n)
    assert AUTO.held_gamma(None, 0.1, normalised=10) == AUTO.gamma_max
    assert AUTO.held_gamma(None, 0.1) == CERTIFY.held_gamma(None, 0.1, normalised=5000) == AUTO.gamma_max
    model = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    x = torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    result = pactrain.fit(model, (x, (x[:, 0] > 0).long()), preset=AUTO.replace(fixed_epochs=2))
    assert result.metrics["held_gamma"] == pytest.approx(AUTO.normalised_gamma_n / 500)


@pytest.mark.parametrize("epoch", [8, 17, 19])
def test_a_walk_that_was_cut_off_ends_with_the_same_bits(
    epoch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)

    class Crash(Exception):
        pass

    def crash(event: Any) -> None:
        if event.phase == "train" and event.done == epoch:
            raise Crash

    model, data = problem(0.35)
    whole = pactrain.fit(model, data, preset=SHORT)
    assert whole.metrics["stage1_epochs"] > epoch
    with pytest.raises(Crash):
        pactrain.fit(problem(0.35)[0], data, preset=SHORT, out=tmp_path / "run", callbacks=[crash])
    events: list[Event] = []
    again = pactrain.fit(
        problem(0.35)[0], data, preset=SHORT, out=tmp_path / "run", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events)[0] == epoch + 1
    assert again.metrics["held_gamma"] == whole.metrics["held_gamma"]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name


def test_a_short_budget_is_spent_on_the_guess() -> None:
    model, data = problem(0.35)
    few = pactrain.fit(model, data, preset=SHORT, budget="8 epochs")
    guess = pactrain.fit(problem(0.35)[0], data, preset=SHORT.replace(held="left out"), budget="8 epochs")
    assert few.metrics["held_gamma"] == guess.metrics["held_gamma"]
    assert all(torch.equal(v, guess.model.state_dict()[k]) for k, v in few.model.state_dict().items())


def test_a_walk_cut_short_by_the_budget_ends_at_its_best() -> None:
    result = pactrain.fit(*problem(0.35), preset=SHORT, budget="18 epochs")  # two epochs after the first question
    tried = result.metrics["left_out"]
    assert len(tried) == 1
    assert result.metrics["held_gamma"] == tried[0]["gamma"]
    assert result.metrics["stage1"]["risk"] == result.history[15]["risk"]


def test_a_second_stage_after_the_walk_keeps_to_the_budget() -> None:
    rules = SHORT.replace(stage2_share=0.5, enter_stage2=0.0)
    result = pactrain.fit(*problem(0.35), preset=rules, budget="12 epochs")
    assert len(result.history) <= 12
    assert result.metrics["stage2_epochs"] > 0
