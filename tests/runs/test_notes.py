"""What the user is told beside the numbers."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.certification.before_training import Described
from pactrain.models.mlp import mlp
from pactrain.runs.notes import _notes_on_constant, _notes_on_gap, _notes_on_linear
from tests.zoo import build, rows

ENCODING = {"numeric": [{"name": f"n{i}", "mean": 0.0, "std": 1.0} for i in range(6)], "categorical": []}


def test_a_short_budget_is_told() -> None:
    short = pactrain.fit(build("mlp"), rows(), budget=0.01)
    assert any("The budget ended training after" in note for note in short.notes)
    for enough in ("1h", "3 epochs"):  # whoever says how many epochs has asked for them
        assert not any("budget" in note for note in pactrain.fit(build("mlp"), rows(), budget=enough).notes)


def test_a_budget_that_is_far_too_short_says_nothing_about_linear_models() -> None:
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    found = pactrain.fit(mlp(5, 2, seed=0), (x[:100], y[:100]), test=(x[100:], y[100:]), budget=0.01)
    assert found.metrics["rivals"]["linear"]["accuracy"] > found.metrics["test"]["accuracy"] + 0.02
    assert [note.split()[1] for note in found.notes if "linear model" in note or "budget" in note] == ["budget"]


def test_noise_is_no_better_than_guessing() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(120, 5, generator=g), torch.randint(0, 2, (120,), generator=g)
    found = pactrain.fit(nn.Linear(5, 2), (x[:60], y[:60]), test=(x[60:], y[60:]))
    assert any("no better than" in note for note in found.notes), (found.metrics, found.notes)
    assert not any("does not carry over" in note for note in found.notes)  # there is nothing to carry over


def test_the_scale_of_features_that_an_encoder_made_is_not_the_users() -> None:
    x, y = rows()
    x[:, 1] = 80 + 0.01 * x[:, 1]
    for preprocess, told in (({}, True), (ENCODING, False)):
        data = Described((x, y), config={"preprocess": preprocess})
        found = pactrain.fit(build("mlp"), data, budget="2 epochs")
        assert any("Column 1 of the inputs" in note for note in found.notes) is told


def scores(train: float, test: float, *, constant: float, linear: float, name: str = "accuracy") -> dict[str, object]:
    """Metrics with the rivals' scores."""
    return {
        "train": {name: train},
        "test": {name: test},
        "rivals": {"constant": {"name": "guessing", name: constant}, "linear": {"name": "a line", name: linear}},
    }


def _on_rivals(metrics: dict[str, object]) -> list[str]:
    return _notes_on_constant(metrics) or _notes_on_linear(metrics)


def test_rivals_are_named_only_when_they_win() -> None:
    assert _on_rivals(scores(1.0, 0.9, constant=0.5, linear=0.91)) == []
    assert "linear model does better" in _on_rivals(scores(1.0, 0.9, constant=0.5, linear=0.95))[0]
    assert "no better than guessing" in _on_rivals(scores(1.0, 0.5, constant=0.5, linear=0.95))[0]
    useful = scores(1.0, 0.5, constant=0.5, linear=0.5)
    useful["test"]["auc"] = 0.9  # type: ignore[index]
    assert _on_rivals(useful) == []
    assert _on_rivals(scores(1.0, 2.0, constant=3.0, linear=2.01, name="rmse")) == []
    assert "linear model does better" in _on_rivals(scores(1.0, 2.0, constant=3.0, linear=1.5, name="rmse"))[0]
    assert "no better than guessing" in _on_rivals(scores(1.0, 3.0, constant=3.0, linear=1.5, name="rmse"))[0]


def test_a_wide_gap_is_told() -> None:
    assert _notes_on_gap(scores(1.0, 0.9, constant=0.5, linear=0.5)) == []
    assert "does not carry over" in _notes_on_gap(scores(1.0, 0.8, constant=0.5, linear=0.5))[0]
    assert _notes_on_gap(scores(1.0, 1.9, constant=9.0, linear=9.0, name="rmse")) == []
    assert "does not carry over" in _notes_on_gap(scores(1.0, 2.1, constant=9.0, linear=9.0, name="rmse"))[0]


def line(columns: int, noise: float) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(60, columns, generator=source)
    return x, x.sum(1) / columns**0.5 + noise * torch.randn(60, generator=source)


def test_memorised_regression_is_told() -> None:
    result = pactrain.fit(mlp(80, 1, seed=0), line(80, 0.0))
    assert result.metrics["train"]["loss"] < 1e-3
    assert any(note.startswith("The training rows have been memorised") for note in result.notes)
    assert any("more columns (80) than rows (60)" in note for note in result.notes)


def test_regression_that_is_not_memorised_is_not_said_to_be() -> None:
    result = pactrain.fit(mlp(2, 1, seed=0), line(2, 0.5), budget="60 epochs")
    assert not any("memorised" in note for note in result.notes)


def test_rows_that_others_say_nothing_about_are_told() -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    noise = torch.randint(0, 2, (60,), generator=torch.Generator().manual_seed(1))
    for y, told in ((noise, True), ((x[:, 0] > 0).long(), False)):
        notes = pactrain.fit(mlp(3, 2, seed=0), (x, y)).notes
        assert any(note.startswith("Rows that are left out would be predicted hardly better") for note in notes) == told


def test_guessing_is_not_spoken_of_where_the_classes_are_not_known() -> None:
    found = pactrain.fit(build("mlp"), DataLoader(TensorDataset(*rows()), batch_size=30))
    assert found.metrics["left_out"]
    assert not any("by guessing" in note for note in found.notes)


def test_copied_rows_are_told() -> None:
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    x, y = torch.cat([x, x[:10]]), (torch.cat([x, x[:10]])[:, 0] > 0).long()
    for rows_kept, told in ((70, True), (60, False)):
        notes = pactrain.fit(mlp(4, 2, seed=0), (x[:rows_kept], y[:rows_kept])).notes
        assert any("10 of the 70 training rows are copies" in note for note in notes) == told
