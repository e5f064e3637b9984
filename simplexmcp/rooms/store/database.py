"""The database file: opening it, its transactions, and its errors in our words.

WAL, so that readers never wait; every read-then-write in one IMMEDIATE transaction, so that two processes never act on
the same old state. A writer that finds the file busy asks again soon and at random moments: the library's own waiting
sleeps ever longer, which makes many writers slow.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

from simplexmcp.rooms.errors import DatabaseError
from simplexmcp.rooms.store.schema import MIGRATIONS, TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

__all__ = ["Database", "open_database"]

_BUSY_MS = 5000  # how long a writer waits for the others
_CONVERSION_ATTEMPTS = 20
_SHRINK_PAGES = 2000  # of 4 KB, in one transaction
# What every table must have: a file that lacks it was made by another program.
_COLUMNS = {
    "rooms": {"id", "name", "description", "pinned", "created_at"},
    "agents": {"id", "is_human", "brand", "model", "version", "resume_word", "runtime_epoch", "description"},
    "memberships": {"room_id", "agent_id", "joined_at", "last_read_seq", "last_seen", "left_at", "role"},
    "messages": {"id", "room_id", "seq", "agent_id", "format", "priority", "body", "body_len", "mentions"},
}


@final
class Database:
    """One connection. Rows are `sqlite3.Row`; what goes wrong is DatabaseError (`detail`: SQLite's words)."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.path = path
        # How many open waits share the lease of (room, persona, epoch): `store.leases`.
        self.leases: Counter[tuple[int, str, int]] = Counter()
        self._connection = connection

    def all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a statement."""
        with self._mapped():
            return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a statement, if any."""
        with self._mapped():
            row: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
            return row

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row; None without one."""
        row = self.one(sql, *values)
        return None if row is None else row[0]

    def rows(self, sql: str, *values: Any) -> Generator[sqlite3.Row]:
        """The rows one by one, so that a caller can stop before all are read."""
        with self._mapped():
            cursor = self._connection.execute(sql, values)
            try:
                yield from cursor
            finally:
                cursor.close()

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Runs a statement that changes something, inside `write`; its cursor (`lastrowid`, `rowcount`)."""
        with self._mapped():
            return self._connection.execute(sql, values)

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Runs a statement for each row of values, inside `write`."""
        with self._mapped():
            self._connection.executemany(sql, values)

    @contextmanager
    def write(self) -> Generator[None]:
        """One IMMEDIATE transaction: committed at the end, rolled back at any exception. Raises DatabaseError after
        5 seconds of other writers."""
        with self._mapped():
            self._begin()
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        with self._mapped():
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                self._connection.rollback()
                raise

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """One deferred transaction: all its reads see the same state."""
        if self._connection.in_transaction:
            yield
            return
        with self._mapped():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def shrink(self) -> None:
        """Outside of transactions: gives the space of deleted rows back to the disk, at most 8 MB a call, if no other
        writer is at work. Does nothing in a file that another program made."""
        with self._mapped():
            try:
                # Only a script is run to its end: a single statement would free one page.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_SHRINK_PAGES})")
            except sqlite3.OperationalError:
                return  # the space is used by later rows, or freed by a later call

    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return int(self.value("PRAGMA data_version"))

    def close(self) -> None:
        """Closes the file; the last process to do so folds the WAL into it."""
        self._connection.close()

    def _begin(self) -> None:
        self._connection.execute("PRAGMA busy_timeout=0")
        deadline = time.monotonic() + _BUSY_MS / 1000
        pause = 0.0005
        try:
            while True:
                try:
                    self._connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > deadline:
                        raise
                else:
                    return
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads the writers, guards nothing
                pause = min(pause * 1.2, 0.005)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")

    @contextmanager
    def _mapped(self) -> Generator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise DatabaseError(_sentence(error, self.path), str(error)) from error


def open_database(path: str, *, create: bool = True, read_only: bool = False, busy_ms: int = _BUSY_MS) -> Database:
    """Opens the file at `path` (absolute, or `:memory:`), makes it and its folder when `create`, and brings its schema
    up to date unless `read_only` (which still may write the sidecar files). Raises DatabaseError."""
    if path != ":memory:":
        _prepare_folder(path, create=create)
    try:
        connection = _connect(path, create=create)
    except sqlite3.Error as error:
        raise DatabaseError(_sentence(error, path)) from error
    database = Database(connection, path)
    try:
        connection.execute(f"PRAGMA busy_timeout={busy_ms}")
        _refuse_foreign(connection, path)  # before anything of the file is changed
        _configure(connection, read_only=read_only)
        if not read_only:
            _bring_up_to_date(database, connection)
        _check_tables(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise DatabaseError(_sentence(error, path)) from error
    except DatabaseError:
        connection.close()
        raise
    if not read_only:
        _protect(path)
    return database


def _connect(path: str, *, create: bool) -> sqlite3.Connection:
    if create or path == ":memory:":
        connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    else:
        # What a URI gives a meaning to; a library for this costs a tenth of a watcher's start.
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file://{quoted}?mode=rw",
            timeout=_BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
    connection.row_factory = sqlite3.Row
    return connection


def _configure(connection: sqlite3.Connection, *, read_only: bool) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    if read_only:
        connection.execute("PRAGMA query_only=ON")
        return
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only a new file can still learn it
    _convert(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA cache_size=-16000")


def _convert(connection: sqlite3.Connection) -> None:
    """Turns WAL on. Two processes may do it to a new file at once; SQLite does not wait for the other one here."""
    for attempt in range(1, _CONVERSION_ATTEMPTS + 1):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or attempt == _CONVERSION_ATTEMPTS:
                raise
            time.sleep(0.025 * attempt)
        else:
            return


def _bring_up_to_date(database: Database, connection: sqlite3.Connection) -> None:
    if _version(connection) == VERSION:
        return
    with database.write():
        _refuse_foreign(connection, database.path)  # another process may have been at it meanwhile
        for statement in _statements(TABLES):
            connection.execute(statement)
        for step in MIGRATIONS[_version(connection) :]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
        # Rows that were written while the search index was missing: one statement tells, a rebuild helps.
        indexed = connection.execute("SELECT EXISTS(SELECT 1 FROM messages_fts_docsize)").fetchone()[0]
        written = connection.execute("SELECT EXISTS(SELECT 1 FROM messages)").fetchone()[0]
        if indexed != written:
            connection.execute("INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _refuse_foreign(connection: sqlite3.Connection, path: str) -> None:
    """Raises DatabaseError for a file of a newer version or of another program. An empty file is nobody's."""
    tables = connection.execute("SELECT count(*), sum(name = 'rooms') FROM sqlite_master WHERE type = 'table'")
    found, rooms = tables.fetchone()
    if found and not rooms:
        raise DatabaseError(
            f"{path} is the database of another program: it has tables, but none of rooms. "
            "Name another file with SIMPLEXMCP_ROOMS_DB."
        )
    version = _version(connection)
    if version > VERSION:
        raise DatabaseError(
            f"{path} was made by a newer simplexmcp (schema {version}, this one knows {VERSION}). "
            "Install that version, or name another file with SIMPLEXMCP_ROOMS_DB."
        )
    _check_tables(connection, path, missing_allowed=True)


def _check_tables(connection: sqlite3.Connection, path: str, *, missing_allowed: bool = False) -> None:
    """Raises DatabaseError when a table of this name is another program's."""
    for table, wanted in _COLUMNS.items():
        found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if not found and missing_allowed:
            continue
        if lacking := wanted - found:
            what = f"its table {table} lacks {', '.join(sorted(lacking))}" if found else f"it has no table {table}"
            raise DatabaseError(
                f"{path} is no rooms database of this or the reference program: {what}. "
                "Name another file with SIMPLEXMCP_ROOMS_DB."
            )


def _prepare_folder(path: str, *, create: bool) -> None:
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - pathlib costs start time
    try:
        if create and not os.path.isdir(folder):  # noqa: PTH112
            os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)  # noqa: PTH103, PTH120
            os.mkdir(folder, 0o700)  # noqa: PTH102
            os.chmod(folder, 0o700)  # noqa: PTH101
    except FileExistsError:
        pass  # another process made it just now
    except OSError as error:
        raise DatabaseError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    if create and not os.path.exists(path):  # noqa: PTH110
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise DatabaseError(f"Cannot make the file {path}: {error.strerror}.") from error
    if not create and not os.path.exists(path):  # noqa: PTH110
        raise DatabaseError(f"There is no rooms database at {path}. It is made when the first agent connects.")


