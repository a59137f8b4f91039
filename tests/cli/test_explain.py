"""`certify --explain`: what the ten lines take for granted, and what follows."""

import json
from pathlib import Path

import pytest

from pactrain.cli.explain import explanation
from pactrain.cli.main import main


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A progressive run that also has test rows."""
    folder = tmp_path_factory.mktemp("explain") / "run"
    words = ["--data", "digits", "--model", "mlp:8", "--certificate", "progressive", "--budget", "6 epochs"]
    with pytest.raises(SystemExit) as end:
        main(["train", *words, "--out", str(folder)])
    assert end.value.code == 0
    return folder


def test_regression_has_certificates_of_its_own(tmp_path: Path) -> None:
    words = ["--data", "diabetes", "--model", "linear", "--budget", "2 epochs", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main(["train", *words])
    lines = explanation(tmp_path / "run")
    assert 3 < len(lines) <= 10
    assert [line.partition(":")[0] for line in lines[3:]] == [
        "--prior-data 0.5", "--test-fraction 0.2", "--certificate progressive and recursive"
    ]  # fmt: skip


def test_networks_on_the_way_are_as_good_as_they_were_seen_to_be(run: Path) -> None:
    lines, metrics = explanation(run), json.loads((run / "metrics.json").read_text())
    blocks = metrics["certificate"]["blocks"][1:]
    right = [metrics["test"]["accuracy"], 1 - sum(k for _, k in blocks) / sum(n for n, _ in blocks)]
    assert abs(right[0] - right[1]) > 0.01
    delivered, earlier = (f"{100 * share:.1f} %" for share in right)
    assert (
        f"right in {delivered} of the cases (on the test rows), and those with fewer rows in {earlier} (on blocks"
        in lines[2]
    )
    half, way = (float(line.split(": ")[1].split(" %")[0]) / 100 for line in lines[5:7])
    assert all(right[1] - 0.08 < proved < right[1] for proved in (half, way))  # of those, not of the delivered one


def test_without_blocks_all_networks_are_taken_to_be_alike(run: Path, tmp_path: Path) -> None:
    for file in ("config.json", "certificate.json", "metrics.json"):
        (tmp_path / file).write_bytes((run / file).read_bytes())
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["certificate"]["blocks"] = None
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    assert "fewer rows" not in explanation(tmp_path)[2]
    (tmp_path / "metrics.json").write_text(json.dumps(metrics | {"test": None}))
    assert "right in 95.0 % of the cases (assumed: no rows were held out)." in explanation(tmp_path)[2]
