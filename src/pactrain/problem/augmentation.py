"""Random flips and crops of whole batches of images, on the device that holds them.

Only training steps see changed images: the scan, the history and the certificate read the originals, and n is their number.
Every change is drawn from (seed, epoch, step), so a resumed run sees the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from pactrain.runtime.errors import DataError, PactrainError

Transform = Callable[[Tensor, torch.Generator], Tensor]
"""From a batch of inputs, and a generator on their device, to the changed batch."""

Name = Literal["flip_crop", "flip", "crop"]

PADDING = 4
"""Pixels by which an image may be moved to each side, as is usual for 32×32."""


@dataclass(frozen=True)
class FlipCrop:
    """Mirror each image with probability ½, and move it by up to `padding` pixels; what comes in from outside is 0.

    shape: (channels, height, width) where the images come as rows of pixels.

    >>> changed = FlipCrop()(torch.rand(8, 3, 32, 32), torch.Generator().manual_seed(0))
    >>> changed.shape
    torch.Size([8, 3, 32, 32])
    """

    flip: bool = True
    padding: int = PADDING
    shape: tuple[int, int, int] | None = None

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """The batch, each image changed in its own way."""
        if self.shape is not None and images.ndim == 2:
            return self._changed(images.unflatten(1, self.shape), generator).flatten(1)
        if images.ndim != 4:
            raise DataError(
                f"inputs of the shape {tuple(images.shape)} are no batch of images (examples, channels, height, width); "
                "images that come as rows need shape=(channels, height, width)"
            )
        return self._changed(images, generator)

    def _changed(self, images: Tensor, generator: torch.Generator) -> Tensor:
        n, _, height, width = images.shape
        device, p = images.device, self.padding
        moved = torch.randint(0, 2 * p + 1, (2, n, 1), generator=generator, device=generator.device).to(device)
        rows = moved[0] + torch.arange(height, device=device)
        columns = moved[1] + torch.arange(width, device=device)
        if self.flip:
            mirrored = torch.rand(n, 1, generator=generator, device=generator.device).to(device) < 0.5
            columns = torch.where(mirrored, columns.flip(1), columns)
        padded = functional.pad(images, (p, p, p, p))
        each = torch.arange(n, device=device)[:, None, None]
        picked = padded[each, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        last = images.is_contiguous(memory_format=torch.channels_last)
        return picked.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


TRANSFORMS: dict[str, FlipCrop] = {
    "flip_crop": FlipCrop(),
    "flip": FlipCrop(padding=0),
    "crop": FlipCrop(flip=False),
}


@dataclass(frozen=True)
class Augmented:
    """Data whose inputs are changed at random in every training step; made by `augmented`."""

    data: Any
    transform: Transform
    counts: int = 1


def augmented(
    data: Any,
    transform: Name | Transform = "flip_crop",
    *,
    shape: tuple[int, int, int] | None = None,
    counts: int = 1,
) -> Augmented:
    """Change images at random in every training step of `fit` and of plain training.

    Args:
        data: An `(X, y)` pair, or a TensorDataset.
        transform: "flip_crop", "flip", "crop", or a function of a batch of inputs and a generator.
        shape: (channels, height, width) where X holds rows of pixels.
        counts: A heuristic of the paper, which took 128: the training objective counts every example so many times, as if its
            changed copies were examples of their own.  They are not independent, so nothing is proved with that n;
            the certificate counts every example once.

    Returns:
        Data for `fit`.

    Raises:
        PactrainError: The data is no pair of arrays, or the transform is not known.

    Example:
        >>> data = augmented((torch.rand(8, 3, 32, 32), torch.zeros(8, dtype=torch.long)), "flip")
    """
    if counts < 1:
        raise PactrainError(f"counts={counts}: every example counts at least once")
    if isinstance(transform, str):
        if transform not in TRANSFORMS:
            raise PactrainError(f"transform {transform!r} is not known; use {', '.join(TRANSFORMS)} or a function")
        known = TRANSFORMS[transform]
        transform = FlipCrop(known.flip, known.padding, shape)
    return Augmented(data, transform, counts)
