"""The program's own small files of a user: private, each replaced as a whole, changed under a lock.

They are in `$XDG_STATE_HOME/simplexmcp/rooms` (`~/.local/state/…` without that variable).
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import UserError
from simplexmcp.rooms.jsontext import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["alter", "digest", "file_in", "folders", "read", "write"]

_PATIENCE = 5.0  # seconds for another process to end its change
_PAUSE = 0.01  # seconds


def file_in(folder: str, name: str) -> str:
    """The path of a file in one of the state folders. Nothing is made."""
    return os.path.join(_base(os.environ.get("XDG_STATE_HOME")), folder, name)  # noqa: PTH118


def folders(folder: str) -> list[str]:
    """Where files of such a folder may be, whatever program of this user made them: a client may start one without
    `XDG_STATE_HOME` and another one with it."""
    bases = dict.fromkeys((_base(os.environ.get("XDG_STATE_HOME")), _base(None)))
    return [os.path.join(base, folder) for base in bases]  # noqa: PTH118


def digest(*parts: str) -> str:
    """A file name for what these texts name together."""
    from hashlib import sha256  # costs memory that a watcher does without

    return sha256(dumps(parts).encode("utf-8", "replace")).hexdigest()[:32]


def read(path: str) -> dict[str, Any]:
    """The object in the file; {} when there is none. Raises UserError for one that cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start time
            value = loads(file.read())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UserError(f"{path} is damaged. Delete it.")
    return value


def write(path: str, value: dict[str, Any]) -> None:
    """Puts the object in place of the file, readable for this user alone. Raises UserError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _make_folder(path)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(dumps(value) + "\n")
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise UserError(f"Cannot write {path}: {error.strerror}.") from error


@contextmanager
def alter(path: str) -> Generator[dict[str, Any]]:
    """The object in the file, written back at the end of the block if it was changed; one at a time. Raises
    UserError."""
    try:
        _make_folder(path)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"Cannot write {path}: {error.strerror}.") from error
    try:
        _wait_for(lock, path)
        value = read(path)
        before = dumps(value)
        yield value
        if dumps(value) != before:
            write(path, value)
    finally:
        os.close(lock)


def _base(given: str | None) -> str:
    home = given or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    return os.path.join(home, "simplexmcp", "rooms")  # noqa: PTH118


def _wait_for(lock: int, path: str) -> None:
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise UserError(f"Another process keeps {path} locked. Try again.") from None
            time.sleep(_PAUSE)
        else:
            return


def _make_folder(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
