"""Files that the agent wants to send: checked and read once for the card, then sent as a private copy of exactly the
bytes that were checked (flow 15).

`open_offer` is for the card, `private_copy` for the perform; between them the file is bound to its device, inode, size,
change time and SHA-256. A file with several hard links is refused: one of its names may be in a folder of secrets, and
no cheap look finds out.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import trio

from simplexmcp.files import content, media, paths
from simplexmcp.files.keys import KeyScan
from simplexmcp.files.names import NAME_BYTES, safe_name, shown_size
from simplexmcp.files.offer import As, FileOffer, Kind, SentCopy, composed_file, content_of
from simplexmcp.files.opening import (
    Identity,
    identity_of,
    is_sparse,
    opened,
    read_through,
    refuse,
    reopened,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from simplexmcp.files.folders import Folders

__all__ = [
    "LARGEST",
    "As",
    "FileOffer",
    "Identity",
    "Kind",
    "SentCopy",
    "composed_file",
    "content_of",
    "copy_to_post",
    "open_offer",
    "private_copy",
]

LARGEST = 1 << 30
"""Bytes of the largest file that is sent."""

_VOICE_SECONDS = 300  # of the longest voice message that the apps make
_REWRITTEN = ("image/jpeg", "image/png")
_AS_IS = ("image/gif", "image/webp")
_FILMS = ("video/mp4", "video/quicktime")


async def open_offer(path: str, as_: As, rules: paths.Rules) -> FileOffer:
    """The file at `path`, checked and read as a whole, to be sent `as_`. Raises Refused, whose sentence names the path
    and says why."""
    if why := paths.malformed(path) or paths.refusal(path, rules):
        refuse(path, why)
    async with opened(path, rules) as fd:
        identity = identity_of(fd)
        sha256 = await trio.to_thread.run_sync(_checked, path, fd, identity.size)
        offer = FileOffer(path, safe_name(path), identity.size, "file", identity, sha256)
        offer = await _as_asked(offer, as_, fd)
        if identity_of(fd) != identity:
            refuse(path, "changed while it was read")
    return offer


async def private_copy(offer: FileOffer, folders: Folders) -> SentCopy:
    """A copy of the bytes that were hashed, or of the picture that they are, written again. Raises Refused: ``file:
    PATH changed after the request.``, or a full disk; then nothing is left."""
    with _copy_folder(offer.path, folders) as folder:
        target = folder / offer.name
        async with reopened(offer.path, offer.identity) as source:
            with _created(target) as out:
                sha256 = await trio.to_thread.run_sync(_copied, source, out, offer.size)
                if sha256 != offer.sha256 or identity_of(source) != offer.identity:
                    refuse(offer.path, "changed after the request")
                if offer.rewritten:
                    await _rewrite(offer.path, out)
                return SentCopy(target, os.fstat(out).st_size)


async def copy_to_post(path: Path, name: str, folders: Folders) -> SentCopy:
    """A copy of a file of ours in DATA, under the name that its sender gave, made safe (flow 14). Raises Refused."""
    with _copy_folder(str(path), folders) as folder:
        target = folder / safe_name(name)
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            with _created(target) as out:
                size = os.fstat(source).st_size
                if await trio.to_thread.run_sync(_copied, source, out, size) is None:
                    refuse(str(path), "changed while it was read")
                return SentCopy(target, size)
        finally:
            os.close(source)


def _checked(path: str, fd: int, size: int) -> str:
    """The SHA-256 of a file that may be sent. In a thread. Raises Refused."""
    if size == 0:
        refuse(path, "is empty")
    if size > LARGEST:
        refuse(path, f"has {shown_size(size)}; at most 1 GB can be sent")
    if os.fstat(fd).st_nlink > 1:
        refuse(path, "has other names (hard links), perhaps in a private folder; make a copy and send that")
    if is_sparse(fd):
        refuse(path, "is sparse: it has less data than its size says")
    scan = KeyScan()

    def look(chunk: bytes) -> None:
        if key := scan.feed(chunk):
            refuse(path, f"holds {key}")

    try:
        sha256 = read_through(fd, size, look)
    except OSError as error:
        refuse(path, f"can't be read: {error.strerror or type(error).__name__}")
    if sha256 is None:
        refuse(path, "changed while it was read")
    return sha256


# What it is sent as -------------------------------------------------------------------------------------------------


async def _as_asked(offer: FileOffer, as_: As, fd: int) -> FileOffer:
    """The offer as the kind that was asked for, or that the content is. Raises Refused."""
    mime = content.sniff(os.pread(fd, content.HEAD, 0))
    plain = replace(offer, metadata=content.carries_metadata(mime))
    if as_ == "file":
        return plain
    if as_ == "voice":
        return await _as_voice(plain, mime, fd)
    if mime in _REWRITTEN and as_ in ("auto", "image"):
        return await _as_picture(offer, fd)
    if mime in _AS_IS and as_ in ("auto", "image"):
        return replace(plain, kind="image", preview=media.FIXED_PREVIEW)
    if mime in _FILMS and as_ in ("auto", "video"):
        return await _as_film(plain, fd)
    if as_ == "image":
        refuse(offer.path, "is no JPEG, PNG, GIF or WebP picture; send it as file")
    if as_ == "video":
        refuse(offer.path, "is no MP4 or QuickTime video; send it as file")
    return plain


async def _as_picture(offer: FileOffer, fd: int) -> FileOffer:
    try:
        shown = await media.picture(fd)
    except media.Unfit as error:
        refuse(offer.path, f"{error}; send it as file")
    suffixes = (".png",) if shown.alpha else (".jpg", ".jpeg")
    name = offer.name if offer.name.lower().endswith(suffixes) else _with_suffix(offer.name, suffixes[0])
    return replace(offer, name=name, kind="image", preview=shown.preview, rewritten=True)


async def _as_film(offer: FileOffer, fd: int) -> FileOffer:
    movie = await trio.to_thread.run_sync(content.read_movie, fd, offer.size)
    shown = await media.film(fd) if movie and movie.video else None
    if shown is None:
        return offer
    return replace(offer, kind="video", preview=shown.preview, duration=shown.seconds)


async def _as_voice(offer: FileOffer, mime: str, fd: int) -> FileOffer:
    movie = None
    if mime in ("audio/mp4", *_FILMS):  # some recorders give their sound the brand of a film
        movie = await trio.to_thread.run_sync(content.read_movie, fd, offer.size)
    if movie is None or movie.video or movie.audio != "mp4a":
        refuse(offer.path, "is no voice message, which is only sound as AAC in an .m4a file; send it as file")
    if not 0 < movie.seconds <= _VOICE_SECONDS:
        refuse(offer.path, f"does not last from 1 to {_VOICE_SECONDS} seconds; send it as file")
    return replace(offer, kind="voice", duration=max(1, round(movie.seconds)))


def _with_suffix(name: str, suffix: str) -> str:
    stem = name.rpartition(".")[0] or name
    return stem.encode()[: NAME_BYTES - len(suffix)].decode(errors="ignore") + suffix


# Copies -------------------------------------------------------------------------------------------------------------


@contextmanager
def _copy_folder(path: str, folders: Folders) -> Generator[Path]:
    """A new folder for a copy; when the block fails, by a full disk or by being cancelled too, nothing is left of
    it."""
    try:
        folder = folders.new_copy()
    except OSError as error:
        _refuse_copy(path, error)
    try:
        yield folder
    except BaseException as error:
        with suppress(OSError):  # the next start empties `files/sent`
            folders.delete_copy(folder / "copy")
        if isinstance(error, OSError):
            _refuse_copy(path, error)
        raise


def _refuse_copy(path: str, error: OSError) -> NoReturn:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        refuse(path, "can't be sent: the disk has no room for its copy")
    refuse(path, f"can't be sent: no copy of it can be made ({error.strerror or type(error).__name__})")


@contextmanager
def _created(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # an umask such as 0277 takes rights from the owner
        yield fd
    finally:
        os.close(fd)


def _copied(source: int, target: int, size: int) -> str | None:
    return read_through(source, size, lambda chunk: _write(target, chunk))


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


async def _rewrite(path: str, copy: int) -> None:
    """Puts the picture without its metadata in the place of the copy's bytes."""
    try:
        data = await media.rewritten(copy)
    except media.Unfit as error:
        refuse(path, f"can't be sent as a picture: it {error}")
    os.lseek(copy, 0, os.SEEK_SET)
    os.ftruncate(copy, 0)
    _write(copy, data)
