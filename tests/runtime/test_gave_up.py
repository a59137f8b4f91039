"""What rules cannot do is told in the notes of `fit`; errors of our own surface."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pactrain
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.presets import AUTO
from pactrain.runtime.gave_up import collected, gave_up
from tests.zoo import rows

REFUSED = "); "
"""In every sentence about what was not done: behind the reason, before what was done instead."""

SHORT = AUTO.replace(fixed_epochs=8)


class Guarded(nn.Module):
    """A network that checks, as users' networks do, what it is called with."""

    def __init__(self, net: nn.Module, check: Callable[[nn.Module, Tensor], bool]) -> None:
        super().__init__()
        self.net, self.check = net, check

    def forward(self, x: Tensor) -> Tensor:
        assert self.check(self, x), "not such a call"
        out: Tensor = self.net(x)
        return out


def perceptron(outputs: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, outputs))


def fitted(model: nn.Module, data: Any, **options: Any) -> pactrain.Result:
    return pactrain.fit(model, data, preset=SHORT, budget="10 epochs", **options)


def notes_of(model: nn.Module, data: Any, **options: Any) -> str:
    return "\n".join(fitted(model, data, **options).notes)


def images() -> tuple[Tensor, Tensor]:
    x = torch.rand(40, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0, 0, 0] > 0.5).long()


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))


def numbers(scale: float = 1.0) -> tuple[Tensor, Tensor]:
    x = torch.rand(60, 6, generator=torch.Generator().manual_seed(0)) + 0.1
    return x, scale * x[:, :1]


# -- networks and losses that refuse -----------------------------------------------------------------------------------


def test_nothing_is_told_where_nothing_fails() -> None:
    assert fitted(perceptron(), rows()).notes == []
    assert REFUSED not in notes_of(Recurrent(), rows())  # though vmap takes no LSTM


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.cells(x[:, :, None])[0][:, -1])
        return out


def test_a_network_that_takes_no_single_row_has_no_gamma_of_its_own() -> None:
    result = fitted(Guarded(convolution(), lambda _, x: len(x) > 1), images())
    assert result.metrics["held_gamma"] == AUTO.gamma_max
    assert any(
        "(γ) was not measured" in note and "(AssertionError: not such a call); the largest γ" in note
        for note in result.notes
    )


def test_a_loss_for_many_rows_only_has_no_gamma_of_its_own() -> None:
    def loss(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]).squeeze(), batch[1].squeeze(), reduction="none")

    assert "(γ) was not measured on the untrained network (the loss returned ()" in notes_of(
        perceptron(), rows(), loss=loss
    )


def test_a_network_that_takes_no_gradient_of_many_rows() -> None:
    linear = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    few: Callable[[nn.Module, Tensor], bool] = lambda net, x: (  # noqa: E731
        net.training or len(x) == 1 or not torch.is_grad_enabled()
    )
    told = notes_of(Guarded(linear, few), rows())
    assert "The network was not measured on 48 examples in one pass (AssertionError" in told


def test_a_network_that_takes_no_weights_but_its_own() -> None:
    told = notes_of(nn.Sequential(nn.LayerNorm(6), Own(6, 3)), rows())
    assert "Losses of several networks of the prior" in told
    assert "not computed together (AssertionError: where is my parameter?); they are computed one after" in told


class Own(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        assert isinstance(self.weight, nn.Parameter), "where is my parameter?"
        return super().forward(x)


def test_predictions_of_draws_tell_by_a_warning() -> None:
    class Unbatched(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if torch._C._functorch.is_batchedtensor(self.weight):
                raise KeyError("batched")
            return super().forward(x)

    posterior = pactrain.Posterior(Unbatched(6, 3))
    plain = pactrain.Posterior(nn.Linear(6, 3))
    plain.load_state_dict(posterior.state_dict())
    with pytest.warns(UserWarning, match="Predictions of several draws were not computed together .KeyError"):
        found = posterior.predict(rows()[0], draws=4)
    torch.testing.assert_close(found.mean, plain.predict(rows()[0], draws=4).mean)


def test_a_loss_of_two_outputs_has_no_search_for_gamma() -> None:
    def loss(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]) + predict(-batch[0]), batch[1], reduction="none")

    assert "The search for a better γ" in notes_of(perceptron(), rows(), loss=loss)
    assert "γ" not in notes_of(perceptron(1), numbers(), loss="l1")  # no curvature: the rules leave it out


def test_a_loss_without_a_second_derivative_has_no_search_for_gamma() -> None:
    def loss(predict: Any, batch: Any) -> Tensor:
        return F.multi_margin_loss(predict(batch[0]), batch[1], margin=50.0, reduction="none")

    told = notes_of(perceptron(), rows(), loss=loss)
    assert "The search for a better γ" in told
    assert "RuntimeError: derivative for aten::multi_margin_loss_backward is not implemented" in told
    assert "γ" not in notes_of(perceptron(), rows(), loss="hinge")  # the rules leave it out


def test_whole_numbers_that_could_not_be_tried() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(9, 4)
            self.head = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            if len(x) == 2:
                raise LookupError("two rows")
            out: Tensor = self.head(self.words(x).mean(1))
            return out

    x = torch.randint(9, (60, 5), generator=torch.Generator().manual_seed(0))
    told = notes_of(Words(), (x, (x[:, 0] > 4).long()))
    assert "was not found with 2 rows (LookupError: two rows); inputs in whole numbers are left as they are" in told


