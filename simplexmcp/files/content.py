"""What a file is, by its content: its kind, and of an MP4 its tracks and its duration. Names are not believed.

Only as much is read as is needed for that: a file's first bytes, and the headers of an MP4's boxes.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HEAD", "Movie", "carries_metadata", "read_movie", "sniff"]

HEAD = 4096
"""Bytes of a file that `sniff` wants to see."""

_BOXES = 256  # of one level that are looked at
_TRACKS = 16
_MOVIE_BRANDS = (b"isom", b"iso", b"mp4", b"avc1", b"M4V", b"MSNV", b"dash", b"3gp", b"3g2", b"f4v", b"mmp4", b"XAVC")
_PICTURE_BRANDS = (b"heic", b"heix", b"heif", b"mif1", b"msf1", b"avif", b"avis", b"crx ", b"jxl ")


def sniff(head: bytes) -> str:
    """The MIME type of a file that begins with `head`; `text/plain` and `application/octet-stream` when it is nothing
    that is known here."""
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return _container(head[8:12])
    if head[4:8] in (b"moov", b"mdat", b"wide", b"skip") and not head.startswith(b"\0\0\0\0"):
        return "video/quicktime"  # films of old cameras begin without their brand
    for sign, kind in _SIGNS:
        if head.startswith(sign):
            return kind
    return "text/plain" if _is_text(head) else "application/octet-stream"


_SIGNS = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"RIFF", "audio/x-riff"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)


def carries_metadata(kind: str) -> bool:
    """True for files that may say who made them, where, or with what without showing it: all but plain text."""
    return kind != "text/plain"


@dataclass(frozen=True)
class Movie:
    """What an MP4 or QuickTime file says of itself: seconds (0 when it does not say), and whether it has pictures;
    `audio` is the codec of its sound, such as `mp4a`."""

    seconds: float
    video: bool
    audio: str


def read_movie(fd: int, size: int) -> Movie | None:
    """The tracks of the MP4 or QuickTime file that is open as `fd`; None when it is damaged or another thing."""
    seconds, video, audio, found = 0.0, False, "", False
    for kind, start, end in _boxes(fd, 0, size):
        if kind != b"moov":
            continue
        found = True
        tracks = 0
        for inner, first, last in _boxes(fd, start, end):
            if inner == b"mvhd":
                seconds = _duration(os.pread(fd, 32, first))
            elif inner == b"trak" and tracks < _TRACKS:
                tracks += 1
                handler, codec = _track(fd, first, last)
                video = video or handler == b"vide"
                audio = audio or (codec if handler == b"soun" else "")
        break
    return Movie(seconds, video, audio) if found else None


def _track(fd: int, start: int, end: int) -> tuple[bytes, str]:
    """What a track is (`vide`, `soun`), and its codec."""
    handler, codec = b"", ""
    for media in _inside(fd, start, end, b"mdia"):
        for at in _inside(fd, *media, b"hdlr"):
            handler = os.pread(fd, 12, at[0])[8:12]
        for info in _inside(fd, *media, b"minf"):
            for table in _inside(fd, *info, b"stbl"):
                for at in _inside(fd, *table, b"stsd"):
                    codec = os.pread(fd, 16, at[0])[12:16].decode("ascii", "replace")
    return handler, codec


def _inside(fd: int, start: int, end: int, kind: bytes) -> Iterator[tuple[int, int]]:
    return ((first, last) for name, first, last in _boxes(fd, start, end) if name == kind)


def _boxes(fd: int, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The boxes between two places: type, where the content begins, where it ends. Stops at what is damaged."""
    for _ in range(_BOXES):
        header = os.pread(fd, 16, start)
        if start + 8 > end or len(header) < 8:
            return
        size, kind = struct.unpack(">I4s", header[:8])
        body = start + 8
        if size == 1 and len(header) == 16:
            size, body = struct.unpack(">Q", header[8:])[0], start + 16
        elif size == 0:
            size = end - start
        if size < body - start or start + size > end:
            return
        yield kind, body, start + size
        start += size


def _duration(header: bytes) -> float:
    try:
        if header[:1] == b"\1":
            scale, length = struct.unpack(">IQ", header[20:32])
        else:
            scale, length = struct.unpack(">II", header[12:20])
    except struct.error:
        return 0.0
    unknown = length in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
    return 0.0 if unknown or not scale else length / scale


def _container(brand: bytes) -> str:
    if brand == b"qt  ":
        return "video/quicktime"
    if brand in (b"M4A ", b"M4B ", b"M4P "):
        return "audio/mp4"
    if brand.startswith(_PICTURE_BRANDS):
        return "image/heic"
    return "video/mp4" if brand.startswith(_MOVIE_BRANDS) else "application/octet-stream"


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3 and len(head) >= HEAD  # a character that the end of the head cut
    return True
