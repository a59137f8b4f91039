"""Graphs as data: of `fit`, of files, of the command line."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pactrain
from pactrain.data.download import download
from pactrain.data.graphs import SIZES, is_graph_file, load_graph, load_graph_task, read_graph, split_nodes, with_split
from pactrain.problem.graph_nodes import nodes_of
from pactrain.runtime.errors import DataError
from tests.citation import write_graph

pytest.importorskip("torch_geometric")

CPU, F32 = torch.device("cpu"), torch.float32


def mask(*nodes: int, size: int = 90) -> torch.Tensor:
    out = torch.zeros(size, dtype=torch.bool)
    out[list(nodes)] = True
    return out


def test_fit_takes_a_graph_and_its_masks(tmp_path: Path) -> None:
    from pactrain.models.graph import graph_model

    data = read_graph(write_graph(tmp_path / "g.npz"))
    data.train_mask, data.test_mask = mask(*range(60)), mask(*range(60, 90))
    result = pactrain.fit(graph_model("gcn", 12, 3), data, test=data, budget="60 epochs")
    assert result.metrics["train"]["n"] == result.certificate.n == 60
    assert result.metrics["test"]["n"] == 30
    assert result.metrics["test"]["accuracy"] > 0.8
    assert {s.label for s in result.certificate.statements} == {"heuristic"}
    assert any("nodes of one graph" in c.reason for c in result.certificate.caveats)
    assert not any("also in the training data" in note for note in result.certificate.notes)
    with torch.no_grad():
        right = result.model.eval()(data.x, data.edge_index).argmax(1) == data.y
    assert float(right[60:].double().mean()) == pytest.approx(result.metrics["test"]["accuracy"])


def test_which_nodes_are_meant(tmp_path: Path) -> None:
    data = read_graph(write_graph(tmp_path / "g.npz"))
    data.y[5] = -1

    def nodes(role: str) -> list[int]:
        return nodes_of(data, role, device=CPU, dtype=F32).nodes.tolist()

    labelled = [i for i in range(90) if i != 5]
    assert nodes("training") == nodes("test") == labelled
    data.test_mask, data.val_mask = mask(0, 5, 7), mask(9)
    assert nodes("test") == [0, 7]
    assert nodes("validation") == [9]
    assert nodes("training") == [i for i in labelled if i not in (0, 7, 9)]
    data.train_mask = mask(5, 6)
    assert nodes("training") == [6]
    del data.test_mask
    with pytest.raises(DataError, match="no test_mask"):
        nodes("test")
    data.train_mask = torch.zeros(90, 4, dtype=torch.bool)
    with pytest.raises(DataError, match="of several splits choose one"):
        nodes("training")
    data.train_mask = mask(5)
    with pytest.raises(DataError, match="no labelled node"):
        nodes("training")


def test_testing_on_the_training_nodes_is_noticed(tmp_path: Path) -> None:
    from pactrain.models.graph import graph_model

    data = read_graph(write_graph(tmp_path / "g.npz"))
    result = pactrain.fit(graph_model("appnp", 12, 3), data, test=data, budget="2 epochs")
    assert any("90 test rows are also in the training data" in note for note in result.certificate.notes)
    assert result.certificate.measured["scheme"] == "chunks"  # neighbours share a network: no noise for each node


def test_a_split_of_the_paper_in_both_settings(tmp_path: Path) -> None:
    data = read_graph(write_graph(tmp_path / "g.npz", nodes=700))
    train, validation, test = split_nodes(data.y, 3)
    few, many = with_split(data, 3, nodes="train"), with_split(data, 3)
    assert sorted(train.tolist()) == few.train_mask.nonzero()[:, 0].tolist()
    assert sorted(validation.tolist()) == few.val_mask.nonzero()[:, 0].tolist()
    assert int(many.train_mask.sum()) == 560
    assert torch.equal(few.test_mask, many.test_mask)
    assert sorted(test.tolist()) == many.test_mask.nonzero()[:, 0].tolist()
    assert not hasattr(data, "train_mask")


def test_files_that_are_no_graph_or_a_broken_one(tmp_path: Path) -> None:
    table = tmp_path / "table.npz"
    np.savez(table, X=np.zeros((4, 2)), y=np.zeros(4))
    assert not is_graph_file(table)
    assert is_graph_file(write_graph(tmp_path / "g.npz"))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"labels": np.zeros(3, dtype=int)}, "labels has shape"),
        ({"labels": np.zeros(90)}, "class numbers"),
        ({"attr_shape": np.array([80, 12])}, "one graph"),
        ({"train_mask": np.ones(3, dtype=bool)}, "train_mask has shape"),
    ]
    for more, message in wrong:
        with pytest.raises(DataError, match=message):
            read_graph(write_graph(tmp_path / "broken.npz", **more))
    np.savez(tmp_path / "pickled.npz", adj_data=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="cannot be read as a graph"):
        read_graph(tmp_path / "pickled.npz")


def test_masks_and_missing_labels_of_a_file(tmp_path: Path) -> None:
    own: dict[str, Any] = {"train_mask": mask(*range(30)).numpy(), "test_mask": mask(*range(30, 40)).numpy()}
    task = load_graph_task(
        str(write_graph(tmp_path / "g.npz", **own)), test_fraction=None, file_fraction=0.2, seed=0, root=None
    )
    assert (len(task.x_train), len(task.y_test)) == (30, 10)  # type: ignore[arg-type]
    assert task.encoder.inputs == task.inputs == 12
    assert set(read_graph(write_graph(tmp_path / "new.npz", labels=None)).y.tolist()) == {-1}


def test_downloads_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PACTRAIN_DATA", raising=False)
    source = write_graph(tmp_path / "pubmed.npz")
    monkeypatch.setattr("pactrain.data.graphs.HOME", f"{tmp_path.as_uri()}/{{}}.npz")
    with pytest.raises(DataError, match="it was removed"):
        load_graph("pubmed")
    assert not list((tmp_path / "cache" / "pactrain").iterdir())
    monkeypatch.setitem(SIZES, "pubmed", (90, 12, 3))
    assert load_graph("pubmed").x.shape == (90, 12)
    source.unlink()
    assert load_graph("pubmed").x.shape == (90, 12)  # from the cache
    with pytest.raises(DataError, match=r"could not be fetched.*--data-root"):
        load_graph("cora")
    known = tmp_path / "known"
    known.write_bytes(b"abc")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert download(known.as_uri(), "known", sha256=digest).read_bytes() == b"abc"
    with pytest.raises(DataError, match="not the published file"):
        download(known.as_uri(), "other", sha256="0" * 64)
    assert not (tmp_path / "cache" / "pactrain" / "other").exists()


@pytest.mark.skipif(
    not (Path(os.environ.get("PACTRAIN_DATA", "")) / "citeseer.npz").is_file(),
    reason="PACTRAIN_DATA has no citeseer.npz",
)
def test_the_published_sizes() -> None:
    data = load_graph("citeseer")
    assert (*data.x.shape, int(data.y.max()) + 1) == SIZES["citeseer"]
    assert data.edge_index.shape == (2, 10_674)


def run(*words: Any, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "pactrain", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_a_graph_from_the_command_line(tmp_path: Path) -> None:
    write_graph(tmp_path / "my_graph.npz")
    done = run(
        "train", "--data", "my_graph.npz", "--model", "sage", "--budget", "60 epochs", "--json", "-", cwd=tmp_path
    )
    result = json.loads(done.stdout)
    assert result["run"] == "runs/my_graph"
    assert (result["metrics"]["train"]["n"], result["metrics"]["test"]["n"]) == (72, 18)
    assert "nodes of one graph are not independent" in done.stderr
    predictions = json.loads(run("predict", "runs/my_graph", "my_graph.npz", "--json", "-", cwd=tmp_path).stdout)
    right = np.mean([int(p) == i % 3 for i, p in enumerate(predictions["prediction"])])
    assert right > 0.8
    stored = "runs/my_graph/certificate.json"
    assert "Verified: made again" in run("verify", stored, "--run", "runs/my_graph", cwd=tmp_path).stdout
    write_graph(tmp_path / "wide.npz", features=13)
    assert "13 features" in run("predict", "runs/my_graph", "wide.npz", cwd=tmp_path, code=2).stderr


def test_networks_and_data_that_do_not_fit(tmp_path: Path) -> None:
    from pactrain.data.load import load
    from pactrain.models.named import chosen_model
    from pactrain.runtime.errors import PactrainError

    graph = load(str(write_graph(tmp_path / "g.npz"))).encoder
    assert chosen_model(None, graph) == "gcn"
    with pytest.raises(PactrainError, match="does not see edges"):
        chosen_model("mlp:30", graph)
    with pytest.raises(PactrainError, match="needs a graph"):
        chosen_model("gat", load("iris").encoder)
    with pytest.raises(DataError, match="is a graph"):
        load(str(tmp_path / "g.npz"), target="labels")
