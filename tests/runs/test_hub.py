"""A pushed run can be verified by whoever has it; the Hub is a small server here that keeps what the real client sends."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import pactrain
from pactrain import PactrainError
from pactrain.cli.main import main
from tests.zoo import build, rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the command line, which can be made again from its folder."""
    folder = tmp_path_factory.mktemp("runs") / "wine"
    with pytest.raises(SystemExit):
        main(["train", "--data", "wine", "--model", "mlp:8", "--budget", "3 epochs", "--out", str(folder)])
    return folder


def verified(folder: Path) -> bool:
    """What `pactrain verify` says."""
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(folder)])
    return ended.value.code == 0


def test_a_local_folder_holds_what_verify_needs(run: Path, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    assert pactrain.load(run).push_to_hub(to) == str(to)
    assert not (to / "report.html").exists()
    assert not (to / "analysis.json").exists()
    assert "# wine\n" in (to / "README.md").read_text()
    assert verified(to)
    assert pactrain.load(to).predict([[0.0] * 13]).values.shape == (1,)
    certificate = json.loads((to / "certificate.json").read_text())
    certificate["statements"][0]["value"] /= 2
    (to / "certificate.json").write_text(json.dumps(certificate))
    assert not verified(to)


class Hub(BaseHTTPRequestHandler):
    """The four answers that pushing needs; files that are sent end up in `kept`."""

    kept: dict[str, bytes]

    def do_POST(self) -> None:
        """Answer."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer: dict[str, Any] = {"errors": [], "warnings": []}  # /api/validate-yaml
        if self.path == "/api/repos/create":
            answer = {"url": f"http://{self.headers['Host']}/me/wine"}
        elif "/preupload/" in self.path:
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]
            ]
            answer = {"files": files}
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines()]
            self.kept |= {v["path"]: base64.b64decode(v["content"]) for v in (x["value"] for x in lines) if "path" in v}
            answer = {"commitUrl": f"http://{self.headers['Host']}/me/wine/commit/1", "commitOid": "1", "success": True}
        self.answer(200, answer)

    def do_GET(self) -> None:
        """Nothing is there before the push."""
        self.answer(404, {"error": "not found"})

    def answer(self, code: int, values: dict[str, Any]) -> None:
        """Send JSON."""
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(values).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A Hub on this machine, to which the client goes."""
    constants = pytest.importorskip("huggingface_hub.constants")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneHub", (Hub,), {"kept": {}}))
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.RequestHandlerClass  # type: ignore[misc]
    server.shutdown()
    server.server_close()


def test_what_the_hub_gets_can_be_verified(run: Path, tmp_path: Path, hub: type[Hub]) -> None:
    assert pactrain.load(run).push_to_hub("me/wine").endswith("me/wine")
    for name, content in hub.kept.items():
        (tmp_path / name).write_bytes(content)
    assert {"README.md", "certificate.json", "model.safetensors", "posterior.safetensors"} <= hub.kept.keys()
    assert not {"report.html", "analysis.json"} & hub.kept.keys()
    assert verified(tmp_path)


def test_what_cannot_be_pushed(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = pactrain.load(run)
    with pytest.raises(PactrainError, match="no name on the Hub"):
        result.push_to_hub("not/a/name")
    with pytest.raises(PactrainError, match="the run folder itself"):
        result.push_to_hub(run)
    (tmp_path / "file").write_text("")
    with pytest.raises(PactrainError, match="could not be copied"):
        result.push_to_hub(tmp_path / "file" / "below")
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(PactrainError, match=r"pip install 'pactrain\[hub\]'"):
        result.push_to_hub("me/wine")
    with pytest.raises(PactrainError, match='train with out="runs/mine"'):
        pactrain.fit(build("mlp"), rows(), budget="1 epoch").push_to_hub("me/wine")
