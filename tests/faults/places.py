"""Every kind of file that we read: how a good one is written, and how it is read."""

import gzip
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pactrain import Certificate
from pactrain.cli.build import rebuild
from pactrain.cli.remake import _metrics
from pactrain.cli.run_folders import read_config
from pactrain.cli.trust import Outside
from pactrain.data.archive import unpack
from pactrain.data.cifar import _python
from pactrain.data.glue import _together, _tsv
from pactrain.data.graphs import read_graph
from pactrain.data.idx import read_idx
from pactrain.data.tables import Columns, load_table
from pactrain.experiments import Run as Planned
from pactrain.experiments.plan import Outcome
from pactrain.experiments.store import Store
from pactrain.report import summaries
from pactrain.runs.folder import read_history, read_moment
from pactrain.runs.weight_files import load_earlier
from pactrain.runtime.files import load_state
from tests.data.citation import write_graph
from tests.data.image_files import idx


@dataclass(frozen=True)
class Place:
    """A file name, what writes a good file there (from the folder with the finished runs), and what reads it."""

    name: str
    write: Callable[[Path, Path], Any]
    read: Callable[[Path], Any]


def _rows() -> pd.DataFrame:
    g = np.random.default_rng(0)
    return pd.DataFrame({"x": g.normal(size=40), "c": g.choice(["a", "b"], 40), "y": g.normal(size=40)})


def _table(path: Path) -> Any:
    return load_table(path, Columns(target="y"), test_fraction=0.2, seed=0)


def _write_npz(path: Path, _: Path) -> None:
    g = np.random.default_rng(0)
    np.savez_compressed(path, X=g.normal(size=(40, 3)), y=g.normal(size=40))


def _write_tar(path: Path, _: Path) -> None:
    source = path.with_name("source")
    source.write_text("content " * 50)
    with tarfile.open(path, "w:gz") as tar:
        tar.add(source, "cifar/data")


def _write_pickle(path: Path, _: Path) -> None:
    g = np.random.default_rng(0)
    path.write_bytes(
        pickle.dumps({b"data": g.integers(0, 256, (3, 3072), dtype=np.uint8), b"labels": [0, 1, 9]}, protocol=2)
    )


def _write_glue(path: Path, _: Path) -> None:
    import lzma

    with lzma.open(path, "wt") as file:
        json.dump({"sst2": {"train": [["good", 1], ["bad", 0]]}}, file)


def _write_store(path: Path, _: Path) -> None:
    Store(path).write(Planned("math:sqrt"), Outcome({"value": 1.0}, None, seconds=0.1))


def _from_run(path: Path, made: Path) -> None:
    """A file of a run folder, with all others beside it."""
    shutil.copytree(made / "iris", path.parent, dirs_exist_ok=True)


def _checked(path: Path) -> Any:
    return Certificate.read(path).problems()


def _rebuilt(path: Path) -> Any:
    config = read_config(path.parent)
    return rebuild(path.parent, config, Outside()), _metrics(path.parent), load_earlier(path.parent)


PLACES = {
    place.name: place
    for place in (
        Place("table.csv", lambda path, _: _rows().to_csv(path, index=False), _table),
        Place("table.parquet", lambda path, _: _rows().to_parquet(path), _table),
        Place("table.npz", _write_npz, _table),
        Place("graph.npz", lambda path, _: write_graph(path), read_graph),
        Place("images", lambda path, _: path.write_bytes(idx(np.zeros((3, 28, 28), np.uint8))), read_idx),
        Place("images.gz", lambda path, _: path.write_bytes(gzip.compress(idx(np.zeros((3, 28, 28), np.uint8)))), read_idx),
        Place("cifar.tar.gz", _write_tar, lambda path: unpack(path, path.with_name("out"), folder="cifar")),
        Place("batch", _write_pickle, lambda path: _python(path, 10)),
        Place("glue.json.xz", _write_glue, lambda path: _together(path, "sst2", "train")),
        Place("train.tsv", lambda path, _: path.write_text("sentence\tlabel\ngood\t1\nbad\t0\n"), lambda p: _tsv(p, "sst2")),
        Place("store.sqlite", _write_store, lambda path: Store(path).rows()),
        Place("certificate.json", _from_run, _checked),
        Place("config.json", _from_run, _rebuilt),
        Place("metrics.json", _from_run, _rebuilt),
        Place("model.safetensors", _from_run, _rebuilt),
        Place("posterior.safetensors", _from_run, _rebuilt),
        Place("moment.json", _from_run, lambda path: read_moment(path.parent)),
        Place("history.jsonl", _from_run, read_history),
        Place("checkpoint.safetensors", lambda path, made: shutil.copy(made / "iris" / "model.safetensors", path), load_state),
    )
}  # fmt: skip

REPORTED = ("config.json", "metrics.json", "history.jsonl", "moment.json", "certificate.json")
"""Files of a run folder that a report is made of."""


def reported(path: Path) -> Any:
    """What `pactrain report --json` reads of a run folder."""
    return summaries([path.parent])
