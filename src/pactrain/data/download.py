"""Fetching a published file into the user's cache."""

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from pactrain.data.named import cache_folder
from pactrain.errors import DataError

SECONDS = 30.0
"""Silence of a server after which a download is given up."""


def download(url: str, name: str, *, sha256: str | None = None) -> Path:
    """Fetch `url` into the cache as `name`; with a checksum, refuse any other content."""
    goal = cache_folder() / name
    goal.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise DataError(
            f"{name} could not be fetched from {url}: {error}; fetch it by other means and put it into {goal.parent}, "
            "or name its folder with --data-root or $PACTRAIN_DATA"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise DataError(
            f"{url} has the checksum {found} and not {sha256}: it is not the published file; nothing was kept"
        )
    handle, part = tempfile.mkstemp(dir=goal.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(part).replace(goal)
    return goal
