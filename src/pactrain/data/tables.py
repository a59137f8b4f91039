"""Tables of the user: CSV, Parquet and NPZ files."""

import csv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pactrain.data.encoder import Kind, check_not_mostly_numbers, class_name, fit_encoder, target_numbers
from pactrain.data.task import ENCODED, STRATIFIED, Task, fitting_rows, split_rows, task_of
from pactrain.runtime.errors import DataError

MAX_CLASSES_OF_INTEGERS = 20
"""An integer target with more different values than this is a quantity, unless the user says otherwise."""

READERS = (".csv", ".parquet", ".pq", ".npz")


def read_frame(path: Path, text: tuple[str, ...] = ()) -> pd.DataFrame:
    """A CSV, Parquet or NPZ file with unique column names and at least one row; the columns `text` are read as texts."""
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if path.suffix.lower() == ".csv":
        frame = _read_csv(path, text)
    elif path.suffix.lower() in (".parquet", ".pq"):
        frame = _read_parquet(path)
    elif path.suffix.lower() == ".npz":
        frame = _read_npz(path)
    else:
        raise DataError(
            f"{path.name}: files ending in {path.suffix or 'nothing'} are not read; use .csv, .parquet or .npz"
        )
    if frame.empty:
        raise DataError(f"{path} has no rows")
    return frame


def _read_csv(path: Path, text: tuple[str, ...]) -> pd.DataFrame:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, skipinitialspace=True)
            header = next(lines, [])
            _check_header(header, path)
            _check_separator(header, path)
            for number, fields in enumerate((line for line in lines if line), start=1):
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}: row {number} has {len(fields)} fields and the header {len(header)}; correct that row "
                        "(a text with a comma in it must stand in quotes)"
                    )
        types = {name: str for name in text if name in header}
        return pd.read_csv(path, encoding="utf-8-sig", skipinitialspace=True, index_col=False, dtype=types)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not written in UTF-8 ({error}); save it again with that encoding, for example with "
            f"pandas.read_csv({path.name!r}, encoding='latin-1').to_csv('utf8.csv', index=False); "
            "add sep=';' and decimal=',' if it is written that way"
        ) from error
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise DataError("reading Parquet needs pyarrow: pip install 'pactrain[parquet]'") from error
    except (OSError, ValueError, NotImplementedError) as error:  # of pyarrow, too
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    _check_header(list(frame.columns), path)
    return frame.reset_index(drop=True)


def _read_npz(path: Path) -> pd.DataFrame:
    """Arrays of one row per example; an array "X" of several columns becomes columns X0, X1, …"""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: np.atleast_1d(file[name]) for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as NPZ: {error}") from error
    lengths = {name: len(a) for name, a in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"{path.name}: the arrays have different numbers of rows: {lengths}")
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        flat = array.reshape(len(array), -1)
        columns |= {name if flat.shape[1] == 1 else f"{name}{i}": flat[:, i] for i in range(flat.shape[1])}
    return pd.DataFrame(columns)


def _check_header(header: list[Any], path: Path) -> None:
    names = [str(name).strip() for name in header]
    if not any(names):
        raise DataError(f"{path} has no header line; its first line must name the columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: the column name {twice[0]!r} stands more than once in the header; rename one of them")


def _check_separator(header: list[str], path: Path) -> None:
    """One column whose name holds other separators is a table in another dialect, as spreadsheets write it in much of Europe."""
    found = next((s for s in (";", "\t", "|") if len(header) == 1 and s in header[0]), None)
    if found:
        raise DataError(
            f"{path.name} seems to be separated by {found!r}, not by commas; write it again, for example with "
            f"pandas.read_csv({path.name!r}, sep={found!r}).to_csv('with_commas.csv', index=False), "
            "and with decimal=',' if its numbers are written 3,5"
        )


def load_table(
    path: Path,
    target: str | None,
    *,
    kind: Kind | None,
    drop: tuple[str, ...],
    test_fraction: float,
    seed: int,
    text: Mapping[str, str] | None = None,
    prior_data: float = 0.0,
) -> Task:
    """A task from a CSV, Parquet or NPZ file; `text` names its columns of free text, each with the encoder to read it."""
    text = text or {}
    frame = read_frame(path, tuple(text))
    if target is None and path.suffix.lower() == ".npz" and "y" in frame.columns:
        target = "y"
    if target is None:
        raise DataError(f"say which column is to be predicted: --target NAME; {path.name} has {_listed(frame.columns)}")
    for name in (target, *drop, *text):
        if name not in frame.columns:
            raise DataError(f"{path.name} has no column {name!r}; it has {_listed(frame.columns)}")
    if target in text:
        raise DataError(f"the column {target!r} is the target and so cannot be read as free text")
    _check_target(frame[target], target)
    kind = kind or _kind(frame[target])
    if kind == "regression":
        target_numbers(frame[target])
    strata = frame[target].map(class_name).to_numpy() if kind == "classification" else None
    train, test = split_rows(len(frame), strata, test_fraction, seed)
    features = frame.drop(columns=[target, *drop])
    fitted = fitting_rows(train, prior_data, seed)
    encoder = fit_encoder(features.iloc[fitted], frame[target], fitted, kind, text)
    x, y = encoder.features(features), encoder.targets(frame[target])
    caveats = ((ENCODED,) if not prior_data and (encoder.numeric or encoder.categorical) else ()) + (
        (STRATIFIED,) if kind == "classification" and len(test) else ()
    )
    return task_of(path.name, encoder, x, y, train, test, caveats=caveats, prior_data=prior_data)


def _check_target(column: "pd.Series[Any]", name: str) -> None:
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise DataError(
            f"the target {name!r} is missing in {len(missing)} of {len(column)} rows, first in row {missing[0] + 1}; "
            "fill these rows or remove them"
        )


def _kind(column: "pd.Series[Any]") -> Kind:
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        check_not_mostly_numbers(column, "the target", "")
        return "classification"
    if pd.api.types.is_integer_dtype(column):
        return "classification" if column.nunique() <= MAX_CLASSES_OF_INTEGERS else "regression"
    return "regression"


def _listed(columns: Any) -> str:
    names = [repr(str(c)) for c in columns]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
