"""Downloads from a server of our own."""

import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pactrain.cli.main import main
from pactrain.data import load_images
from pactrain.data.catalogue import ENTRIES, Entry, Published, where
from pactrain.data.download import download
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Event
from tests.data.image_files import pixels
from tests.data.tars import tar_of

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as http:
        thread = threading.Thread(target=partial(http.serve_forever, poll_interval=0.01), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", folder
        http.shutdown()
        thread.join()


def cifar100_archive() -> tuple[bytes, bytes]:
    records = np.concatenate([np.array([[1, 42]], dtype=np.uint8), pixels(1)], axis=1).tobytes()
    return tar_of({"cifar-100-binary/train.bin": records, "cifar-100-binary/test.bin": records}), records


def home_of(url: str, content: bytes, folder: str = "cifar-100-binary") -> Published:
    return Published(url, hashlib.md5(content).hexdigest(), len(content), folder)


def test_a_set_is_fetched_from_its_home(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, folder = server
    content, _ = cifar100_archive()
    (folder / "c.tar.gz").write_bytes(content)
    old = ENTRIES["cifar100"]
    entry = Entry(old.name, "images", 1, 1, 100, old.layouts, (home_of(f"{url}/c.tar.gz", content),))
    monkeypatch.setitem(ENTRIES, "cifar100", entry)
    events: list[Event] = []
    images = load_images("cifar100", progress=events.append)  # into the cache
    assert images.y_train.tolist() == [42]
    torch.testing.assert_close(images.train[0], (images.x_train / 255 - 0.5) / 0.25)
    assert where(entry) == tmp_path / "cache/pactrain/cifar-100-binary"
    assert (events[-1].phase, events[-1].done, events[-1].total) == ("download", len(content), len(content))
    assert sorted(p.name for p in (tmp_path / "cache/pactrain").iterdir()) == ["cifar-100-binary"]  # no archive is left
    for first in (True, False):
        with pytest.raises(SystemExit) as done:
            main(["data", "fetch", "cifar100", "--data-root", str(tmp_path / "mine"), "--json", "-"])
        assert done.value.code == 0
        out = json.loads(capsys.readouterr().out)
        if first:  # it was in the cache
            assert out["fetched"] is False
            for path in (tmp_path / "cache/pactrain/cifar-100-binary").iterdir():
                path.unlink()
    assert out["fetched"] is True
    assert out["where"] == str(tmp_path / "mine/cifar-100-binary")


def test_downloads_that_are_not_what_was_published(server: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = server
    (folder / "f").write_bytes(b"abc")
    good = hashlib.md5(b"abc").hexdigest()
    assert download(f"{url}/f", "f", md5=good, size=3, into=tmp_path / "in").read_bytes() == b"abc"
    for md5, size, message in ((good[::-1], 3, "checksum"), (good, 4, "cut short"), (good, 2, "more than 2 bytes")):
        with pytest.raises(DataError, match=message):
            download(f"{url}/f", "other", md5=md5, size=size, into=tmp_path / "in")
    with pytest.raises(DataError, match=r"could not be fetched from .*404.*--data-root"):
        download(f"{url}/absent", "absent", into=tmp_path / "in")
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["f"]
