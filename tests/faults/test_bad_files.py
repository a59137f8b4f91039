"""Every file that we read, spoiled in every way: an answer, or one error that names the file; never anything else."""

import json
import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain import PactrainError
from pactrain.runtime.files import write_atomic
from tests.faults.conftest import Copy
from tests.faults.places import PLACES, REPORTED, loaded, reported

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # numpy remarks on odd files before we refuse them

SECONDS = 20
"""After which reading a file counts as hanging, on the busiest of machines."""


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """Nothing waits forever."""

    def hangs(*_: Any) -> None:
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def answer(read: Callable[[Path], Any], path: Path, *, named: bool = True) -> str:
    """What reading a file is answered with: "" if it works, or the message, which is short and names the file."""
    try:
        read(path)
    except PactrainError as error:
        said = str(error)
        assert 10 < len(said) < 1500
        assert not named or any(word in said for word in (path.parent.name, path.name, "column", "target", "model")), (
            said
        )
        return said
    return ""


# -- paths -------------------------------------------------------------------------------------------------------------

PATHS: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: None,
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
}
MAY_BE_ABSENT = ("moment.json", "history.jsonl", "store.sqlite")


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_file(name: str, kind: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES[name], tmp_path / name
    place.write(path, made)
    path.unlink()
    PATHS[kind](path)
    said = answer(place.read, path)
    assert said or (name in MAY_BE_ABSENT and ("missing" in kind or "link" in kind))


@pytest.mark.parametrize(
    "name",
    ["table.csv", "images", "certificate.json", "metrics.json", "history.jsonl", "moment.json", "model.safetensors"],
)
def test_files_that_say_they_are_endless(name: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES[name], tmp_path / name
    place.write(path, made)
    os.truncate(path, 1 << 40)  # holes, which take no room
    assert answer(place.read, path)


@pytest.mark.parametrize("name", ["table.csv", "table.npz", "graph.npz", "images", "batch", "certificate.json"])
@pytest.mark.parametrize("path", ["below/a/file", "nul\0byte", "x" * 300])
def test_names_that_no_file_can_have(name: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "below").write_text("a file")
    assert answer(PLACES[name].read, tmp_path / f"{path}{Path(name).suffix}", named=False)


# -- bytes -------------------------------------------------------------------------------------------------------------


def _flipped(content: bytes, at: float) -> bytes:
    out = bytearray(content)
    out[min(len(out) - 1, int(at * len(out)))] ^= 0x55
    return bytes(out)


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "one byte": lambda content: content[:1],
    "a tenth": lambda content: content[: len(content) // 10],
    "half": lambda content: content[: len(content) // 2],
    "all but one byte": lambda content: content[:-1],
    "a byte more": lambda content: content + b"x",
    "twice": lambda content: content + content,
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: np.random.default_rng(1).bytes(len(content)),
    "a picture": lambda _: b"GIF89a" + bytes(50),
    "an archive of nothing": lambda _: b"PK\x05\x06" + bytes(18),
    "null": lambda _: b"null",
    "nested brackets": lambda _: b"[" * 10_000 + b"]" * 10_000,
    "another encoding": lambda _: "x,ä\n1,2\n".encode("utf-16"),
} | {
    f"a byte changed at {share} of the length": lambda content, share=share: _flipped(content, share)
    for share in (0.0, 0.003, 0.01, 0.1, 0.5, 0.9, 0.999)
}
NEVER = ("nothing", "one byte", "zeros", "a picture", "null", "nested brackets")
"""What is not a file of any kind that we read."""


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("name", PLACES)
def test_files_that_are_spoiled(name: str, kind: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES[name], tmp_path / name
    place.write(path, made)
    good = path.read_bytes()
    path.write_bytes(BYTES[kind](good))
    said = answer(place.read, path)
    empty = name == "store.sqlite" and kind in ("nothing", "one byte")  # SQLite makes a new store of them
    if kind in NEVER and name not in ("history.jsonl",) and not empty:
        assert said
    if name == "posterior.safetensors" and path.read_bytes() != good:
        assert said


# -- documents ---------------------------------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "null": None,
    "a number": 7,
    "a negative number": -1,
    "a huge number": 10**12,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a flag": True,
    "a text": "text",
    "half a character": "\ud800",
    "a number of 400 digits": 10**400,
    "a list": [1, [2]],
    "an object": {"a": 1},
    "nothing in a list": [],
}
KEYS = {
    "certificate.json": ("statements", "delta", "n", "loss", "seed", "caveats", "notes", "budget", "measured", "hashes", "format"),
    "config.json": ("preprocess", "data", "model", "loss", "prior", "rules", "seed", "threads", "delta", "prior_data", "n", "groups"),
    "metrics.json": ("certificate", "strengthened", "weights", "train", "seconds"),
    "moment.json": ("log_stds", "gammas", "log_moments", "means", "variances", "errors", "negative", "n", "n_used", "measured"),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("name", "key"), [(name, key) for name, keys in KEYS.items() for key in keys])
def test_documents_with_a_field_of_something_else(name: str, key: str, kind: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES[name], tmp_path / name
    place.write(path, made)
    document = json.loads(path.read_text())
    assert key in document
    path.write_text(json.dumps(document | {key: VALUES[kind]}))
    said = answer(place.read, path)
    assert (
        said
        or type(VALUES[kind]) in (type(document[key]), float, int, bool)
        or key in ("train", "seconds", "n", "groups")
    )
    answer(reported, path)
    answer(loaded, path)


@pytest.mark.parametrize("name", KEYS)
def test_documents_that_lack_a_field(name: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES[name], tmp_path / name
    place.write(path, made)
    document = json.loads(path.read_text())
    for key in document:
        path.write_text(json.dumps({k: v for k, v in document.items() if k != key}))
        said = answer(place.read, path)
        assert said or key not in KEYS[name] or key in ("train", "seconds", "n", "groups", "measured")
        answer(reported, path)
        answer(loaded, path)


@pytest.mark.parametrize("kind", VALUES)
def test_histories_of_something_else(kind: str, made: Path, tmp_path: Path) -> None:
    place, path = PLACES["history.jsonl"], tmp_path / "history.jsonl"
    place.write(path, made)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for key in records[0]:
        path.write_text("".join(json.dumps(record | {key: VALUES[kind]}) + "\n" for record in records))
        answer(place.read, path)
        answer(reported, path)
        answer(loaded, path)


@pytest.mark.parametrize("name", [*REPORTED, "analysis.json", "calibration.safetensors"])
@pytest.mark.parametrize("kind", ["null", "nested brackets", "half", "noise"])
def test_reports_of_spoiled_folders(name: str, kind: str, copy: Copy) -> None:
    path = copy("iris") / name
    path.write_bytes(BYTES[kind](path.read_bytes()))
    said = answer(reported, path)
    assert said or name in ("history.jsonl", "calibration.safetensors")
    said = answer(loaded, path)
    assert said or name != "calibration.safetensors"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_devices_are_written_to_and_not_replaced(device: str, tmp_path: Path) -> None:
    own = tmp_path / "device"
    try:
        os.mknod(own, 0o666 | stat.S_IFCHR, os.stat(device).st_rdev)
        own.open("wb").close()
    except OSError:
        pytest.skip("devices can be made by root alone, on a file system that has them")
    if device == "/dev/null":
        write_atomic(own, "text")
    else:
        with pytest.raises(OSError, match="No space left"):
            write_atomic(own, "text")
    assert stat.S_ISCHR(own.lstat().st_mode)
    assert os.listdir(tmp_path) == ["device"]
