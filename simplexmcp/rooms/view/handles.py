"""The database as the page uses it: one connection that only reads and one that writes, each opened when needed.

The file may come after the page, or be replaced under it: every use looks which file is there. Statements run in
threads, so that a busy file never stops the page.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, TypeVar, final

import trio

from simplexmcp.rooms.errors import DatabaseError
from simplexmcp.rooms.store.database import Database, open_database

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Handles", "NoDatabase", "is_busy"]

T = TypeVar("T")

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@final
class NoDatabase(DatabaseError):  # noqa: N818 - nothing failed: nobody made one yet
    """There is no file at the path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"There is no database at {path} yet. It is made when the first agent connects.")


@final
class Handles:
    """`read` and `write` run a function on the database at `path`. Raise RoomsError; NoDatabase without a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._reader = _Handle(path, read_only=True)
        self._writer = _Handle(path, read_only=False)

    async def read(self, work: Callable[[Database], T]) -> T:
        """What the function gives; it cannot change anything."""
        return await self._reader.run(work)

    async def write(self, work: Callable[[Database], T]) -> T:
        """What the function gives; it opens its transactions itself. Reads go on meanwhile."""
        return await self._writer.run(work)

    async def close(self) -> None:
        """Let go of the file."""
        with trio.CancelScope(shield=True):
            await self._reader.close()
            await self._writer.close()


@final
class _Handle:
    """One connection, used by one thread at a time."""

    def __init__(self, path: str, *, read_only: bool) -> None:
        self._path, self._read_only = path, read_only
        self._one = trio.CapacityLimiter(1)
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None

    async def run(self, work: Callable[[Database], T]) -> T:
        return await trio.to_thread.run_sync(lambda: work(self._opened()), limiter=self._one)

    async def close(self) -> None:
        await trio.to_thread.run_sync(self._close, limiter=self._one)

    def _opened(self) -> Database:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - a str, as in all of the rooms
        except OSError:
            self._close()
            raise NoDatabase(self._path) from None
        file = (found.st_dev, found.st_ino)
        if self._database is None or self._file != file:
            self._close()
            self._database = open_database(self._path, create=False, read_only=self._read_only)
            self._file = file
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None


def is_busy(error: DatabaseError) -> bool:
    """Whether others kept the file busy, so that the same may work a moment later."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _BUSY
