"""What a result was made with."""

import platform
from importlib.metadata import PackageNotFoundError, version

VERSION_OF = ("pactrain", "torch", "numpy", "scikit-learn")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for name in VERSION_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
