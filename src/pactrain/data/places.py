"""The folders in which data files are looked for."""

import os
from pathlib import Path

from pactrain.runtime.errors import DataError


def cache_folder() -> Path:
    """Where downloads and computed features are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pactrain"


def places(root: str | Path | None) -> list[Path]:
    """The folders that are looked at, in order: `root`, then $PACTRAIN_DATA, then the user's cache."""
    return [Path(p) for p in (root, os.environ.get("PACTRAIN_DATA")) if p] + [cache_folder()]


def data_file(name: str, root: str | Path | None) -> Path:
    """Find a data file in one of the places."""
    for place in places(root):
        if (place / name).is_file():
            return place / name
    looked = ", ".join(map(str, places(root)))
    raise DataError(f"{name} was not found (looked in {looked}); put it there, or name its folder with --data-root")
