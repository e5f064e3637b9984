"""MP4 files for tests, built box by box."""

from __future__ import annotations

import struct

__all__ = ["box", "movie"]


def box(kind: bytes, *parts: bytes) -> bytes:
    """One box with its header."""
    body = b"".join(parts)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def track(handler: bytes, codec: bytes) -> bytes:
    """A track of pictures (`vide`) or sound (`soun`)."""
    entry = struct.pack(">I4s", 16, codec) + bytes(8)
    table = box(b"stbl", box(b"stsd", struct.pack(">II", 0, 1), entry))
    return box(b"trak", box(b"mdia", box(b"hdlr", bytes(8), handler, bytes(12)), box(b"minf", table)))


def movie(
    seconds: float = 2, *, video: bool = True, audio: bytes = b"mp4a", brand: bytes = b"isom", long: bool = False
) -> bytes:
    """A film, or only its sound; `long` writes the duration with 64 bits."""
    if long:
        header = struct.pack(">IQQIQ", 1 << 24, 0, 0, 1000, int(seconds * 1000))
    else:
        header = struct.pack(">IIIII", 0, 0, 0, 1000, int(seconds * 1000))
    tracks = [track(b"vide", b"avc1")] if video else []
    tracks += [track(b"soun", audio)] if audio else []
    moov = box(b"moov", box(b"mvhd", header, bytes(80)), *tracks)
    return box(b"ftyp", brand, bytes(4)) + box(b"mdat", b"pictures and sound " * 20) + moov
