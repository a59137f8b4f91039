"""Archives that want to write elsewhere."""

import tarfile
from pathlib import Path

import pytest

from pactrain.data.archive import unpack
from pactrain.runtime.errors import DataError
from tests.data.tars import tar_of


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
