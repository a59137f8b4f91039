"""Cells as numbers, dates and durations."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pactrain.data.cell_values import Reading, days, reading_of
from pactrain.data.encoder import Encoder
from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.runtime.errors import DataError


def test_dates_become_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "dates.csv"
    path.write_text("day,y\n" + "".join(f"1970-01-{i % 30 + 1:02},{i % 2}\n" for i in range(60)) + ",0\n")
    task = load(str(path), Columns(target="y"), test_fraction=0)
    weekday, day = task.encoder.numeric  # one year, one month, no time
    assert (weekday.part, day.part, day.median) == ("weekday", "day", 14.5)
    again = Encoder.from_dict(json.loads(json.dumps(task.encoder.to_dict())))
    new = pd.DataFrame({"day": ["1970-01-02", "1970-01-02T12:00", None]})
    expected = (np.array([[4, 1.0], [4, 1.5], [weekday.median, 14.5]]) - [weekday.mean, day.mean]) / [
        weekday.std,
        day.std,
    ]
    np.testing.assert_allclose(again.features(new), expected, rtol=1e-6)
    np.testing.assert_allclose(
        again.features(new.assign(day=pd.to_datetime(["1970-01-02"] * 3))), expected[[0] * 3], rtol=1e-6
    )
    with pytest.raises(DataError, match=r"'day' is 'soon' in row 2; it held dates"):
        again.features(pd.DataFrame({"day": ["1970-01-02", "soon"]}))
    with pytest.raises(DataError, match=r"'day' is '1970-02-31' in row 1"):
        again.features(pd.DataFrame({"day": ["1970-02-31"]}))


def test_dates_far_away_and_as_objects() -> None:
    written = pd.Series(["2024-12-31", "9999-12-31", None, "1600-01-01"], name="day")
    assert reading_of(written) == Reading("date", "ISO8601")
    np.testing.assert_array_equal(days(Reading("date", "ISO8601").values(written)), [20088, 2932896, np.nan, -135140])
    objects = pd.Series([datetime.date(1970, 1, 3), None])
    assert reading_of(objects) == Reading("date", "ISO8601")