def _protect(path: str) -> None:
    """Nobody else may read the file and its sidecars; best effort, since it may belong to another user."""
    for suffix in ("", "-wal", "-shm"):
        try:
            os.chmod(path + suffix, 0o600)  # noqa: PTH101
        except OSError:
            continue


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_BUSY


def _sentence(error: sqlite3.Error, path: str) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY or code == sqlite3.SQLITE_LOCKED:
        return f"{path} is busy: other processes kept writing for {_BUSY_MS // 1000} seconds. Try again."
    if code == sqlite3.SQLITE_READONLY:
        return f"{path} cannot be written. Make the file and its folder writable for this user."
    if code == sqlite3.SQLITE_FULL:
        return f"The disk of {path} is full. Nothing was written; free some space and try again."
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is no SQLite database. Name another file with SIMPLEXMCP_ROOMS_DB."
    if code == sqlite3.SQLITE_CANTOPEN:
        return f"{path} cannot be opened. Check that its folder exists and is writable for this user."
    if code == sqlite3.SQLITE_CORRUPT:
        return f"{path} is damaged ({error}). Restore a copy, or save what is left with .recover of sqlite3."
    if code == sqlite3.SQLITE_IOERR:
        return f"The disk of {path} failed ({error}). Nothing was written."
    return f"The database {path} answered: {error}."
