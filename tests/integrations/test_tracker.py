"""What trackers of experiments keep of a run, read back from their own local stores."""

import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pactrain
from pactrain.integrations.tracker import Tracker, flat, scalars
from tests.zoo import build, rows

pytestmark = pytest.mark.filterwarnings("ignore")  # the trackers' own


def trained(tracker: Tracker) -> pactrain.Result:
    """A short run kept with a tracker."""
    with tracker:
        result = pactrain.fit(build("mlp"), rows(), test=rows(20, seed=2), budget="3 epochs", callbacks=[tracker])
        tracker.record(result)
    return result


def kept(result: pactrain.Result) -> Iterator[tuple[str, list[tuple[int, Any]]]]:
    """Every number that a tracker must have: its name, and its values by epoch."""
    for name in scalars(result.history[0]):
        values = [(record["epoch"], scalars(record).get(name)) for record in result.history]
        yield name, [(epoch, pytest.approx(value, rel=1e-6)) for epoch, value in values if value is not None]
    for name, value in flat({"final/test": result.metrics["test"]}).items():
        yield name, [(3, pytest.approx(value, rel=1e-6))]


def logged(data: bytes) -> Iterator[bytes]:
    """The records of a file of Weights & Biases: seven bytes of its own, then LevelDB's log of blocks of 32 KiB."""
    at, parts = 7, b""
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy", reason="MLflow needs it for a local database")
    from pactrain.integrations.mlflow import MLflow

    monkeypatch.chdir(tmp_path)  # artifacts go to ./mlruns
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    tracker = MLflow("tests", name="first", uri=uri)
    result = trained(tracker)
    client = mlflow.MlflowClient(tracking_uri=uri)
    assert tracker.run_id is not None
    run = client.get_run(tracker.run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert run.data.params["seed"] == "0"
    assert run.data.params["rules/batch_size"] == "64"
    for name, values in kept(result):
        assert [(m.step, m.value) for m in client.get_metric_history(tracker.run_id, name)] == values
    file = mlflow.artifacts.download_artifacts(
        run_id=tracker.run_id, artifact_path="certificate.json", tracking_uri=uri, dst_path=str(tmp_path)
    )
    assert pactrain.Certificate.read(Path(file)).recheck()

    again = MLflow("tests", uri=uri)
    again.log({"a (b)": 1.0}, 1)
    with suppress(ZeroDivisionError), again:
        raise ZeroDivisionError
    assert again.run_id is not None
    assert client.get_run(again.run_id).info.status == "FAILED"
    assert client.get_run(again.run_id).info.experiment_id == run.info.experiment_id


def test_weights_and_biases_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2

    from pactrain.integrations.wandb import WandB

    monkeypatch.setenv("WANDB_SILENT", "true")
    result = trained(WandB(project="tests", mode="offline", dir=str(tmp_path)))
    wandb.teardown()  # its own process may still be writing
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    read: Any = getattr(wandb_internal_pb2, "Record").FromString  # noqa: B009 - made when imported
    records = [read(data) for data in logged(file.read_bytes())]
    history: dict[str, list[tuple[int, Any]]] = {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            line = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for name, value in line.items():
                history.setdefault(name, []).append((line["_step"], value))
    for name, values in kept(result):
        assert history[name] == values, name
    settings = {
        item.key or "/".join(item.nested_key): item.value_json
        for record in records
        if record.WhichOneof("record_type") == "config"
        for item in record.config.update
    }
    assert json.loads(settings["seed"]) == 0
    (written,) = tmp_path.glob("wandb/offline-run-*/files/certificate.json")
    assert pactrain.Certificate.read(written).recheck()
    assert any(record.exit.exit_code == 0 for record in records if record.WhichOneof("record_type") == "exit")


def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    pytest.importorskip("trackio")
    from trackio import utils
    from trackio.sqlite_storage import SQLiteStorage

    from pactrain.integrations.trackio import Trackio

    monkeypatch.setattr(utils, "TRACKIO_DIR", tmp_path)  # read once, when trackio was imported
    result = trained(Trackio("tests", name="first", auto_log_cpu=False))
    logs = SQLiteStorage.get_logs("tests", "first")
    for name, values in kept(result):
        assert [(log["step"], log[name]) for log in logs if name in log] == values, name
    assert "Nothing" in str(logs[-1]["certificate"]) or "confidence" in str(logs[-1]["certificate"])


@pytest.mark.parametrize(("module", "name"), [("mlflow", "MLflow"), ("wandb", "WandB"), ("trackio", "Trackio")])
def test_what_is_not_installed_is_named(module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    kind = getattr(import_module(f"pactrain.integrations.{module}"), name)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(pactrain.PactrainError, match=rf"pip install 'pactrain\[{module}\]'"):
        kind()
