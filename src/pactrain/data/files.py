"""Files of the user as tables: CSV in its dialects, Parquet and NPZ."""

import csv
import gzip
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import expanded_limit, read_arrays, regular

CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET = (".parquet", ".pq")
READERS = (*CSV, *PARQUET, ".npz")

SEPARATORS = (",", ";", "\t", "|")
PIECE = 1 << 22
"""Bytes that are expanded at once."""

NEWLINE, RETURN, QUOTE = b'\n\r"'

SNIFFED = 50
"""Lines of which the separator is found."""

TARGETS = ("y", "Y", "target", "label", "labels")
"""Names of the array that is predicted, in this order."""

TEST_ROW = "pactrain: test row"
"""Column that says which rows of a file in Keras' layout are its own test rows."""


def ending(path: str | Path) -> str:
    """How the name of a file ends, with .csv before .gz."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    return "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def read_frame(path: Path, text: tuple[str, ...] = ()) -> pd.DataFrame:
    """A CSV, Parquet or NPZ file with unique column names and at least one row; the columns `text` are read as texts."""
    regular(path)
    kind = ending(path)
    if kind in CSV:
        frame = _read_csv(path, text)
    elif kind in PARQUET:
        frame = _read_parquet(path)
    elif kind == ".npz":
        frame = _read_npz(path)
    else:
        raise DataError(f"{path.name}: files ending in {kind or 'nothing'} are not read; use {', '.join(READERS)}")
    if frame.empty:
        raise DataError(f"{path} has no rows")
    return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)


def _read_csv(path: Path, text: tuple[str, ...]) -> pd.DataFrame:
    try:
        _check_size(path)
        encoding, separator = _encoding(path), ","
        with _opened(path, encoding) as file:
            separator = _separator(list(islice(file, SNIFFED)))
        with _opened(path, encoding) as file:
            lines = csv.reader(file, delimiter=separator, skipinitialspace=True)
            header = next(lines, [])
            _check_header(header, path)
            if not _is_plain(path, separator, len(header)):
                _check_fields(lines, len(header), path)
        types = {name: str for name in header if name.strip() in text}
        with _opened(path, encoding) as file:
            return pd.read_csv(file, sep=separator, skipinitialspace=True, index_col=False, dtype=types)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not written in UTF-8 ({error}); save it again with that encoding, for example with "
            f"pandas.read_csv({path.name!r}, encoding='latin-1').to_csv('utf8.csv', index=False)"
        ) from error
    except (csv.Error, OSError, EOFError, zlib.error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error


@contextmanager
def _opened(path: Path, encoding: str) -> Iterator[IO[str]]:
    opener = gzip.open if _is_compressed(path) else open
    with opener(path, "rt", newline="", encoding=encoding) as file:
        yield file


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _check_size(path: Path) -> None:
    """Refuse a file that cannot be held in memory, and a compressed one that becomes far larger than any table would."""
    if not _is_compressed(path):
        size, memory = path.stat().st_size, _memory()
        if size > memory:
            raise DataError(
                f"{path} has {size:,} bytes and this machine {memory:,.0f} bytes of memory: give pactrain.fit a DataLoader "
                "that reads it piece by piece"
            )
        return
    left = expanded_limit(path)
    with gzip.open(path) as file:
        while piece := file.read(PIECE):
            left -= len(piece)
            if left < 0:
                raise DataError(f"{path} would expand to more than {expanded_limit(path):,} bytes; it is not read")


def _memory() -> float:
    """Bytes of memory that this machine has, as far as it says."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else math.inf


def _encoding(path: Path) -> str:
    """UTF-16 if the file begins with its mark, else UTF-8."""
    with gzip.open(path) if _is_compressed(path) else path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _separator(lines: list[str]) -> str:
    """The separator that divides the most lines into as many fields as the header, of which there must be two or more."""

    def agreement(separator: str) -> int:
        try:
            counts = [len(fields) for fields in csv.reader(lines, delimiter=separator, skipinitialspace=True) if fields]
        except csv.Error:  # a whole line may be too long for one field
            return 0
        return sum(count == counts[0] for count in counts) if counts and counts[0] > 1 else 0

    return max(SEPARATORS, key=agreement)


def _is_plain(path: Path, separator: str, columns: int) -> bool:
    """True if every line has so many fields: where quotes stand around whole fields only, that is seen by counting bytes."""
    mark, rest = ord(separator), b""
    with gzip.open(path) if _is_compressed(path) else path.open("rb") as file:
        while piece := file.read(PIECE):
            lines, found, rest = (rest + piece).rpartition(b"\n")
            if len(rest) > PIECE or not _are_plain(lines + found, mark, columns):
                return False
    return not rest or _are_plain(rest + b"\n", mark, columns)


