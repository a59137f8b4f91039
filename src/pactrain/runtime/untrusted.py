"""Reading files that may come from anybody: every array and document is checked in full before anything is built from it.

Only regular files are opened (a pipe would wait forever, a device may never end), what a file says of its own size is
compared with what it holds, and memory is bounded.  Whatever is wrong with a file ends in one error that names it.
"""

import json
import math
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, TypeVar

from pactrain.runtime.errors import DataError, PactrainError, RunError

if TYPE_CHECKING:  # a certificate is read and checked without numpy
    import numpy as np
    from numpy.typing import NDArray

MOST_JSON = 1 << 26
"""Bytes of a JSON file; the largest that a run writes takes about a hundredth of it."""

LEAST_LIMIT, EXPANSION = 1 << 30, 100
"""Bytes that any compressed file may expand to, and how many times its own size a larger one may."""

NUMBERS_AND_TEXTS = "biufcSUMm"
"""Kinds of numpy's types that hold values and nothing else."""

BROKEN = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What Python and numpy raise over a file that is cut off, encrypted, or says untrue things of itself."""

Made = TypeVar("Made")
Types = dict[str, type | tuple[type, ...]]


def regular(path: str | Path, error: type[PactrainError] = DataError) -> Path:
    """The path, if a regular file is there; raises `error` for a folder, a pipe, a device, or nothing."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except (OSError, ValueError) as problem:  # a name with a zero byte
        raise error(f"{str(path)!r} cannot be read: {problem}") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise error(f"{path} is {kind} and not a file; name a file")
    return Path(path)


def expanded_limit(path: Path) -> int:
    """Bytes that a compressed file may expand to."""
    return max(LEAST_LIMIT, EXPANSION * path.stat().st_size)


def read_json(path: Path, *, nan: bool = False) -> Any:
    """A JSON document of a run folder; `nan` allows numbers that are not finite."""
    try:
        return parse_json(read_bounded(path, MOST_JSON), nan=nan)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read as JSON: {error}") from error


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a file of a run folder that has no more bytes than so many."""
    file = regular(path, RunError)
    if file.stat().st_size > most:
        raise RunError(f"{path} has {file.stat().st_size:,} bytes, more than the {most:,} that are read")
    return file.read_bytes()


def parse_json(text: str | bytes, *, nan: bool = False) -> Any:
    """JSON by the standard, which knows no NaN, of texts that can be written again; raises ValueError or RecursionError."""
    values = json.loads(text) if nan else json.loads(text, parse_constant=_no_number)
    if (b"\\ud" if isinstance(text, bytes) else "\\ud") in text.lower():  # type: ignore[operator]
        json.dumps(values, ensure_ascii=False).encode()  # half a pair of surrogates is no text
    return values


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def made_from(path: Path, make: Callable[[Any], Made], values: Any) -> Made:
    """What `make` makes of the document in `path`; values of another type or form end in an error that names the file."""
    try:
        return make(values)
    except PactrainError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else f"holds something unexpected ({error})"
        raise RunError(f"{path} is not as pactrain writes it: it {what}") from error


def check_types(values: Any, types: Types, path: Path) -> None:
    """Raise RunError unless a document has the fields, each of its type; a flag is no number here."""
    for name, kind in types.items():
        if not isinstance(values, dict) or name not in values:
            raise RunError(f"{path} is not as pactrain writes it: it lacks {name!r}")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(values[name], kinds) or (isinstance(values[name], bool) and bool not in kinds):
            raise RunError(f"{path} is not as pactrain writes it: {name!r} cannot be {values[name]!r:.40}")


def read_arrays(path: str | Path, names: Collection[str] | None = None) -> "dict[str, NDArray[Any]]":
    """The arrays of an NPZ file (those of these names, if any are given), which hold numbers or texts."""
    file = regular(path)
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(archive, file)
            return {name: _array(archive, member) for name, member in members.items() if names is None or name in names}
    except (*BROKEN, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as NPZ: {error or type(error).__name__}") from error


def arrays_of(path: str | Path, names: Sequence[str]) -> "list[NDArray[Any]]":
    """Arrays of an NPZ file in the order of their names, all of which must be there."""
    arrays = read_arrays(path, names)
    if missing := [name for name in names if name not in arrays]:
        raise DataError(f"{path} lacks the array {missing[0]!r}")
    return [arrays[name] for name in names]


def forms_of(path: str | Path) -> "dict[str, tuple[tuple[int, ...], np.dtype[Any]]]":
    """Shape and type of each array of an NPZ file by its name, as its header has them; none if it is not such a file."""
    try:
        with zipfile.ZipFile(regular(path)) as archive:
            return {name: _form(archive, member)[:2] for name, member in _members(archive, Path(path)).items()}
    except (*BROKEN, DataError):
        return {}


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The archive's members by the name of their array."""
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    if len(set(names)) < len(names):
        raise DataError(f"{path} holds two arrays of one name")
    if odd := [member.filename for member in members if not member.filename.endswith(".npy")]:
        raise DataError(f"{path} holds {odd[0]!r}, which is no array; write it with numpy.savez")
    if sum(member.file_size for member in members) > expanded_limit(path):
        raise DataError(f"{path} would expand to more than {expanded_limit(path):,} bytes; it is not read")
    return dict(zip(names, members, strict=True))


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> "NDArray[Any]":
    import numpy as np

    shape, dtype, header = _form(archive, member)
    if dtype.kind not in NUMBERS_AND_TEXTS:
        raise ValueError(f"the array {member.filename} holds {dtype}; only numbers and texts are read")
    if header + math.prod(shape) * dtype.itemsize != member.file_size:
        raise ValueError(f"the array {member.filename} has not the size that its header says, {shape}")
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)  # pandas takes this machine's alone


def _form(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> "tuple[tuple[int, ...], np.dtype[Any], int]":
    """Shape, type, and bytes before the values."""
    import numpy as np

    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):  # later ones are for records
            raise ValueError(f"an array is written in numpy's format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        return shape, dtype, file.tell()
