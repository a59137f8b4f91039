"""Reading the pickles that CIFAR is published as without running them.

A pickle is a program: it may name any function and call it.  This reader goes through its instructions, builds the lists,
dictionaries, texts, numbers and uint8 arrays it describes, and calls nothing; any name but those with which numpy
describes an array ends the reading.
"""

import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import expanded_limit, regular

RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
FROM_BUFFER = ("numpy.core.numeric _frombuffer", "numpy._core.numeric _frombuffer")
NAMES = {*RECONSTRUCT, *FROM_BUFFER, "numpy ndarray", "numpy dtype", "_codecs encode"}

VALUES = {"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES"} | {
    "SHORT_BINBYTES",
    "BINBYTES8",
    "BYTEARRAY8",
    "UNICODE",
}
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
IGNORED = {"PROTO", "FRAME", "STOP"}
MARK = object()


@dataclass(frozen=True)
class _Name:
    """A function or class that the pickle names; it is never looked up."""

    text: str


@dataclass
class _Array:
    """An array that the pickle describes, filled in later."""

    value: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class _Type:
    """The type of an array's numbers."""

    text: str


def read_pickled(path: str | Path) -> dict[bytes, Any]:
    """The dictionary in a file of CIFAR's Python layout: keys as bytes, arrays of uint8, lists of whatever else."""
    reader = _Reader(expanded_limit(regular(path)))
    try:
        for operation, argument, _ in pickletools.genops(regular(path).read_bytes()):
            reader.take(operation.name, argument)
        (found,) = reader.stack
    except _Refused as refused:
        raise DataError(
            f"{path} is not in CIFAR's Python layout: it {refused}; nothing of it was run.  Do not trust this file"
        ) from None
    except (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path} is not a whole file in CIFAR's Python layout ({error!s:.200}); fetch it again"
        ) from error
    if not isinstance(found, dict):
        raise DataError(f"{path} holds a {type(found).__name__} and not CIFAR's dictionary; fetch it again")
    return {k.encode() if isinstance(k, str) else k: v.value if isinstance(v, _Array) else v for k, v in found.items()}


class _Refused(Exception):
    """The pickle wants something that no array needs."""


class _Reader:
    """The few instructions of pickle's machine that describe data."""

    def __init__(self, room: int) -> None:
        self.room = room  # bytes that calls may still make; a short file may ask for the same ones again and again
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def take(self, name: str, argument: Any) -> None:
        """Carry one instruction out."""
        if name in VALUES:
            self.stack.append(argument)
        elif name in ("SHORT_BINSTRING", "BINSTRING", "STRING"):  # what Python 2 calls a text are bytes
            self.stack.append(argument.encode("latin-1"))
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            self.stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self.memory[len(self.memory) if argument is None else int(argument)] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self.memory[int(argument)])
        elif name not in IGNORED:
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name == "MARK":
            stack.append(MARK)
        elif name in ("TUPLE", *TUPLES):
            stack.append(tuple(self._marked() if name == "TUPLE" else self._last(TUPLES[name])))
        elif name in ("APPEND", "APPENDS"):
            items = self._marked() if name == "APPENDS" else self._last(1)
            _expect(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._marked() if name == "SETITEMS" else self._last(2)
            keys = [_expect(key, (str, bytes)) for key in items[::2]]  # to hash nested tuples may take forever
            _expect(stack[-1], dict).update(zip(keys, items[1::2], strict=True))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(_known(argument if name == "GLOBAL" else " ".join(self._last(2))))
        elif name == "REDUCE":
            function, arguments = self._last(2)
            made = _described(_expect(function, _Name).text, _expect(arguments, tuple))
            self.room -= len(made) if isinstance(made, bytes) else 0
            if self.room < 0:
                raise _Refused("expands to more than any data needs")
            stack.append(made)
        elif name == "BUILD":
            (state,) = self._last(1)
            if not isinstance(stack[-1], _Type):  # the byte order of uint8 tells nothing
                array = _expect(stack[-1], _Array)
                array.value = _array(*_expect(state, tuple)[1:])
        else:
            raise _Refused(f"holds the instruction {name}")

    def _last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("its instructions do not fit together")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def _marked(self) -> list[Any]:
        at = max(i for i, item in enumerate(self.stack) if item is MARK)
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items


def _expect(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind):
        wanted = " or ".join(k.__name__.strip("_").lower() for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise _Refused(f"has {type(value).__name__.strip('_').lower()} instead of {wanted}")
    return value


def _known(name: str) -> _Name:
    if name not in NAMES:
        raise _Refused(f"names {name.replace(' ', '.')!s:.80}")
    return _Name(name)


def _described(name: str, arguments: tuple[Any, ...]) -> Any:
    """What a call that describes data would give."""
    if name in RECONSTRUCT:
        return _Array()
    if name in FROM_BUFFER:
        raw, kind, shape, order = arguments
        return _Array(_array(shape, kind, order == "F", raw))
    if name == "numpy dtype":
        kind = arguments[0]
        return _Type(kind.decode() if isinstance(kind, bytes) else _expect(kind, str))
    if name == "_codecs encode":  # how Python 3 writes bytes for Python 2
        return _expect(arguments[0], str).encode("latin-1")
    raise _Refused(f"calls {name.replace(' ', '.')}")


def _array(shape: Any, kind: Any, columns_first: Any, raw: Any) -> NDArray[np.uint8]:
    if not isinstance(kind, _Type) or kind.text not in ("u1", "|u1") or not isinstance(raw, (bytes, bytearray)):
        raise _Refused("holds an array of something else than uint8")
    return np.frombuffer(raw, np.uint8).reshape(tuple(map(int, shape)), order="F" if columns_first else "C")
