"""Files that are written whole or not at all: JSON as plain values, tensors and values of a checkpoint."""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pactrain.runtime.errors import PactrainError, RunError
from pactrain.runtime.untrusted import parse_json, regular

PART = ".part"
"""End of the name of a file that is being written."""

UNREADABLE = OSError, ValueError, RecursionError, MemoryError, SafetensorError
"""What is raised over a safetensors file that is damaged, or was never one."""


def plain(values: Any) -> Any:
    """A value as JSON can hold it: tuples as lists, keys as texts, and null for numbers that are not finite."""
    if isinstance(values, dict):
        return {str(k): plain(v) for k, v in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(v) for v in values]
    if isinstance(values, float):
        return values if values - values == 0 else None
    return values


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new one and nothing between."""
    data = content.encode() if isinstance(content, str) else content
    if _is_device(path):
        path.write_bytes(data)
        return
    with _replaced(path) as new:
        new.write_bytes(data)


def _is_device(path: Path) -> bool:
    """True for /dev/stdout, /dev/full and the like: a file in their place would take them from every program."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or (stat.S_ISLNK(mode) and path.absolute().parts[1] in ("dev", "proc"))


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A file to write in the block, which takes the place of `path` at its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.chmod(0o644)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # there only if something failed


@contextmanager
def writing(what: str, path: str | Path) -> Iterator[None]:
    """Name what could not be written in the block, and where to; raises PactrainError."""
    try:
        yield
    except OSError as error:
        raise PactrainError(f"the {what} could not be written to {path}: {error}") from error


def write_json(path: Path, values: Any) -> None:
    """One JSON document, written atomically.  Numbers that are not finite become null."""
    write_atomic(path, json.dumps(plain(values), indent=1, allow_nan=False) + "\n")


def remove_parts(folder: Path) -> None:
    """Remove what writes that were killed have left in a folder and below it."""
    for part in folder.rglob(f".*{PART}"):
        part.unlink(missing_ok=True)


def digest_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> str:
    """Fingerprint of the content of a safetensors file: names, types, shapes, every bit of every tensor, and the values."""
    written = json.loads(json.dumps(values))  # keys that are numbers become texts, as in the file
    state = hashlib.blake2b(json.dumps(written, sort_keys=True).encode(), digest_size=16)
    for name in sorted(tensors):
        mine = tensors[name].detach().cpu().contiguous()
        state.update(f"{name}{mine.dtype}{tuple(mine.shape)}".encode())
        state.update(memoryview(mine.reshape(-1).view(torch.uint8).numpy()) if mine.numel() else b"")  # type: ignore[arg-type]
    return state.hexdigest()


def save_state(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> str:
    """Write tensors and plain values as one safetensors file with its digest, which is returned.

    The file is written atomically and straight from memory: a copy of all would need as much again as training does.
    """
    kept: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name in sorted(tensors, key=lambda name: -tensors[name].numel()):  # a whole vector before views of it
        mine = tensors[name].detach().cpu().contiguous()
        storage = mine.untyped_storage().data_ptr()
        kept[name] = mine.clone() if storage in storages else mine  # the file takes no two views of one memory
        storages.add(storage)
    digest = digest_state(kept, values)
    with _replaced(path) as new:
        save_file(
            kept, new, metadata={"pactrain": json.dumps({"digest": digest, "values": values})}
        )  # one: their order varies
    return digest


def load_state(path: Path, *, digest: str | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of `save_state`; raises RunError unless every bit is as it was written, and of this digest if one is given."""
    try:
        with safe_open(regular(path, RunError), framework="pt") as file:
            about = parse_json((file.metadata() or {}).get("pactrain", "{}"), nan=True)
            tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    except UNREADABLE as error:
        raise RunError(f"{path} cannot be read as a safetensors file ({error}); it was damaged or cut off") from error
    kept = about.get("values") if isinstance(about, dict) else None
    values: dict[str, Any] = kept if isinstance(kept, dict) else {}
    found = digest_state(tensors, values)
    if not isinstance(about, dict) or found != about.get("digest"):
        raise RunError(f"{path} is damaged: its content does not have the digest that was written with it")
    if digest is not None and found != digest:
        raise RunError(f"{path} is not the file that the run wrote: its digest is {found}, and the run noted {digest}")
    return tensors, values


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Any torch optimiser's state as named tensors and plain values."""
    state = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for index, entry in state["state"].items():
        for key, value in entry.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{index}/{key}"] = value
            else:
                scalars[f"{index}/{key}"] = value
    return tensors, {"scalars": scalars, "groups": state["param_groups"]}


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Give an optimiser the state that `pack_optimizer` took."""
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, index, key = name.split("/", 2)
            state.setdefault(int(index), {})[key] = tensor
    for name, value in values["scalars"].items():
        index, key = name.split("/", 1)
        state.setdefault(int(index), {})[key] = value
    groups = [
        {k: tuple(v) if isinstance(v, list) and k == "betas" else v for k, v in group.items()}
        for group in values["groups"]
    ]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