def _are_plain(lines: bytes, mark: int, columns: int) -> bool:
    """True of some whole lines if all have so many fields, blank ones aside; false also where only csv itself can tell."""
    here = np.frombuffer(lines, np.uint8)
    quotes = np.flatnonzero(here == QUOTE)

    def outside(byte: int) -> NDArray[Any]:
        """Where a byte stands outside quotes."""
        at = np.flatnonzero(here == byte)
        return at[np.searchsorted(quotes, at) % 2 == 0] if len(quotes) else at

    ends, returns = outside(NEWLINE), outside(RETURN)
    opened = quotes[::2]
    before = here[opened[opened > 0] - 1]
    if len(quotes) % 2 or not np.isin(before, (mark, NEWLINE, QUOTE)).all() or (here[returns + 1] != NEWLINE).any():
        return False
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.intp), ends[:-1] + 1])
    blank = (ends == starts) | ((ends == starts + 1) & (here[starts] == RETURN))
    marks = np.diff(np.searchsorted(outside(mark), ends), prepend=0)
    return bool((blank | (marks == columns - 1)).all())


def _check_fields(lines: Iterator[list[str]], columns: int, path: Path) -> None:
    for number, fields in enumerate((line for line in lines if line), start=1):
        if len(fields) != columns:
            raise DataError(
                f"{path}: row {number} has {len(fields)} fields and the header {columns}; correct that row "
                "(a text with a separator in it must stand in quotes)"
            )


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow.parquet import read_metadata, read_table

        size = read_metadata(path)
        if 8 * size.num_rows * size.num_columns > expanded_limit(path):
            raise DataError(
                f"{path} says that it holds {size.num_rows:,} rows of {size.num_columns:,} columns; it is not read"
            )
        read_table(path).validate(full=True)  # reading alone does not look whether texts are texts
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise DataError("reading Parquet needs pyarrow: pip install 'pactrain[parquet]'") from error
    except DataError:
        raise
    except (
        OSError,
        ValueError,
        NotImplementedError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:  # of pyarrow, too
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    _check_header(list(frame.columns), path)
    for name, column in frame.items():
        if column.dtype == object and column.map(lambda cell: isinstance(cell, bytes)).any():
            raise DataError(
                f"{path}: column {name!r} holds bytes, which are neither numbers nor texts; leave it out, or decode it"
            )
    return frame.reset_index(drop=True)


def _read_npz(path: Path) -> pd.DataFrame:
    """Arrays of one row per example; an array "X" of several columns becomes columns X0, X1, …

    In Keras' layout (x_train, y_train, x_test, y_test) the test rows come last, and are marked.
    """
    arrays = {name: np.atleast_1d(array) for name, array in read_arrays(path).items()}
    if not any(array.size for array in arrays.values()):
        raise DataError(f"{path} holds no numbers")
    parts = {
        part: {n.removesuffix(part): a for n, a in arrays.items() if n.endswith(part)} for part in ("_train", "_test")
    }
    train, test = parts["_train"], parts["_test"]
    if len(train) + len(test) < len(arrays) or not train:
        return _columns(arrays, path)
    if not test:
        return _columns(train, path)
    both = _columns(train, path).assign(**{TEST_ROW: False}), _columns(test, path).assign(**{TEST_ROW: True})
    return pd.concat(both, ignore_index=True)


def _columns(arrays: dict[str, Any], path: Path) -> pd.DataFrame:
    lengths = {name: len(a) for name, a in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"{path.name}: the arrays have different numbers of rows: {lengths}")
    columns: list[tuple[str, Any]] = []
    for name, array in arrays.items():
        flat = array.reshape(len(array), -1)
        if name in TARGETS and _is_one_hot(flat):
            flat = flat.argmax(1)[:, None]
        several = flat.shape[1] > 1
        columns += [(f"{name}{i}" if several else name, flat[:, i]) for i in range(flat.shape[1])]
    _check_header([name for name, _ in columns], path)
    return pd.DataFrame(dict(columns))


def _is_one_hot(rows: NDArray[Any]) -> bool:
    """True if every row holds a single one and zeros, as Keras writes classes."""
    return rows.shape[1] > 1 and bool(np.isin(rows, (0, 1)).all()) and bool((np.count_nonzero(rows, axis=1) == 1).all())


def _check_header(header: list[Any], path: Path) -> None:
    names = [str(name).strip() for name in header]
    if not any(names):
        raise DataError(f"{path} has no header line; its first line must name the columns")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{path}: the column name {twice[0]!r} stands more than once in the header; rename one of them")
