"""Encodes pictures for browsers and models."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["data_url"]

_RGB = 2  # the colour type of the PNG specification, third edition, 11.2.1: red, green, blue of 8 bits each


def data_url(points: NDArray[np.uint8]) -> str:
    """Return a picture as a PNG in a data URL.

    Args:
        points: Rows of pixels of red, green and blue.
    """
    height, width, _ = points.shape
    rows = b"".join(b"\0" + row.tobytes() for row in points)  # filter 0: none
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
