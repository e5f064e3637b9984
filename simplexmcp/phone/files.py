"""The files of the people who are played: what the page uploads and what they receive, in a private folder.

The folder is among those of the network: it ends with it, or stays beside its state file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, final

import trio

from simplexmcp.errors import Refused
from simplexmcp.files import media
from simplexmcp.files.names import extension, safe_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from simplexmcp.phone.texts import Wire
    from simplexmcp.sandbox.network import Network

__all__ = ["LARGEST", "Files", "Uploaded", "open_regular"]

_log = logging.getLogger(__name__)

LARGEST = 100 * 1024 * 1024
"""Bytes of an upload."""

_WAITING = 8  # uploads that no message has taken yet
_WAIT = 600.0  # seconds until one is dropped
_PICTURES = ("jpg", "jpeg", "png")


@final
@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file that a page sent, until a message takes it. `image` is its preview when it is a picture."""

    key: str
    path: Path
    size: int
    image: str | None
    made: float


@final
class Files:
    """The folder and what waits in it."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._waiting: dict[str, Uploaded] = {}
        self._coming = 0

    async def upload(self, name: str, chunks: AsyncIterator[bytes]) -> Uploaded:
        """Keep what a page sends; the oldest that no message took gives way. Refused: it is empty, or too many come."""
        self._drop_old()
        if self._coming >= _WAITING:
            raise Refused("Too many uploads at once. Try again when the others are done.")
        while self._waiting and len(self._waiting) + self._coming >= _WAITING:
            self._drop(next(iter(self._waiting)))
        self._coming += 1
        try:
            return await self._upload(name, chunks)
        finally:
            self._coming -= 1

    async def _upload(self, name: str, chunks: AsyncIterator[bytes]) -> Uploaded:
        key = secrets.token_urlsafe(16)
        path = self._folder("uploads") / key / safe_name(name)
        path.parent.mkdir(mode=0o700)
        try:
            size = await _write(path, chunks)
            if not size:
                raise Refused("This file is empty, so SimpleX does not send it.")
            image = await _preview(path)
        except BaseException:
            path.unlink(missing_ok=True)
            path.parent.rmdir()
            raise
        self._waiting[key] = uploaded = Uploaded(key, path, size, image, trio.current_time())
        return uploaded

    def take(self, key: str) -> Uploaded:
        """An upload for a message. Refused when it is gone."""
        uploaded = self._waiting.pop(key, None)
        if uploaded is None:
            raise Refused("This upload is not here any more. Choose the file again.")
        return uploaded

    def put_back(self, uploaded: Uploaded) -> None:
        """The message was refused: the page may try again."""
        self._waiting[uploaded.key] = uploaded

    def target(self, core: str, file_id: int, name: str) -> Path:
        """A path that does not exist, for a file that is received."""
        kind = extension(name)
        folder = self._folder(hashlib.sha256(core.encode()).hexdigest()[:16])
        return folder / f"{file_id}-{secrets.token_hex(4)}{'.' if kind else ''}{kind}"

    def path(self, file: Wire) -> Path | None:
        """Where the bytes of a file are, when they are whole and in the network's folder; else None."""
        source, status = file.get("fileSource"), file.get("fileStatus")
        path = source.get("filePath") if isinstance(source, dict) else None
        kind = status.get("type") if isinstance(status, dict) else None
        if not isinstance(path, str) or not isinstance(kind, str) or not kind.startswith(("snd", "rcvComplete")):
            return None
        found = Path(path)
        ours = found.resolve().is_relative_to(self._network.files.place("").resolve())
        return found if ours and found.is_file() else None

    def _folder(self, name: str) -> Path:
        folder = self._network.files.place("phone") / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _drop_old(self) -> None:
        now = trio.current_time()
        for key, uploaded in list(self._waiting.items()):
            if now - uploaded.made > _WAIT:
                self._drop(key)

    def _drop(self, key: str) -> None:
        uploaded = self._waiting.pop(key)
        uploaded.path.unlink(missing_ok=True)
        uploaded.path.parent.rmdir()


def open_regular(path: Path) -> tuple[BinaryIO, int]:
    """A regular file, opened without following a link, and its size in bytes. OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise OSError(22, "no regular file", str(path))
    return file, found.st_size


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> int:
    size = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        async for chunk in chunks:
            await trio.to_thread.run_sync(file.write, chunk)
            size += len(chunk)
    return size


async def _preview(path: Path) -> str | None:
    """The preview of a picture; None for every other file, which is sent as a file."""
    if extension(path.name) not in _PICTURES:
        return None
    file, _ = open_regular(path)
    with file:
        try:
            return (await media.picture(file.fileno())).preview
        except media.Unfit as error:
            _log.info("An upload is sent as a file: the picture %s.", error)
            return None
