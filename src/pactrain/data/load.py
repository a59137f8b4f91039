"""From what the user wrote after `--data` to a task."""

from pathlib import Path

from pactrain.data.named import load_named, load_npz
from pactrain.data.tables import load_table
from pactrain.data.task import Kind, Task
from pactrain.errors import DataError

FILE_TEST_FRACTION = 0.2
"""Part of a user's own file that is held out, so that the run ends with an honest score."""


def load(
    data: str,
    *,
    target: str | None = None,
    kind: Kind | None = None,
    drop: tuple[str, ...] = (),
    test_fraction: float | None = None,
    seed: int = 0,
    split: int = 0,
    root: str | Path | None = None,
) -> Task:
    """A named set, or a CSV, Parquet or NPZ file."""
    path = Path(data)
    if path.suffix.lower() not in (".csv", ".parquet", ".pq", ".npz"):
        if path.exists() and path.is_file():
            raise DataError(f"{data}: files of this kind are not read; use .csv, .parquet or .npz")
        if target is not None or drop:
            raise DataError(f"--target and --drop go with a file; {data!r} is a named set")
        return load_named(data, test_fraction=test_fraction, seed=seed, split=split, root=root)
    fraction = FILE_TEST_FRACTION if test_fraction is None else test_fraction
    if path.suffix.lower() == ".npz":
        if not path.exists():
            raise DataError(f"there is no file {path}")
        return load_npz(path, target, kind=kind, test_fraction=fraction, seed=seed)
    return load_table(path, target, kind=kind, drop=drop, test_fraction=fraction, seed=seed)
