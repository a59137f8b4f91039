"""From what the user wrote after `--data` to a task."""

from collections.abc import Mapping
from pathlib import Path

from pactrain.data.encoder import Kind
from pactrain.data.graphs import is_graph_file, load_graph_task
from pactrain.data.named import load_named
from pactrain.data.tables import READERS, load_table
from pactrain.data.task import Task
from pactrain.runtime.errors import DataError

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
    text: Mapping[str, str] | None = None,
    prior_data: float = 0.0,
) -> Task:
    """A named set or graph, or a CSV, Parquet or NPZ file; `text` names columns of free text, each with its encoder.

    prior_data: part of the training rows that a prior will be trained on; how columns are encoded is then learned from these rows.
    """
    path = Path(data)
    if data.startswith("graph:") or (path.suffix.lower() == ".npz" and is_graph_file(path)):
        if target is not None or drop or text:
            raise DataError(
                f"--target, --drop and --text go with a table; {data!r} is a graph, whose labels are predicted"
            )
        return load_graph_task(
            data, test_fraction=test_fraction, file_fraction=FILE_TEST_FRACTION, seed=seed, root=root
        )
    if path.suffix.lower() in READERS or path.is_file():
        fraction = FILE_TEST_FRACTION if test_fraction is None else test_fraction
        return load_table(
            path, target, kind=kind, drop=drop, test_fraction=fraction, seed=seed, text=text, prior_data=prior_data
        )
    if target is not None or drop or text:
        raise DataError(f"--target, --drop and --text go with a file; {data!r} is not one (.csv, .parquet, .npz)")
    return load_named(data, test_fraction=test_fraction, seed=seed, split=split, root=root, prior_data=prior_data)
