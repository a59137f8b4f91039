"""Small files with the mess that real tables have, each with what must become of its columns."""

import datetime
import decimal
import gzip
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS = 80
G = np.random.default_rng(0)
SIGNAL = G.normal(size=ROWS)
START = datetime.date(2021, 1, 5)
DATES = [START + datetime.timedelta(days=int(d)) for d in G.integers(0, 700, ROWS)]
DATE = ("date", ["year", "month", "weekday", "day"])


@dataclass(frozen=True)
class Messy:
    """A file to be trained on: how it is written, and its column `mess` as it must be read (what it became, detail)."""

    name: str
    write: Callable[[Path], None]
    became: Any
    target: str | None = "y"

    def __str__(self) -> str:
        return self.name


def table(mess: Any, target: Any = None) -> pd.DataFrame:
    """Two columns that tell something about the target `y`, and one of mess."""
    y = np.where(SIGNAL > 0, "up", "down") if target is None else target
    return pd.DataFrame({"signal": SIGNAL + 0.3, "colour": list("rgbw") * (ROWS // 4), "mess": mess, "y": y})


def csv(name: str, mess: Any, became: Any, *, target: Any = None, ending: str = "csv", **options: Any) -> Messy:
    """A table written by pandas."""
    return Messy(f"{name}.{ending}", lambda path: table(mess, target).to_csv(path, index=False, **options), became)


def parquet(name: str, mess: Any, became: Any, *, target: Any = None) -> Messy:
    """A table as Parquet."""
    return Messy(f"{name}.parquet", lambda path: table(mess, target).to_parquet(path), became)


def npz(name: str, target: str | None = None, **arrays: Any) -> Messy:
    """Arrays."""
    return Messy(f"{name}.npz", lambda path: np.savez(path, **arrays), None, target)


def words(form: str) -> list[str]:
    """The dates in some spelling."""
    return [f"{date:{form}}" for date in DATES]


def numbers(form: str) -> list[str]:
    """The signal in some spelling."""
    return [form.format(1000 * value + 2500) for value in SIGNAL]


def european(value: str) -> str:
    """1,234.5 as much of Europe writes it."""
    return value.replace(",", "_").replace(".", ",").replace("_", ".")


def _gzipped(path: Path) -> None:
    path.write_bytes(gzip.compress(table(SIGNAL**2).to_csv(index=False).encode()))


def files() -> Iterator[Messy]:
    """All of them."""
    number, left = ("number", None), "left out"
    yield csv("uuids", [str(uuid.UUID(int=i * 977)) for i in range(ROWS)], left)
    yield csv("names", [f"Person {i}" for i in range(ROWS)], left)
    yield csv("row_numbers", range(1, ROWS + 1), left)
    yield csv("remarks", [f"what was said in case number {i}" for i in range(ROWS)], left)
    yield csv("constant", "same", left)
    yield csv("empty", [None] * ROWS, left)
    yield Messy("with_index.csv", lambda path: table(SIGNAL**2).to_csv(path), number)
    yield csv("iso_dates", words("%Y-%m-%d"), DATE)
    yield csv("german_dates", words("%d.%m.%Y"), DATE)
    yield csv("british_dates", words("%d/%m/%Y"), DATE)
    yield csv("american_times", words("%m/%d/%Y 5:30 PM"), DATE)
    yield csv("browser_times", words("%m/%d/%Y, 5:30:10 PM"), DATE)
    yield csv("fractions_of_seconds", words("%d.%m.%Y 17:30:10.250"), DATE)
    yield csv("mail_dates", words("%a, %d %b %Y 17:30:10 +0000"), DATE)
    yield csv("unix_dates", words("%a %b %d 17:30:10 %Y"), DATE)
    yield csv("month_names", words("%d-%b-%y"), DATE)
    yield csv("weekdays_before_dates", words("%A, %d %B %Y"), DATE)
    yield csv("telephones", [f"+49 170 {1000000 + 7 * i}" for i in range(ROWS)], left)
    yield csv("compact_dates", words("%Y%m%d"), DATE)
    yield csv("repeated_dates", [f"{DATES[i % 7]:%d.%m.%Y}" for i in range(ROWS)], DATE)
    yield csv("dates_with_gaps", ["?" if i % 9 == 0 else word for i, word in enumerate(words("%B %d, %Y"))], DATE)
    yield csv("thousands", numbers("{:,.0f}"), number)
    yield csv("decimal_commas", [european(value) for value in numbers("{:,.2f}")], number)
    yield csv("percents", [f"{value:.1f}%" for value in SIGNAL], number)
    yield csv("minus_signs", [f"{value:.2f}".replace("-", "\u2212") for value in SIGNAL], number)
    yield csv("prices", numbers("${:,.2f}"), number)
    yield csv("losses", [f"({-value:.2f})" if value < 0 else f"{value:.2f}" for value in SIGNAL], number)
    yield csv("three_ways", [f"{d:{('%Y-%m-%d', '%d.%m.%Y', '%b %d, %Y')[i % 3]}}" for i, d in enumerate(DATES)], left)
    yield csv("gaps", [("-", "n/a", f"{value:.2f}")[min(i % 10, 2)] for i, value in enumerate(SIGNAL)], number)
    yield csv("truth", [None if i % 11 == 0 else bool(i % 3) for i in range(ROWS)], number)
    yield csv("durations", [f"{i % 5:02}:{i % 60:02}:10" for i in range(ROWS)], ("duration", None))
    yield csv("cities", [f"city {min(i // 3, 24)}" for i in range(ROWS)], ("categories", 25))
    yield csv("semicolons", [european(v) for v in numbers("{:.2f}")], number, sep=";")
    yield csv("tabs", SIGNAL**2, number, ending="tsv", sep="\t")
    yield csv("utf16", SIGNAL**2, number, encoding="utf-16")
    yield Messy("gzipped.csv.gz", _gzipped, number)
    yield csv("no_targets", SIGNAL**2, number, target=[None if i % 8 == 0 else f"{i % 2}" for i in range(ROWS)])
    yield csv("target_of_ones", SIGNAL**2, number, target=(SIGNAL > 0).astype(float))
    yield csv("target_of_numbers", SIGNAL**2, number, target=[european(v) for v in numbers("{:,.2f}")])
    yield parquet("decimals", [decimal.Decimal(f"{value:.3f}") for value in SIGNAL], number)
    yield parquet("dates", DATES, DATE)
    yield parquet("spans", pd.to_timedelta(np.abs(SIGNAL), unit="h"), ("duration", None))
    yield parquet("truth_with_gaps", pd.array([None, True, False, True] * (ROWS // 4), dtype="boolean"), number)
    yield parquet("lists", [[1, 2]] * ROWS, left)
    yield parquet("target_of_decimals", SIGNAL**2, number, target=[decimal.Decimal(f"{v:.3f}") for v in SIGNAL])
    x, labels = G.normal(size=(ROWS, 3, 2)), np.arange(ROWS) % 3
    yield npz("keras", x_train=x[:60], y_train=labels[:60], x_test=x[60:], y_test=labels[60:])
    yield npz(
        "keras_one_hot", x_train=x[:60], y_train=np.eye(3)[labels[:60]], x_test=x[60:], y_test=np.eye(3)[labels[60:]]
    )
    yield npz("keras_column", x_train=x[:60], y_train=labels[:60, None], x_test=x[60:], y_test=labels[60:, None])
    yield npz("train_only", x_train=x, y_train=labels)
    yield npz("plain", X=x, y=labels)
