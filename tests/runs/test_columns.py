"""Columns in features, and rows as people read them."""

from pactrain.runs.columns import OTHER, cells, feature_groups

ENCODING = {
    "numeric": [
        {"name": "age", "mean": 30.0, "std": 10.0},
        {"name": "sold", "mean": 2000.0, "std": 5.0, "part": "year"},
        {"name": "sold", "mean": 6.0, "std": 3.0, "part": "month"},
    ],
    "categorical": [{"name": "sex", "categories": ["f", "m"]}],
    "text": [{"name": "story", "width": 3}],
}


def test_every_feature_belongs_to_a_column() -> None:
    groups = feature_groups(ENCODING)
    assert groups == {"age": [0], "sold": [1, 2], "sex": [3, 4], "story": [5, 6, 7]}
    assert feature_groups({}) == {}


def test_a_row_reads_as_it_stood_in_the_file() -> None:
    row = cells(ENCODING, [0.5, 2.0, -1.00000001, 0.0, 1.0, 0.1, 0.2, 0.3])
    assert row == {"age": "35", "sold, year": "2010", "sold, month": "3", "sex": "m"}
    assert cells(ENCODING, [0.5, 2.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3])["sex"] == OTHER


def test_rounding_leaves_no_negative_zero() -> None:
    encoding = {"numeric": [{"name": "garage", "mean": 1.4738, "std": 1.1063}]}
    assert cells(encoding, [-1.33219]) == {"garage": "0"}
