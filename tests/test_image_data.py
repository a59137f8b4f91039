"""Sets of images: published layouts written by hand, downloads from a server of our own, archives that want too much."""

import gzip
import hashlib
import io
import json
import pickle
import struct
import tarfile
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
from pactrain.data.archive import unpack
from pactrain.data.catalogue import ENTRIES, Entry, Published, entry_of, fetch, located, where
from pactrain.data.cifar import read_cifar10, read_cifar100
from pactrain.data.download import download
from pactrain.data.load import load
from pactrain.data.pickled import read_pickled
from pactrain.errors import DataError
from pactrain.events import Event

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _no_data_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACTRAIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# -- pickles as Python 2 wrote them ---------------------------------------------------------------------------------------


def old_bytes(raw: bytes) -> bytes:
    """Python 2's `str`."""
    return b"U" + bytes([len(raw)]) + raw if len(raw) < 256 else b"T" + struct.pack("<i", len(raw)) + raw


def old_array(array: np.ndarray[Any, Any]) -> bytes:
    """A uint8 array by protocol 2, as numpy wrote it in 2009."""
    kind = b"cnumpy\ndtype\n" + old_bytes(b"u1") + b"K\x00K\x01\x87R(K\x03" + old_bytes(b"|") + b"NNN"
    kind += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"".join(b"M" + struct.pack("<H", n) for n in array.shape)
    start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + old_bytes(b"b") + b"\x87R"
    return start + b"(K\x01" + shape + b"\x86" + kind + b"\x89" + old_bytes(array.tobytes()) + b"tb"


def old_file(path: Path, array: np.ndarray[Any, Any], labels: dict[str, list[int]]) -> None:
    """A dictionary by protocol 2, its labels put into the memory and read back as the published files do."""
    body = b"\x80\x02}q\x01(" + old_bytes(b"batch_label") + old_bytes(b"one")
    for number, (key, values) in enumerate(labels.items(), start=2):
        numbers = b"".join(b"K" + bytes([v]) for v in values)
        body += old_bytes(key.encode()) + b"]q" + bytes([number]) + b"(" + numbers + b"e"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(body + old_bytes(b"data") + old_array(array) + b"u.")


def pixels(n: int) -> np.ndarray[Any, Any]:
    return RNG.integers(0, 256, (n, 3072), dtype=np.uint8)


def test_the_hand_written_pickles_are_what_python_reads_too(tmp_path: Path) -> None:
    x = pixels(2)
    old_file(tmp_path / "f", x, {"labels": [3, 4]})
    by_python = pickle.loads((tmp_path / "f").read_bytes(), encoding="bytes")
    ours = read_pickled(tmp_path / "f")
    assert by_python.keys() == ours.keys()
    assert (by_python[b"data"] == ours[b"data"]).all()
    assert by_python[b"labels"] == ours[b"labels"] == [3, 4]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("as_text", [False, True])
def test_pickles_that_were_written_again_by_python_3(tmp_path: Path, protocol: int, as_text: bool) -> None:
    x = np.asfortranarray(pixels(3))
    keys = ("data", "labels") if as_text else (b"data", b"labels")
    (tmp_path / "f").write_bytes(pickle.dumps(dict(zip(keys, (x, [1, 2, 300]), strict=True)), protocol))
    found = read_pickled(tmp_path / "f")
    assert (found[b"data"] == x).all()
    assert found[b"labels"] == [1, 2, 300]


def test_cifar_from_its_python_files(tmp_path: Path) -> None:
    parts = [pixels(2) for _ in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for name, x in zip(names, parts, strict=True):
        old_file(tmp_path / "cifar-10-batches-py" / name, x, {"labels": [9, int(x[1, 0]) % 10]})
    images, labels = read_cifar10(tmp_path)
    assert (images.reshape(10, -1) == np.concatenate(parts[:5])).all()
    assert images.shape == (10, 3, 32, 32)
    assert labels.tolist()[::2] == [9] * 5
    assert len(read_cifar10(tmp_path, train=False)[1]) == 2
    for name in ("train", "test"):
        old_file(tmp_path / "cifar-100-python" / name, parts[0], {"coarse_labels": [1, 2], "fine_labels": [99, 7]})
    assert read_cifar100(tmp_path)[1].tolist() == [99, 7]
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"coarse_labels": [1, 2], "fine_labels": [100, 7]})
    with pytest.raises(DataError, match="class 100; CIFAR-100 has classes 0 to 99"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0], {"fine_labels": [7]})
    with pytest.raises(DataError, match="no list of 2 class numbers"):
        read_cifar100(tmp_path)
    old_file(tmp_path / "cifar-100-python" / "train", parts[0][:, :5], {"fine_labels": [7, 7]})
    with pytest.raises(DataError, match="no array 'data'"):
        read_cifar100(tmp_path)


