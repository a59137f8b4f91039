"""The examples in docstrings do what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import pactrain

SOURCE = Path(pactrain.__file__).parent
MODULES = [
    ".".join(["pactrain", *path.relative_to(SOURCE).with_suffix("").parts])
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    found = [part for part in doctest.DocTestFinder().find(module, name) if part.examples]
    assert found
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for part in found:
        assert doctest.DocTestRunner(verbose=False, optionflags=flags).run(part).failed == 0
