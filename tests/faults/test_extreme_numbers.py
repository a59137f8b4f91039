"""Numbers near the end of what a float holds: an error, or a result that says so; never NaN without a word."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError
from pactrain.runtime.errors import DataError
from pactrain.sklearn import PACBayesClassifier, PACBayesRegressor
from tests.faults.command import command

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

G = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=G)
Y, CLASSES = X[:, 0].clone(), (X[:, 0] > 0).long()


def weights_become(size: float) -> Callable[[nn.Module], dict[str, Any]]:
    """All weights are so large after the fifth epoch, the last."""

    def options(model: nn.Module) -> dict[str, Any]:
        def blow_up(event: Any) -> None:
            if event.phase == "train" and event.done == 5:
                with torch.no_grad():
                    for p in model.parameters():
                        p.fill_(size)

        return {"callbacks": [blow_up]}

    return options


def loss_becomes(value: float, call: int) -> Callable[[nn.Module], dict[str, Any]]:
    """The loss of every row is so large from some call on."""

    def options(_: nn.Module) -> dict[str, Any]:
        calls = 0

        def loss(predict: Any, batch: Any) -> Tensor:
            nonlocal calls
            calls += 1
            squares: Tensor = (predict(batch[0]).squeeze(1) - batch[1]).square()
            return squares if calls < call else squares * 0 + value

        return {"loss": loss}

    return options


def nothing(_: nn.Module) -> dict[str, Any]:
    return {}


CASES: dict[str, tuple[tuple[Tensor, Tensor], Callable[[nn.Module], dict[str, Any]]]] = {
    **{f"targets of {t:g}": ((X.double(), Y.double() * t), nothing) for t in (1e18, 1e30, 1e38, 1e300, 1e308)},
    **{f"features of {t:g}": ((X.double() * t, Y), nothing) for t in (1e18, 1e19, 1e30, 1e38, 1e300, 1e308)},
    **{f"features of {t:g} for classes": ((X.double() * t, CLASSES), nothing) for t in (1e19, 1e38, 1e300)},
    **{f"weights of {t:g} at the end": ((X, Y), weights_become(t)) for t in (1e10, 1e19, 1e30, 1e38)},
    **{f"weights of {t:g} for classes": ((X, CLASSES), weights_become(t)) for t in (1e19, 1e30, 1e38)},
    **{f"a loss of {v} from call {c} on": ((X, Y), loss_becomes(v, c))
       for v in (math.nan, math.inf, -math.inf, 1e38) for c in (5, 60, 150, 200)},
}  # fmt: skip


def numbers(value: Any) -> list[float]:
    """All floats in a JSON value, which holds nothing but JSON."""
    if isinstance(value, dict):
        return [x for v in value.values() for x in numbers(v)]
    if isinstance(value, list):
        return [x for v in value for x in numbers(v)]
    return [value] if isinstance(value, float) else []


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("case", CASES)
def test_an_answer_or_an_error(case: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    data, options = CASES[case]
    model = nn.Linear(3, 1 if data[1].is_floating_point() else 2)
    try:
        result = pactrain.fit(model, data, budget="5 epochs", out=tmp_path, **options(model))
    except PactrainError:
        return
    loss = result.metrics["train"]["loss"]
    assert math.isfinite(loss) or "Do not use it" in result.notes[0]
    for file in ("metrics.json", "certificate.json", "analysis.json", "config.json"):
        assert all(map(math.isfinite, numbers(json.loads((tmp_path / file).read_text(), parse_constant=refuse))))
    assert not result.certificate.problems()
    try:
        answers = result.predict(X).values
    except PactrainError as error:
        answers = np.zeros(0) if "not finite" in str(error) else np.full(1, np.nan)
    assert np.isfinite(answers).all()


@pytest.mark.parametrize("size", [1e39, 1e150, 1e300])
def test_predictions_for_huge_cells(size: float, copy: Callable[[str], Path], tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0, size, -size]}).to_csv(tmp_path / "new.csv", index=False)
    code, said = command("predict", copy("table"), tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert code != 0
    assert "row 2" in said
    assert "finite" in said or "too large" in said


@pytest.mark.parametrize("size", [1e39, 1e150, 1e300])
@pytest.mark.parametrize("column", ["x", "y"])
def test_tables_with_one_huge_cell(column: str, size: float, tmp_path: Path) -> None:
    table = pd.DataFrame({"x": X[:, 0].double().numpy(), "y": Y.double().numpy()})
    table.loc[3, column] = size
    table.to_csv(tmp_path / "t.csv", index=False)
    code, said = command(
        "train", "--data", tmp_path / "t.csv", "--target", "y", "--budget", "3 epochs", "--out", tmp_path / "r"
    )
    assert code != 0 or "nan" not in said.lower()


ESTIMATED: dict[str, tuple[Any, ...]] = {
    "targets of 1e300": (PACBayesRegressor, X, Y.double() * 1e300, X),
    "features of 1e300": (PACBayesRegressor, X.double() * 1e300, Y, X),
    "features of 1e300 for classes": (PACBayesClassifier, X.double() * 1e300, CLASSES, X),
    "new rows of 1e39": (PACBayesRegressor, X, Y, X.double() * 1e39),
    "new rows of 1e39 for classes": (PACBayesClassifier, X, CLASSES, X.double() * 1e39),
}


@pytest.mark.filterwarnings("ignore")  # notes of a short training
@pytest.mark.parametrize("draws", [None, 2])
@pytest.mark.parametrize("case", ESTIMATED)
def test_estimators_refuse_what_they_cannot_compute_with(case: str, draws: int | None) -> None:
    make, x, y, new = ESTIMATED[case]
    with pytest.raises(DataError, match=r"too large|cannot be scaled"):
        make(budget="2 epochs").fit(x.numpy(), y.numpy()).predict(new.numpy(), draws=draws)
