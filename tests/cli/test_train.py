"""`pactrain train` on images and graphs."""

import json
from pathlib import Path

import numpy as np
import pytest

from pactrain.cli.main import main
from tests.cli.commands import run
from tests.data.citation import write_graph


@pytest.mark.slow
def test_a_graph_from_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
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
    assert "Verified: made again" in run("verify", stored, "--run", "runs/my_graph", "--trust", cwd=tmp_path).stdout
    write_graph(tmp_path / "wide.npz", features=13)
    assert "13 features" in run("predict", "runs/my_graph", "wide.npz", cwd=tmp_path, code=2).stderr


def test_train_from_the_command_line_on_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        table = rng.integers(0, 256, (2, 3073), dtype=np.uint8)
        table[:, 0] = rng.integers(0, 10, 2)
        table.tofile(tmp_path / "cifar-10-batches-bin" / name)
    words = [
        "train",
        "--data",
        "cifar10",
        "--data-root",
        str(tmp_path),
        "--model",
        "cnn9:width=.01",
        "--budget",
        "1 epochs",
    ]
    with pytest.raises(SystemExit) as done:
        main([*words, "--augment", "flip_crop", "--augment-counts", "9", "--out", str(tmp_path / "run"), "--json", "-"])
    assert done.value.code == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"]
    assert certificate["n"] == 10
    assert json.loads((tmp_path / "run" / "config.json").read_text())["augment"]["counts (heuristic)"] == 9
    for wrong, message in (
        (["--data", "iris", "--augment", "flip"], "no square images"),
        (["--augment-counts", "3"], "goes with --augment"),
    ):
        with pytest.raises(SystemExit) as done:
            main(["train", *wrong, "--out", str(tmp_path / "none")])
        assert done.value.code == 2
        assert message in capsys.readouterr().err
