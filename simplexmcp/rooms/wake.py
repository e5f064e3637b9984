"""Knowing at once that another process wrote to the database: the kernel tells, nothing is polled.

Linux only (inotify). Elsewhere `fileno` is None, and callers ask `Database.data_version` every `POLL` seconds.

A writer's pages reach the WAL file a moment before readers see the commit, and nothing tells of that second step. So a
write asks for a few more looks, ever later: `again` says when the next one is due.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from typing import Any, final

__all__ = ["POLL", "Wake"]

POLL = 0.2  # seconds between two looks where the kernel tells nothing
_ECHOES = (0.002, 0.02, 0.2)  # seconds after the latest write
_READ = 65_536
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_MODIFY, _MOVED_TO, _CREATE, _DELETE, _OVERFLOW, _IGNORED = 0x2, 0x80, 0x100, 0x200, 0x4000, 0x8000
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


@final
class Wake:
    """Tells of writes to the database at `path` (its WAL file, made anew or not, and the file itself)."""

    def __init__(self, path: str) -> None:
        real = os.path.realpath(path)
        name = os.fsencode(os.path.basename(real))  # noqa: PTH119 - pathlib costs start time
        self._names = {name, name + b"-wal"}
        self._fd = None if path == ":memory:" else _watch(os.path.dirname(real))  # noqa: PTH120
        self._latest = 0.0
        self._echoes: tuple[float, ...] = ()

    def fileno(self) -> int | None:
        """What becomes readable when something was written; None where the kernel cannot tell."""
        return self._fd

    def drain(self) -> bool:
        """Whether to look at the database: it was written to since the last call, or another look is due because of
        that. Never waits."""
        written = False
        while self._fd is not None:
            try:
                events = os.read(self._fd, _READ)
            except BlockingIOError:
                break
            written = self._concern(events) or written
        if written:
            self._latest = time.monotonic()
            self._echoes = _ECHOES
        elif (again := self.again()) is not None and again <= time.monotonic():
            self._echoes = self._echoes[1:]
            return True
        return written

    def again(self) -> float | None:
        """When `drain` says yes because of the latest write, without another one (time.monotonic); None when readers
        have seen that write for sure."""
        return self._latest + self._echoes[0] if self._echoes else None

    def close(self) -> None:
        """Stops telling."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _concern(self, events: bytes) -> bool:
        """Whether one of the events is about the database; a lost one may have been."""
        place = 0
        concerned = False
        while place < len(events):
            _watch_id, mask, _cookie, length = _EVENT.unpack_from(events, place)
            place += _EVENT.size
            name = events[place : place + length].rstrip(b"\0")
            place += length
            concerned = concerned or bool(mask & (_OVERFLOW | _IGNORED)) or name in self._names
        return concerned


def _watch(folder: str) -> int | None:
    """An inotify descriptor for the names in `folder`; None when there is none to be had."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes

        libc: Any = ctypes.CDLL(None, use_errno=True)
        start, add = libc.inotify_init1, libc.inotify_add_watch
    except (ImportError, OSError, AttributeError):
        return None  # a C library without it
    fd = int(start(_NONBLOCK_CLOEXEC))
    if fd < 0:
        return None  # the user's limit of such descriptors
    mask = _MODIFY | _MOVED_TO | _CREATE | _DELETE
    if add(fd, os.fsencode(folder), mask) < 0:
        number = ctypes.get_errno()
        os.close(fd)
        if number not in (errno.ENOSPC, errno.ENOMEM, errno.ENOENT, errno.EACCES):
            raise OSError(number, os.strerror(number), folder)
        return None
    return fd
