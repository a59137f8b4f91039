"""Data by name or from the user's own files, ready to train on."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pactrain.data.images import ImageSet, load_images

_HOME = {"ImageSet": "data.images", "load_images": "data.images"}

__all__ = ["ImageSet", "load_images"]


def __getattr__(name: str) -> Any:
    """Import on first use: `pactrain data list` must not wait for torch."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"pactrain.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
