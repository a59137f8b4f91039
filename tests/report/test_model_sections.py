"""Sections about the model and the data."""

from pactrain.report.model_sections import columns, quality, rows
from pactrain.report.read import Run

CONFIG = {
    "n": 50,
    "preprocess": {
        "classes": ["no", "yes"],
        "numeric": [{"name": "age", "mean": 30.0, "std": 10.0}],
        "categorical": [{"name": "sex", "categories": ["f", "m"]}],
    },
    "columns": [
        {"column": "age", "became": "number", "features": 1, "missing": 7, "median": 28.75},
        {"column": "sex", "became": "categories", "features": 2, "different": 3},
        {"column": "name", "became": "left out", "features": 0, "why": "it looks like an identifier"},
    ],
}
METRICS = {
    "train": {"accuracy": 0.9, "loss": 0.3, "n": 50},
    "test": {"accuracy": 0.8, "loss": 0.4, "n": 10, "ece": 0.1, "recall": [1.0, 0.5], "auc": 0.7},
    "task": {"classes": 2},
    "rivals": {"constant": {"name": "guessing the largest class", "accuracy": 0.8}},
}
ROW = {"row": 3, "true": 1, "answer": 0, "confidence": 0.912, "inputs": [1.0, 0.0, 1.0]}
ANALYSIS = {
    "rows": "held-out",
    "confusion": [[6, 0], [2, 2]],
    "reliability": [{"n": 10, "confidence": 0.9, "right": 0.8}],
    "mistakes": [ROW],
    "unsure": [],
    "importance": [{"column": "sex", "loss": 0.2, "spread": 0.01}, {"column": "age", "loss": 0.0, "spread": 0.0}],
}
RUN = Run("r", CONFIG, metrics=METRICS, analysis=ANALYSIS)


def test_the_score_stands_beside_its_rivals() -> None:
    found = quality(RUN)
    assert [row[0] for row in found["rivals"].rows] == ["the network", "guessing the largest class"]
    assert ["AUC", "–", "0.700"] in found["scores"].rows


def test_confusions_are_shaded_by_the_share_of_their_class() -> None:
    found = quality(RUN)["confusion"]
    assert [row["cells"] for row in found["rows"]] == [[(6, 100), (0, 0)], [(2, 50), (2, 50)]]
    assert [row["recall"].replace("\N{NO-BREAK SPACE}", " ") for row in found["rows"]] == ["100.0 %", "50.0 %"]
    assert "different sizes" in found["note"]


def test_a_mistake_is_shown_with_its_values() -> None:
    (part,) = rows(RUN)["parts"]
    assert part["table"].columns == ["row", "true", "answer", "sure", "age", "sex"]
    assert [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in part["table"].rows[0]] == [
        "4",
        "yes",
        "no",
        "91.2 %",
        "40",
        "m",
    ]


def test_the_fate_of_every_column_is_told() -> None:
    found = columns(RUN)
    assert found["fates"].rows == [
        ["age", "a number; 7 missing became the median, 28.75", "1"],
        ["sex", "2 of 3 categories", "2"],
        ["name", "left out: it looks like an identifier", "–"],
    ]
    assert "sex" in found["drawings"][0].alt


def test_a_run_that_is_going_on_has_little_to_show() -> None:
    going = Run("r", {"n": 5})
    assert quality(going)["rivals"] is None
    assert rows(going)["parts"] == []
    assert not any(columns(going).values())
