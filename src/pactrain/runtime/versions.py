"""Versions of Python and of packages, and the kind of processor, which are stored with every result."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

VERSION_OF = ("pactrain", "torch", "numpy", "scikit-learn")


def machine() -> str:
    """The kind of processor: another kind may round a sum of floats differently."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {name or platform.processor()}".strip()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for name in VERSION_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