class Runs:
    """What an attacker would pickle."""

    def __init__(self, goal: Path) -> None:
        self.goal = goal

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch {self.goal}",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path, protocol: int) -> None:
    evil, proof = tmp_path / "cifar-100-python" / "train", tmp_path / "it ran"
    evil.parent.mkdir()
    evil.write_bytes(pickle.dumps({b"data": Runs(proof), b"fine_labels": [1]}, protocol))
    (evil.parent / "test").write_bytes(evil.read_bytes())
    with pytest.raises(DataError, match="nothing of it was run"):
        read_cifar100(tmp_path)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02cbuiltins\neval\n.", "names builtins.eval"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "calls numpy.ndarray"),
        (b"\x80\x02cnumpy\ndtype\n}b.", "name in the place of array"),
        (b"\x80\x02(i__main__\nX\n.", "instruction INST"),
        (b"\x80\x02]K\x01\x81.", "instruction NEWOBJ"),
        (b"\x80\x02}q\x01(U\x04da", "not a whole file"),
        (b"\x80\x02K\x01.", "a int and not CIFAR's dictionary"),
        (b"", "not a whole file"),
        (b"\x80\x02\x85.", "do not fit together"),
        (pickle.dumps({b"data": np.zeros(2)}, 2), "something else than uint8"),
    ],
)
def test_pickles_of_another_kind_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pickled(tmp_path / "f")


# -- IDX ------------------------------------------------------------------------------------------------------------------


def idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes()