def test_images_that_must_be_contiguous() -> None:
    told = notes_of(Guarded(convolution(), lambda _, x: x.is_contiguous()), images())
    assert "Images were not laid out with their channels last (AssertionError" in told
    expected = nn.Sequential(nn.Conv2d(2, 3, 3), View(), nn.Linear(12, 2))  # torch says what it cannot do
    assert REFUSED not in notes_of(expected, images())


class View(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(len(x), -1)


def test_data_whose_units_could_not_be_tried() -> None:
    x, y = numbers()
    positive: Callable[[nn.Module, Tensor], bool] = lambda _, x: bool((x >= 0).all())  # noqa: E731
    told = notes_of(Guarded(perceptron(1), positive), (x * 500, y))
    assert "could not be tried in other units (AssertionError: not such a call); they are trained on as" in told
    assert "Whether the initial weights pass on enough was not measured with random inputs (AssertionError" in told
    assert "scaled" not in notes_of(Guarded(perceptron(1), positive), (x, y))  # of a size that needs no units
    large: Callable[[nn.Module, Tensor], bool] = lambda _, x: len(x) == 4 or float(x.max()) > 400  # noqa: E731
    told = notes_of(Guarded(perceptron(1), large), (x * 500, y))
    assert "could not be tried in other units (AssertionError: not such a call); they are trained on as" in told


@pytest.mark.parametrize("least", [-torch.inf, 50.0])
def test_losses_whose_unit_could_not_be_tried(least: float) -> None:
    def squares(output: Tensor, target: Tensor) -> Tensor:
        assert bool((target > least).all()), "too small"
        return LOSSES["mse"].per_example(output, target)

    told = notes_of(perceptron(1), (numbers()[0], 100 + numbers(1000)[1]), loss=Loss("squares", squares, "regression"))
    assert ("could not be tried in other units (AssertionError: too small); they are trained on" in told) == (least > 0)


# -- bugs of our own ---------------------------------------------------------------------------------------------------


def tables() -> tuple[nn.Module, Any]:
    x, y = numbers(1000)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)), (x * 1000, y)


def classes() -> tuple[nn.Module, Any]:
    return perceptron(), rows()


def pictures() -> tuple[nn.Module, Any]:
    x, y = images()
    return convolution(), ((255 * x).to(torch.uint8), y)


@pytest.mark.parametrize("error", [NameError, AttributeError, KeyError, AssertionError])
@pytest.mark.parametrize(
    ("where", "made"),
    [
        ("pactrain.rules.gamma.linear_leave_one_out.Examples", classes),
        ("pactrain.rules.gamma.example_kernel.factors_of", classes),
        ("pactrain.rules.gamma.example_kernel.Examples._one_by_one", None),
        ("pactrain.rules.gamma.walk.LeaveOneOut", classes),
        ("pactrain.rules.gamma.trained_leave_one_out.LeaveOneOut._find_rows", classes),
        ("pactrain.rules.gamma.example_kernel._inner_products", tables),
        ("pactrain.rules.gamma.trained_leave_one_out.LeaveOneOut._derivatives", classes),
        ("pactrain.scan.prior_losses.PriorLosses._together", classes),
        ("pactrain.scan.prior_losses.rows_of_each", classes),
        ("pactrain.distributions.sampling._places", classes),
        ("pactrain.rules.initial_scale.hooked", classes),
        ("pactrain.rules.choose_units.ends_of", tables),
        ("pactrain.rules.choose_units.same_answers", tables),
        ("pactrain.rules.choose_units._degree", tables),
        ("pactrain.problem.units.alike", tables),
        ("pactrain.rules.choose_units._has_learned", tables),
        ("pactrain.problem.input_types.predict_batch", pictures),
        ("pactrain.problem.input_types.restored_buffers", pictures),
        ("pactrain.problem.read.restored_buffers", pictures),
        ("pactrain.problem.read.per_example", pictures),
    ],
)
def test_a_bug_of_our_own_surfaces(
    where: str,
    made: Callable[[], tuple[nn.Module, Any]] | None,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OurBug(error):  # type: ignore[valid-type,misc]
        pass

    def broken(*_: Any, **__: Any) -> Any:
        raise OurBug

    x, y = rows()
    loader = nn.Linear(6, 3), [(x[:24], y[:24]), (x[24:], y[24:])]  # whose rows share a forward pass
    model, data = loader if made is None else made()
    monkeypatch.setattr(where, broken)
    with pytest.raises(OurBug):
        fitted(model, data)


# -- the mechanism -----------------------------------------------------------------------------------------------------


def test_notes_belong_to_one_fit_and_are_told_once() -> None:
    told: list[str] = []

    def inner(event: Any) -> None:
        if event.phase == "train" and not told:
            told.extend(fitted(Guarded(convolution(), lambda _, x: len(x) > 1), images()).notes)

    assert fitted(perceptron(), rows(), callbacks=[inner]).notes == []
    assert sum(REFUSED in note for note in told) == 1
    with collected() as notes:
        for _ in range(2):
            gave_up("A", KeyError("b\nc"), instead="d")
    assert notes == ["A (KeyError: 'b\\nc'); d."]
    with pytest.warns(UserWarning, match=r"A \(b\); c\."):
        gave_up("A", "b", instead="c")


def test_notes_are_kept_with_the_run(tmp_path: Path) -> None:
    result = fitted(Guarded(convolution(), lambda _, x: len(x) > 1), images(), out=tmp_path / "run")
    assert result.notes
    assert "not such a call" in (tmp_path / "run" / "metrics.json").read_text()
    assert "not such a call" in (tmp_path / "run" / "report.html").read_text()
