"""Rows of pixels as PNG pictures embedded in the report's page."""

import base64
import math
import struct
import zlib
from typing import Any

from pactrain.report.read import Run
from pactrain.runs.sentences import data_name

IMAGES = ("digits", "mnist", "fashion_mnist", "cifar10", "cifar100")
"""Named data sets whose rows are pixels."""


def data_uri(run: Run, row: dict[str, Any]) -> str | None:
    """A PNG of the row as a `data:` address; None if the row is no image."""
    shape, inputs = run.analysis.get("shape") or [], row.get("inputs")
    if not inputs:
        return None
    if len(shape) == 1 and data_name(run.config) in IMAGES:
        channels = 3 if len(inputs) == 3 * math.isqrt(len(inputs) // 3) ** 2 else 1
        side = math.isqrt(len(inputs) // channels)
        shape = [channels, side, side]
    if len(shape) != 3 or shape[0] not in (1, 3) or math.prod(shape) != len(inputs):
        return None
    return f"data:image/png;base64,{base64.b64encode(png(inputs, *shape)).decode()}"


def png(values: list[float], channels: int, height: int, width: int) -> bytes:
    """A PNG of an image whose channels follow each other; its smallest value is black, its largest white."""
    low, high = min(values), max(values)
    scale = 255 / (high - low) if high > low else 0.0
    levels = [round((value - low) * scale) for value in values]
    pixels = height * width
    lines = b"".join(
        b"\0" + bytes(levels[c * pixels + y * width + x] for x in range(width) for c in range(channels))
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