def write_idx(folder: Path, *, compress: bool, n: int = 4) -> dict[str, np.ndarray[Any, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for part, images in (("train", n), ("t10k", 2)):
        arrays[f"{part}-images-idx3-ubyte"] = RNG.integers(0, 256, (images, 28, 28), dtype=np.uint8)
        arrays[f"{part}-labels-idx1-ubyte"] = RNG.integers(0, 10, images, dtype=np.uint8)
    for name, array in arrays.items():
        raw = idx(array)
        (folder / f"{name}{'.gz' if compress else ''}").write_bytes(gzip.compress(raw) if compress else raw)
    return arrays


@pytest.mark.parametrize(
    ("name", "folder", "compress"), [("mnist", "MNIST/raw", False), ("fashion_mnist", "fashion_mnist", True)]
)
def test_images_from_idx_files(tmp_path: Path, name: str, folder: str, compress: bool) -> None:
    arrays = write_idx(tmp_path / folder, compress=compress)
    found = load_images(name, tmp_path)
    assert (found.x_train[:, 0].numpy() == arrays["train-images-idx3-ubyte"]).all()
    assert found.y_test.tolist() == arrays["t10k-labels-idx1-ubyte"].tolist()
    assert found.x_train.dtype == torch.uint8
    assert torch.equal(found.train[0], found.x_train.float() / 255)
    assert found.test[1].dtype == torch.int64
    task = load(name, root=tmp_path)
    assert task.x_train.shape == (4, 784)
    assert task.caveats == ()
    assert (task.x_train.reshape(4, 28, 28) == found.train[0][:, 0].numpy()).all()


def test_idx_files_that_are_not_whole(tmp_path: Path) -> None:
    write_idx(tmp_path / "mnist", compress=False)
    labels, images = tmp_path / "mnist/train-labels-idx1-ubyte", tmp_path / "mnist/train-images-idx3-ubyte"
    kept = images.read_bytes()
    for content, message in (
        (kept[:-1], "should hold 4×28×28 bytes and holds 3,135"),
        (b"GIF89a", "not an IDX file"),
        (gzip.compress(kept)[:-9], "cannot be read"),
    ):
        images.write_bytes(content)
        with pytest.raises(DataError, match=message):
            load_images("mnist", tmp_path)
    images.write_bytes(kept)
    labels.write_bytes(idx(np.full(4, 11, dtype=np.uint8)))
    with pytest.raises(DataError, match="a class from 0 to 9 for each image"):
        load_images("mnist", tmp_path)


def test_the_single_file_of_mnist_gives_the_same_task(tmp_path: Path) -> None:
    arrays = write_idx(tmp_path / "mnist", compress=True)
    a, b, c, d = arrays.values()
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "mnist.npz", x_train=a, y_train=b, x_test=c, y_test=d)
    one, two = (load("mnist", root=tmp_path / folder) for folder in (".", "other"))
    assert (one.x_train == two.x_train).all()
    assert one.encoder == two.encoder


# -- downloads ------------------------------------------------------------------------------------------------------------


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


def tar_of(files: dict[str, bytes], *links: tuple[str, str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, goal, kind in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, goal
            tar.addfile(member)
    return out.getvalue()


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


@pytest.mark.parametrize(
    ("files", "links", "message"),
    [
        ({"a/ok": b"1", "../evil": b"2"}, (), "not below a/"),
        ({"a/ok": b"1", "a/../../evil": b"2"}, (), "not below a/"),
        ({"/evil": b"2"}, (), "not below a/"),
        ({"b/evil": b"2"}, (), "not below a/"),
        ({"a/ok": b"1"}, (("a/link", "/", tarfile.SYMTYPE),), "a link or a device"),
        ({"a/ok": b"1"}, (("a/link", "../x", tarfile.LNKTYPE),), "a link or a device"),
        ({"a/ok": b"1"}, (("a/pipe", "", tarfile.FIFOTYPE),), "a link or a device"),
    ],
)
def test_archives_that_want_to_write_elsewhere_are_refused(
    tmp_path: Path, files: dict[str, bytes], links: tuple[tuple[str, str, bytes], ...], message: str
) -> None:
    archive, into = tmp_path / "x.tar.gz", tmp_path / "deep" / "in"
    archive.write_bytes(tar_of(files, *links))
    with pytest.raises(DataError, match=message):
        unpack(archive, into, folder="a")
    assert not into.exists()
    assert not list(tmp_path.rglob("evil"))


def test_a_folder_that_leads_elsewhere_is_not_written_through(tmp_path: Path) -> None:
    archive, into = tmp_path / "x.tar.gz", tmp_path / "in"
    archive.write_bytes(tar_of({"a/f": b"1"}))
    into.mkdir()
    (tmp_path / "victim").mkdir()
    (into / "a").symlink_to(tmp_path / "victim")
    with pytest.raises(DataError, match="leads out of"):
        unpack(archive, into, folder="a")
    assert not list((tmp_path / "victim").iterdir())
    archive.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(archive, into, folder="a")


# -- the command ----------------------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["data", *words])
    captured = capsys.readouterr()
    assert isinstance(done.value.code, int)
    return done.value.code, captured.out, captured.err


def test_data_list_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_idx(tmp_path / "fashion_mnist", compress=True)
    code, out, _ = told(capsys, "list", "--data-root", str(tmp_path), "--json", "-")
    sets = {s["name"]: s for s in json.loads(out)["sets"]}
    assert code == 0
    assert sets["fashion_mnist"]["where"] == str(tmp_path / "fashion_mnist")
    assert sets["digits"]["present"]
    assert Path(sets["digits"]["where"]).is_dir()
    assert not sets["cifar10"]["present"]
    assert sets["cifar100"]["classes"] == 100
    assert sets["uci:yacht"]["fetchable"] is False
    code, out, _ = told(capsys, "list")
    assert all(name in out for name in sets)
    assert "not here: pactrain data fetch cifar10" in out
    assert told(capsys, "where", "fashion_mnist", "--data-root", str(tmp_path))[1].strip() == str(
        tmp_path / "fashion_mnist"
    )
    for words, message in (
        (("where", "cifar10"), "pactrain data fetch cifar10"),
        (("where", "moebius"), "use one of digits"),
        (("fetch", "uci:yacht"), "no home to be fetched from; put uci_regression.npz"),
    ):
        code, out, err = told(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err


def test_every_named_set_is_in_the_catalogue() -> None:
    from pactrain.data.graphs import GRAPHS, SIZES
    from pactrain.data.named import NAMES

    assert set(ENTRIES) == {*NAMES, *(f"graph:{g}" for g in GRAPHS)}
    for name, (nodes, _, classes) in SIZES.items():
        entry = entry_of(f"graph:{name}")
        assert (entry.examples, entry.classes) == (nodes, classes)
    assert located(entry_of("cifar10")) is None
    with pytest.raises(DataError, match="pactrain data fetch cifar10"):
        read_cifar10()
    with pytest.raises(DataError, match="use one of mnist"):
        load_images("imagenet")
    with pytest.raises(DataError, match="no home"):
        fetch(entry_of("uci:yacht"))
