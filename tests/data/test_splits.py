"""Splits into training and test rows."""

import numpy as np

from pactrain.data.splits import split_rows


def test_splits_are_stratified_where_possible_and_follow_the_seed() -> None:
    y = np.array([0] * 90 + [1] * 10)
    train, test = split_rows(100, y, 0.5, 0)
    assert y[train].sum() == 5
    assert sorted([*train, *test]) == list(range(100))
    again, _ = split_rows(100, y, 0.5, 0)
    np.testing.assert_array_equal(train, again)
    assert (split_rows(100, y, 0.5, 1)[0] != train).any()
    rare = np.array([0] * 9 + [1])
    assert len(split_rows(10, rare, 0.5, 0)[1]) == 5
