"""The one picture of the population: the hills as a map in PNG, drawn without a library."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from math import sin

__all__ = ["hills", "preview"]

_SKY, _NEAR, _FAR, _LAKE = (188, 216, 236), (86, 122, 74), (128, 152, 118), (92, 140, 178)


def hills(width: int = 480, height: int = 320) -> bytes:
    """A PNG of hills behind a lake."""
    rows = b"".join(b"\0" + bytes(_row(y / height, width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def preview() -> str:
    """The same, small, as a message carries it."""
    return f"data:image/png;base64,{b64encode(hills(48, 32)).decode()}"


def _row(y: float, width: int) -> list[int]:
    out: list[int] = []
    for n in range(width):
        x = n / width
        far, near = 0.38 + 0.1 * sin(9 * x), 0.58 + 0.08 * sin(5 * x + 2)
        out += _LAKE if y > 0.82 else _NEAR if y > near else _FAR if y > far else _SKY
    return out


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
