"""The data folder of an agent: nobody else reads it, one server uses it, a killed server leaves nothing to
clean up.

`open_folder` is for the running server: it makes or checks DATA, takes the lock, makes the token.
`read_server` and `running_pid` are for the other commands and change nothing. Only POSIX systems: the modes
are the protection.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.clock import iso, parse_iso
from simplexmcp.errors import UserError
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime
    from pathlib import Path

__all__ = [
    "Folder",
    "ServerInfo",
    "disk_error",
    "loose_modes",
    "open_folder",
    "read_private",
    "read_server",
    "read_token",
    "running_pid",
    "write_private",
]

_READ_LIMIT = 1 << 20  # bytes of a small file of ours
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url
# What the program and the core put into DATA. Other names are not ours to judge.
_OURS = (
    "lock",
    "token",
    "headers.json",
    "server.json",
    "audit.jsonl",
    "actions.jsonl",
    "chats.json",
    "simplex_chat.db",
    "simplex_agent.db",
    "sandbox.json",
    "tmp",
    "files",
    "forwarded",
)


@final
@dataclass(frozen=True)
class ServerInfo:
    """`server.json`: what `register` and `status` know of the server that runs, or ran last."""

    url: str
    port: int
    expire_hours: int
    version: str
    pid: int
    started: datetime


@final
@dataclass(frozen=True)
class Folder:
    """An open data folder; the lock is held until the `with` block of `open_folder` ends."""

    path: Path
    token: str

    def write_server(self, info: ServerInfo) -> None:
        """Writes `server.json`, whole or not at all."""
        entry = {
            "url": info.url,
            "port": info.port,
            "expireHours": info.expire_hours,
            "version": info.version,
            "pid": info.pid,
            "started": iso(info.started),
        }
        write_private(self.path / "server.json", _json(entry))

    def subfolder(self, *parts: str) -> Path:
        """A folder inside DATA, made with mode 0700 when it is missing."""
        path = self.path.joinpath(*parts)
        _make(path)
        return path


@contextmanager
def open_folder(name: str, path: Path, notice: Callable[[str], None]) -> Generator[Folder]:
    """Makes or checks DATA at `path` and holds its lock. `notice` gets one line when looser modes were
    repaired.

    Inside the block the process has umask 077, so that what the core makes is private too. Raises UserError:
    another server runs, a symlink, another user's folder, a damaged token, a disk that refuses.
    """
    before = os.umask(0o077)
    try:
        try:
            _check_parent(path)
            _make(path)
            repaired = _repair(path)
            lock = _lock(name, path / "lock")
        except OSError as error:
            raise disk_error(path, error) from error
        try:
            if repaired:
                notice(f"Repaired modes in {printable(str(path))} that let others in: {', '.join(repaired)}.")
            yield Folder(path, _token(path))
        finally:
            os.close(lock)
    finally:
        os.umask(before)


def read_server(name: str, path: Path) -> ServerInfo | None:
    """`server.json` of agent `name`; None when the agent was never started. Raises UserError."""
    try:
        if not os.path.lexists(path):
            return None
        _check_parent(path)
        _check_owned(path, directory=True)
        data = read_private(path / "server.json")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error(path / "server.json", error) from error
    try:
        entry: Any = json.loads(data)
        return ServerInfo(
            url=_typed(entry["url"], str),
            port=_typed(entry["port"], int),
            expire_hours=_typed(entry["expireHours"], int),
            version=_typed(entry["version"], str),
            pid=_typed(entry["pid"], int),
            started=parse_iso(_typed(entry["started"], str)),
        )
    except (ValueError, KeyError, TypeError) as error:
        where = printable(str(path / "server.json"))
        raise UserError(f"{where} is damaged. Start the agent again: simplexmcp serve {printable(name)}") from error


def read_token(path: Path) -> str:
    """The token of DATA at `path`, for a client on this machine. Raises UserError."""
    try:
        token = _read_token(path / "token")
    except OSError as error:
        raise disk_error(path / "token", error) from error
    if token is None:
        raise UserError(f"{printable(str(path / 'token'))} is missing. Start the agent: it makes the token.")
    return token


def running_pid(path: Path) -> int | None:
    """The process that holds the lock of DATA at `path`, 0 when it did not say; None when no server runs."""
    try:
        fd = os.open(path / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # Shared and given back at once: the reader keeps a server that starts now from starting for
        # microseconds only.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(fd) or 0
    finally:
        os.close(fd)
    return None


def read_private(path: Path) -> bytes:
    """A small regular file of ours, never through a symlink. Raises OSError, UserError for one that is not
    ours."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        _check_stat(path, os.fstat(fd), directory=False)
        return file.read(_READ_LIMIT)


