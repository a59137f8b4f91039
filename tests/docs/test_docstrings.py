"""The examples in docstrings do what they say, and everything public says what it takes, returns and is used for."""

import dataclasses
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pactrain
import pactrain.data
from pactrain.problem.batches import Batches
from pactrain.runtime.events import Event

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


def named_in_the_reference() -> Iterator[Any]:
    """Functions and classes that docs/api.md shows."""
    text = (SOURCE.parents[1] / "docs" / "api.md").read_text()
    module = ""
    for kind, name in re.findall(r"\.\. (currentmodule|autofunction|autoclass):: (\S+)", text):
        if kind == "currentmodule":
            module = name
            continue
        home, _, last = (name if "." in name else f"{module}.{name}").rpartition(".")
        yield getattr(importlib.import_module(home), last)


def public() -> list[Any]:
    """Every public function and class, once."""
    packages = (pactrain, pactrain.bounds, pactrain.models, pactrain.sklearn, pactrain.data)
    exported = [getattr(package, name) for package in packages for name in package.__all__]
    found = [*exported, *named_in_the_reference(), Batches, Event]
    return sorted({thing for thing in found if not inspect.ismodule(thing)}, key=lambda thing: thing.__qualname__)


def own_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods that are written in pactrain, with what they inherit from there."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        function = getattr(member, "__func__", member)
        if (
            inspect.isfunction(function)
            and (name == "__call__" or name[0] != "_")
            and function.__module__.startswith("pactrain")
        ):
            yield f"{kind.__qualname__}.{name}", getattr(kind, name)


def fields(kind: type) -> list[str]:
    """Public fields of a dataclass or a named tuple."""
    names = (
        [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else getattr(kind, "_fields", ())
    )
    return [name for name in names if not name.startswith("_")]


def gaps(name: str, thing: Any) -> Iterator[str]:
    """What the docstring of a function, a method or a class leaves out or says oddly."""
    text = inspect.getdoc(thing) or ""
    first = text.partition("\n")[0]
    if not first or first.endswith("?") or first.startswith("The same"):
        yield f"{name}: begins {first!r}"
    if inspect.isclass(thing):
        wanted = fields(thing) or parameters(thing.__init__)
        code = vars(thing).get("__post_init__")
    else:
        wanted, code = parameters(thing), thing
        returns = inspect.signature(thing).return_annotation
        if returns not in (None, "None", inspect.Signature.empty) and not re.search(r"^(Returns|Yields):$", text, re.M):
            yield f"{name}: no Returns"
    if code and re.search(r"^ +raise ", inspect.getsource(code), re.M) and "\nRaises:\n" not in text:
        yield f"{name}: no Raises"
    yield from (
        f"{name}: {part} is not described"
        for part in wanted
        if not re.search(rf"^    (\**\w+, )*\**{part}(, \**\w+)*( \(.*\))?: \S", text, re.M)
    )


def parameters(function: Any) -> list[str]:
    """Parameters of a function that a caller gives; of a class without an `__init__` of its own, none."""
    if not inspect.isfunction(function):
        return []
    return [name for name in inspect.signature(function).parameters if name != "self" and not name.startswith("_")]


@pytest.mark.parametrize("thing", public(), ids=lambda thing: thing.__qualname__)
def test_everything_public_is_described(thing: Any) -> None:
    methods = own_methods(thing) if inspect.isclass(thing) else ()
    found = [gap for name, part in [(thing.__qualname__, thing), *methods] for gap in gaps(name, part)]
    if ">>>" not in (thing.__doc__ or ""):
        found.append(f"{thing.__qualname__}: no example")
    assert found == []


def test_every_attribute_of_a_posterior_is_described() -> None:
    held = pactrain.Posterior(torch.nn.Linear(2, 1))
    names = {*vars(held), *held._parameters, *held._buffers, *held._modules} - vars(torch.nn.Module()).keys()
    public_names = {name for name in names if not name.startswith("_")}
    assert {"log_std", "prior_mean", "prior_rows", "model"} < public_names
    assert [
        name for name in public_names if not re.search(rf"^    +{name}: \S", pactrain.Posterior.__doc__ or "", re.M)
    ] == []


def test_gaps_are_found() -> None:
    def odd(number: int) -> int:
        """Is it odd?"""
        if number < 0:
            raise ValueError
        return number % 2

    begins = "odd: begins 'Is it odd?'"
    assert list(gaps("odd", odd)) == [begins, "odd: no Returns", "odd: no Raises", "odd: number is not described"]


def test_docstrings_are_statements_that_can_be_read_alone() -> None:
    odd = re.compile(r'"""(The same\b|(Is|Are|Do|Does|Has|Have|Can|Was|Were|Did)\b[^"]*\?)')
    assert [str(path) for path in SOURCE.rglob("*.py") if odd.search(path.read_text())] == []
    assert odd.search('"""Is it noise?""" ')
