"""Tensors set aside in a temporary file: as large as the network, and not wanted for a while."""

import tempfile
import weakref
from collections.abc import Mapping

import torch
from torch import Tensor


class Kept:
    """Some tensors as they are now."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this does
        weakref.finalize(self, self._file.close)
        self._like = {name: (t.dtype, t.shape) for name, t in tensors.items()}
        for tensor in tensors.values():
            self._file.write(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)

    def back(self) -> dict[str, Tensor]:
        """The tensors, anew."""
        found = {name: torch.empty(shape, dtype=dtype) for name, (dtype, shape) in self._like.items()}
        self.into(found)
        return found

    def into(self, tensors: Mapping[str, Tensor]) -> None:
        """Put them where they came from."""
        self._file.seek(0)
        for name, (dtype, shape) in self._like.items():
            mine = tensors[name].detach()
            straight = mine if mine.is_cpu and mine.is_contiguous() else torch.empty(shape, dtype=dtype)
            self._file.readinto(straight.view(-1).view(torch.uint8).numpy().data)
            if straight is not mine:
                mine.copy_(straight)
