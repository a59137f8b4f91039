"""`load`: the task that `--data` names, read from a file, a named set or a graph."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pactrain.data.catalogue import ENTRIES, IDX
from pactrain.data.files import READERS, ending
from pactrain.data.graph_arrays import is_graph_file
from pactrain.data.image_files import has_images, load_image_file
from pactrain.data.tables import Columns, load_table
from pactrain.data.task import Task
from pactrain.runtime.errors import DataError

FILE_TEST_FRACTION = 0.2
"""Part of a user's own file that is held out, so that the run ends with an honest score."""


def is_file_name(data: str) -> bool:
    """True if `load` would read a file of the user, not a named set."""
    path = Path(data)
    named = data in ENTRIES or data.startswith("graph:")
    return not named and (ending(path) in READERS or path.is_file() or path.is_dir())


def load_described(
    described: Mapping[str, Any], name: str, *, seed: int, root: str | Path | None, prior_data: float
) -> Task:
    """The data that the configuration of a run describes.

    Args:
        described: `data` of the configuration (`Train.described` in `cli/train.py`).
        name: What to read; for a file, wherever it is now.
        seed: As in `load`.
        root: As in `load`.
        prior_data: As in `load`.
    """
    columns = Columns(
        target=described["target"],
        kind=None if described["task"] == "auto" else described["task"],
        drop=tuple(described["drop"]),
        keep=tuple(described["keep"]),
        text=described.get("text") or {},
        group=described["group"],
        time=described["time"],
        test=described["test"],
    )
    fraction, split = described["test_fraction"], described["split"]
    return load(name, columns, test_fraction=fraction, seed=seed, split=split, root=root, prior_data=prior_data)


def load(
    data: str,
    columns: Columns | None = None,
    *,
    test_fraction: float | None = None,
    seed: int = 0,
    split: int = 0,
    root: str | Path | None = None,
    prior_data: float = 0.0,
) -> Task:
    """A named set or graph, a CSV, Parquet or NPZ file, or a folder of images in IDX files.

    Args:
        data: The name, or the path of the file.
        columns: What is said of the columns of a table.
        test_fraction: Part of the rows that is held out; None takes the set's own test rows, or a fifth of a file.
        seed: Which rows are held out.
        split: Which of a set's published splits.
        root: Folder of the named sets.
        prior_data: Part of the training rows that a prior will be trained on; how columns are encoded is then learned from
            these rows.

    Raises:
        DataError: There are no such data, or they cannot be read.
    """
    path, columns = Path(data), columns or Columns()
    of_tables = replace(columns, kind=None) != Columns()
    if data.startswith("graph:") or (path.suffix.lower() == ".npz" and is_graph_file(path)):
        if of_tables:
            raise DataError(
                f"--target, --drop, --text and the like go with a table; {data!r} is a graph, whose labels are predicted"
            )
        from pactrain.data.graphs import load_graph_task  # needs torch, which a table does not wait for

        return load_graph_task(
            data, test_fraction=test_fraction, file_fraction=FILE_TEST_FRACTION, seed=seed, root=root
        )
    if is_file_name(data):
        if not of_tables and has_images(path):
            return load_image_file(path)
        if path.is_dir():
            raise DataError(f"{data} is a folder and not a file; name a file in it, or a folder with {', '.join(IDX)}")
        fraction = FILE_TEST_FRACTION if test_fraction is None else test_fraction
        return load_table(path, columns, test_fraction=fraction, seed=seed, prior_data=prior_data)
    if of_tables:
        raise DataError(
            f"--target, --drop, --text and the like go with a file; {data!r} is not one (.csv, .parquet, .npz)"
        )
    from pactrain.data.named import load_named

    return load_named(data, test_fraction=test_fraction, seed=seed, split=split, root=root, prior_data=prior_data)
