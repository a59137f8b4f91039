"""Unpacking an untrusted archive: plain files below one folder, and nothing else."""

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import regular

LIMIT = 1 << 30
"""Bytes that the files of an archive may take altogether; the largest of ours takes a fifth of it."""

PIECE = 1 << 24
"""Bytes that are expanded at once."""


def unpack(archive: str | Path, into: str | Path, *, folder: str) -> list[Path]:
    """Write the files below `folder` of a tar archive to `into`; a link, a device or any other path refuses the whole archive."""
    try:
        with _opened(regular(archive)) as raw, tarfile.open(fileobj=raw, mode="r:") as tar:
            files = _wanted(tar, archive, folder)
            return [_written(tar, member, Path(into)) for member in files]
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{archive} cannot be unpacked into {into}: {error}") from error


class _Bounded(gzip.GzipFile):
    """A compressed file that is read in pieces: no field of an archive takes more memory than one of them."""

    def read(self, size: int | None = -1) -> bytes:
        """Read one piece."""
        if size is None or not 0 <= size <= PIECE:
            raise tarfile.ReadError(f"a field of {size} bytes")
        return super().read(size)


def _opened(archive: Path) -> IO[bytes]:
    with archive.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return _Bounded(archive) if compressed else archive.open("rb")  # type: ignore[return-value]


def _wanted(tar: tarfile.TarFile, archive: str | Path, folder: str) -> list[tarfile.TarInfo]:
    """The files of the archive; too much is refused at the first header that says so, before anything more is expanded."""
    files, size = [], 0
    for member in tar:
        size += member.size + tarfile.BLOCKSIZE
        if size > LIMIT:
            raise DataError(f"{archive} holds more than {LIMIT:,} bytes; nothing was unpacked")
        if _is_wanted(member, archive, folder):
            files.append(member)
    return files


def _is_wanted(member: tarfile.TarInfo, archive: str | Path, folder: str) -> bool:
    """True for a file below the folder.  Folders are made as needed; all else is refused."""
    path = PurePosixPath(member.name)
    plain = member.isreg() or member.isdir()
    if not plain or path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0] != folder:
        kind = "a link or a device" if not plain else f"not below {folder}/"
        raise DataError(
            f"{archive} holds {member.name!r}, which is {kind}: nothing was unpacked; do not trust this file"
        )
    return member.isreg()


def _written(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> Path:
    """Write one file under its own name only when it is whole."""
    goal = into / member.name
    goal.parent.mkdir(parents=True, exist_ok=True)
    if not goal.resolve().is_relative_to(into.resolve()):  # a folder that was there before may be a link
        raise DataError(f"{goal.parent} leads out of {into}; nothing is written there")
    source = tar.extractfile(member)
    assert source is not None
    handle, part = tempfile.mkstemp(dir=goal.parent)
    try:
        with os.fdopen(handle, "wb") as file, source:
            shutil.copyfileobj(source, file)
        Path(part).replace(goal)
    finally:
        Path(part).unlink(missing_ok=True)
    return goal
