"""Fetching a published file, piece by piece, and keeping it only if it is the published one."""

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from pactrain.data.places import cache_folder
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Callback, Event, silent

SECONDS = 30.0
"""Silence of a server after which a download is given up."""

PIECE = 1 << 18


def download(
    url: str,
    name: str,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    into: str | Path | None = None,
    progress: Callback = silent,
) -> Path:
    """Fetch `url` into a folder, the cache by default, as `name`; with a checksum or a size, refuse any other content."""
    goal = Path(into or cache_folder()) / name
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=goal.parent)
    except OSError as error:
        raise DataError(f"{name} cannot be kept in {goal.parent}: {error}") from error
    hashes = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    try:
        with os.fdopen(handle, "wb") as file:
            length = _receive(url, goal, file, list(hashes.values()), size, progress)
        for kind, wanted in (("sha256", sha256), ("md5", md5)):
            found = hashes[kind].hexdigest()
            if wanted is not None and found != wanted:
                raise DataError(
                    f"{url} has the checksum {found} and not {wanted}: it is not the published file; nothing was kept"
                )
        if size is not None and length != size:
            raise DataError(f"{url} has {length:,} bytes and not {size:,}: it was cut short; nothing was kept")
        Path(part).replace(goal)
    finally:
        Path(part).unlink(missing_ok=True)
    return goal


def _receive(url: str, goal: Path, file: IO[bytes], hashes: list[Any], size: int | None, progress: Callback) -> int:
    """Write the content piece by piece, reporting after each; stop as soon as it is longer than it should be."""
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            total = size or int(answer.headers.get("Content-Length") or 0)
            while piece := answer.read(PIECE):
                done += len(piece)
                if size is not None and done > size:
                    raise DataError(
                        f"{url} has more than {size:,} bytes: it is not the published file; nothing was kept"
                    )
                file.write(piece)
                for state in hashes:
                    state.update(piece)
                progress(Event("download", done, max(total, done), {"file": goal.name}))
    except (urllib.error.URLError, OSError) as error:
        raise DataError(
            f"{goal.name} could not be fetched from {url}: {error}; fetch it by other means and put it into {goal.parent}, "
            "or name its folder with --data-root or $PACTRAIN_DATA"
        ) from error
    return done
