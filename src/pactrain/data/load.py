"""From what the user wrote after `--data` to a task."""

from pathlib import Path

from pactrain.data.encoder import Kind
from pactrain.data.named import load_named
from pactrain.data.tables import READERS, load_table
from pactrain.data.task import Task
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
    if path.suffix.lower() in READERS or path.is_file():
        fraction = FILE_TEST_FRACTION if test_fraction is None else test_fraction
        return load_table(path, target, kind=kind, drop=drop, test_fraction=fraction, seed=seed)
    if target is not None or drop:
        raise DataError(f"--target and --drop go with a file; {data!r} is not one (.csv, .parquet, .npz)")
    return load_named(data, test_fraction=test_fraction, seed=seed, split=split, root=root)
