"""Unpacking an archive that nobody has looked into: plain files below one folder, and nothing else."""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from pactrain.runtime.errors import DataError

LIMIT = 1 << 30
"""Bytes that the files of an archive may take altogether; the largest of ours takes a fifth of it."""


def unpack(archive: str | Path, into: str | Path, *, folder: str) -> list[Path]:
    """Write the files below `folder` of a tar archive to `into`; a link, a device or any other path refuses the whole archive."""
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            files = [m for m in members if _is_wanted(m, archive, folder)]
            if sum(m.size for m in files) > LIMIT:
                raise DataError(f"{archive} holds more than {LIMIT:,} bytes; nothing was unpacked")
            return [_written(tar, member, Path(into)) for member in files]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{archive} cannot be unpacked into {into}: {error}") from error


def _is_wanted(member: tarfile.TarInfo, archive: str | Path, folder: str) -> bool:
    """Is it a file below the folder?  Folders are made as needed; all else is refused."""
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
