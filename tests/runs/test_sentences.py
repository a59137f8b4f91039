"""What a run amounts to, in sentences."""

from typing import Any

import pytest

from pactrain.runs import sentences


def digits() -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and metrics as a run has them."""
    config = {
        "data": {"name": "folder/digits.csv"},
        "model": "mlp",
        "groups": {"0": 85_000, "2": 2},
        "preprocess": {"classes": ["no", "yes"]},
    }
    metrics = {
        "train": {"accuracy": 1.0, "n": 898, "loss": 0.0},
        "test": {"accuracy": 0.9766, "n": 899, "loss": 0.1, "ece": 0.012},
        "task": {"kind": "classification", "features": 64, "classes": 2},
        "rivals": {
            "constant": {"name": "guessing the largest class", "accuracy": 0.55},
            "linear": {"name": "logistic regression", "accuracy": 0.961, "rows": 898},
        },
        "confused": [[1, 0, 7]],
    }
    return config, metrics


def plain(text: str) -> str:
    """With ordinary spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_data_and_network_are_one_line() -> None:
    config, metrics = digits()
    line = "digits.csv · 898 rows to train, 899 held out · 64 features → 2 classes · mlp, 85,002 weights"
    assert sentences.about(config, metrics) == line
    del config["data"], config["model"], metrics["test"]
    assert (
        sentences.about(config, metrics) == "898 rows to train · 64 features → 2 classes · network with 85,002 weights"
    )


def test_the_score_stands_beside_what_it_has_to_beat() -> None:
    _, metrics = digits()
    line = "accuracy 97.7 % on held-out rows (guessing the largest class: 55.0 %; logistic regression: 96.1 %)"
    assert plain(sentences.score(metrics)) == line
    del metrics["test"], metrics["rivals"]
    assert plain(sentences.score(metrics)) == "accuracy 100.0 % on the rows it was trained on"


def test_details_name_confusions_and_what_uneven_classes_hide() -> None:
    config, metrics = digits()
    even = "calibration error 1.2 %; most often confused: yes taken for no (7×)"
    assert [plain(line) for line in sentences.details(config, metrics)] == [even]
    metrics["rivals"]["constant"]["accuracy"] = 0.9
    metrics["test"] |= {"balanced_accuracy": 0.7, "auc": 0.912, "f1": 0.65, "recall": [0.99, 0.41]}
    assert [plain(line) for line in sentences.details(config, metrics)] == [
        "balanced accuracy 70.0 %, AUC 0.912, F1 0.650",
        "share of each class that it finds (recall): “yes” 41.0 %, “no” 99.0 %",
        even,
    ]


def test_metrics_of_the_users_own_with_our_names() -> None:
    config, metrics = digits()
    metrics["rivals"]["constant"]["accuracy"] = 0.9
    metrics["test"] |= {"recall": 0.5, "mae": 2.0}
    assert len(sentences.details(config, metrics)) == 1


def test_regression_says_how_much_is_explained() -> None:
    metrics = {
        "train": {"rmse": 2.0, "n": 5},
        "test": {"rmse": 2.5, "n": 5, "mae": 2.0, "error90": 4.0, "r2": 0.9, "spread": 9.0},
        "rivals": {"constant": {"name": "guessing the mean", "rmse": 9.0}},
    }
    assert sentences.score(metrics) == "rmse 2.5 on held-out rows (guessing the mean: 9)"
    line = "explains 90.0 % of the variance (R²); mean absolute error 2, nine in ten below 4; the target's own standard deviation is 9"
    assert [plain(text) for text in sentences.details({}, metrics)] == [line]


def test_a_rescue_is_told_in_one_line() -> None:
    _, metrics = digits()
    assert sentences.noticed(metrics) == []
    metrics["rescue"] = {"epoch": 215, "train": {"accuracy": 0.97}, "test": {"accuracy": 0.71}, "divided_by": 3.16}
    (line,) = sentences.noticed(metrics)
    assert plain(line) == (
        "after epoch 215 it noticed that it was memorising (training / held-out accuracy 97.0 % / 71.0 %) and let the rows move "
        "the weights less: 100.0 % / 97.7 % in the end"
    )


@pytest.mark.parametrize(("value", "text"), [(1.0, "100.0 %"), (0.99999, "99.9 %"), (0.12345, "12.3 %")])
def test_a_share_of_one_is_written_only_for_one(value: float, text: str) -> None:
    assert plain(sentences.percent(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.01234, "0.0123"), (123.45, "123.5"), (54321.0, "54,321"), (1e-7, "1.00e-07"), (None, "not finite")],
)
def test_numbers_as_people_read_them(value: float | None, text: str) -> None:
    assert sentences.number(value) == text