def write_private(path: Path, data: bytes) -> None:
    """Replaces `path` by a file with mode 0600, whole or not at all, durable when it returns. Raises
    OSError."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # left by a process that was killed here
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, 0o600)  # an umask such as 0277 takes rights from the owner
        file.write(data)
        file.flush()
        os.fsync(fd)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Some file systems can't do this for a folder; the file itself is on the disk.
        with suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def disk_error(path: Path, error: OSError) -> UserError:
    """The line for what the disk refused at `path` in DATA."""
    why = error.strerror or type(error).__name__
    return UserError(f"Data folder {printable(str(path))}: {why}. Repair it, or choose another with --data.")


def _make(path: Path) -> None:
    if not path.parent.exists():
        _make(path.parent)
    try:
        path.mkdir(0o700)
    except FileExistsError:
        return
    path.chmod(0o700)


def _check_parent(path: Path) -> None:
    """Whoever may change the folder that holds DATA can put another in its place."""
    if path.parent.is_symlink():
        raise UserError(f"{printable(str(path.parent))} is a symlink. Give its real path with --data.")
    holder = next((parent for parent in path.parents if parent.exists()), path)
    found = holder.stat()
    if found.st_uid not in (0, os.getuid()):
        raise UserError(f"{printable(str(holder))} belongs to another user. Choose another folder with --data.")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise UserError(f"{printable(str(holder))} can be changed by every user. Choose another folder with --data.")


def _check_owned(path: Path, *, directory: bool) -> os.stat_result:
    try:
        found = path.lstat()
    except OSError as error:
        raise disk_error(path, error) from error
    _check_stat(path, found, directory=directory)
    return found


def _check_stat(path: Path, found: os.stat_result, *, directory: bool) -> None:
    shown = printable(str(path))
    if stat.S_ISLNK(found.st_mode):
        raise UserError(f"{shown} is a symlink. Put the real one there, or choose another folder with --data.")
    if found.st_uid != os.getuid():
        raise UserError(f"{shown} belongs to another user. Choose another folder with --data.")
    if directory and not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{shown} is not a folder. Move it away, or choose another folder with --data.")
    if not directory and not stat.S_ISREG(found.st_mode):
        raise UserError(f"{shown} is not a regular file. Move it away, or choose another folder with --data.")


def loose_modes(path: Path) -> list[str]:
    """What in DATA at `path` others may use, as `token 0644`; the next start repairs it. Raises UserError for what no
    start accepts."""
    return [_shown_mode(path, entry, mode) for entry, mode, _ in _loose(path)]


def _repair(path: Path) -> list[str]:
    """Takes the rights of others from DATA and what is ours in it; returns what it changed, as `token
    0644`."""
    repaired: list[str] = []
    for entry, mode, directory in _loose(path):
        if entry == path:
            _check_not_foreign(path)
        entry.chmod(0o700 if directory else 0o600)
        repaired.append(_shown_mode(path, entry, mode))
    return repaired


def _loose(path: Path) -> Generator[tuple[Path, int, bool]]:
    """What others have rights to: its mode, and whether it is a folder."""
    for entry in (path, *(path / name for name in _OURS)):
        if entry != path and not os.path.lexists(entry):
            continue
        directory = entry == path or entry.name in ("tmp", "files", "forwarded")
        mode = stat.S_IMODE(_check_owned(entry, directory=directory).st_mode)
        if mode & 0o077:
            yield entry, mode, directory


def _shown_mode(path: Path, entry: Path, mode: int) -> str:
    return f"{'the folder' if entry == path else entry.name} {mode:04o}"


def _check_not_foreign(path: Path) -> None:
    """A folder of other things, such as a home folder, keeps its mode."""
    names = {entry.name for entry in path.iterdir()}
    if names and names.isdisjoint({"lock", "token", "server.json", "simplex_chat.db", "sandbox.json"}):
        raise UserError(f"{printable(str(path))} holds other things. Choose an empty folder with --data.")


def _lock(name: str, path: Path) -> int:
    """The locked file. The process is written into it for the message only: the kernel knows who holds the
    lock."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(fd, b"%10d\n" % os.getpid(), 0)
    except BlockingIOError:
        pid = _pid(fd)
        os.close(fd)
        process = f" (process {pid})" if pid else ""
        raise UserError(f"Agent {printable(name)} is already running{process}.") from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _pid(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _token(path: Path) -> str:
    """The token of DATA, made at the first start; headers.json follows it."""
    file = path / "token"
    try:
        token = _read_token(file)
        if token is None:
            token = secrets.token_urlsafe(32)
            write_private(file, token.encode() + b"\n")
        headers = _json({"Authorization": f"Bearer {token}"})
        if not (path / "headers.json").exists() or read_private(path / "headers.json") != headers:
            write_private(path / "headers.json", headers)
    except OSError as error:
        raise disk_error(path, error) from error
    return token


def _read_token(file: Path) -> str | None:
    try:
        text = read_private(file).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    if not _TOKEN.fullmatch(text):
        raise UserError(f"{printable(str(file))} is damaged. Delete it and start again: a new token is made.")
    return text


def _json(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _typed(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(kind.__name__)
    return value
