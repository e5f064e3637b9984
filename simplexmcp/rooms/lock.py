"""One watcher for one scope: a lock that the kernel releases, whatever ended its holder.

The reference program makes a file of the same name and calls a scope taken while that file is there. So a holder of
ours does both: it holds the kernel's lock on the file, and the file is there, with its process ID, until it ends. What
a killed watcher left is taken over, and so is a file that was never filled. A file of the reference's is respected
while its process lives: told from a stranger with the same ID by the time at which it began.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["alive", "folder", "hold", "holder", "lock_name"]

_OURS = "kernel-"  # how our tokens begin: with them, a lock that is free is free
_UNFILLED_LOOKS = 5  # a file may be seen before its maker fills it
_UNFILLED_PAUSE = 0.025  # seconds
_READ = 4096


def folder() -> str:
    """Where the locks of this user are."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TMP", "TEMP"))
    base = next(filter(None, named), "/tmp")  # noqa: S108 - the folder in it is the user's alone, or refused
    return f"{base.rstrip('/')}/agent-chat-pollers-{os.getuid()}"


def lock_name(path: str, agent: str, room_id: int | None, epoch: int | None, *, mentions_only: bool) -> str:
    """The file of one scope; `path` is the database's, resolved."""
    scope = dumps([path, agent, room_id, epoch, mentions_only])
    return f"{_sha256(scope.encode('utf-8', 'replace'))}.lock"


@contextmanager
def hold(name: str) -> Generator[None]:
    """Holds the lock until the `with` block ends. Raises RoomsError: another watcher has it, or no place for it."""
    path = f"{_own_folder()}/{name}"
    mine = dumps({"pid": os.getpid(), "token": _OURS + os.urandom(16).hex()})
    try:
        fd = _take(path, mine)
    except OSError as error:
        raise RoomsError(f"Cannot make the lock file {path}: {error.strerror}.") from error
    try:
        yield
    finally:
        # Its name goes while the lock is still held: who opens it later makes a new file.
        if _is_at(fd, path) and _content(fd) == mine:
            os.unlink(path)  # noqa: PTH108 - pathlib costs start time
        os.close(fd)


def holder(path: str) -> int | None:
    """The process ID of who holds the lock file; None when it is left over or gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        content = _content(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _pid(content) or 0
        return _pid(content) if _is_living_other(content, fd) else None
    finally:
        os.close(fd)


def alive(pid: int) -> bool:
    """Whether a process with this ID exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _take(path: str, mine: str) -> int:
    """The descriptor of the file, locked and filled with `mine`. Raises RoomsError when it is another's."""
    while True:
        fd, made = _open(path)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _running(path, _content(fd)) from None
            if not _is_at(fd, path):
                os.close(fd)  # its holder ended just now
                continue
            content = "" if made else _settled_content(fd)
            if _is_living_other(content, fd):
                raise _running(path, content)
            os.ftruncate(fd, 0)
            os.pwrite(fd, mine.encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _open(path: str) -> tuple[int, bool]:
    """The file's descriptor, and whether it was made here."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        except FileExistsError:
            pass
        try:
            return os.open(path, flags), False
        except FileNotFoundError:
            continue  # removed just now


def _own_folder() -> str:
    path = folder()
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise RoomsError(f"{path} is no folder of this user. Remove it, then start the watcher again.")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.chmod(path, 0o700)  # noqa: PTH101
    except OSError as error:
        raise RoomsError(f"Cannot use the folder {path} for locks: {error.strerror}.") from error
    return path


def _is_at(fd: int, path: str) -> bool:
    """Whether the file is still the one of that name."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _content(fd: int) -> str:
    return os.pread(fd, _READ, 0).decode("utf-8", "replace")


def _settled_content(fd: int) -> str:
    for _look in range(_UNFILLED_LOOKS):
        if _pid(content := _content(fd)) is not None:
            return content
        time.sleep(_UNFILLED_PAUSE)
    return _content(fd)


def _fields(content: str) -> dict[str, Any]:
    try:
        value = loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _pid(content: str) -> int | None:
    pid = _fields(content).get("pid")
    return pid if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 2**31 else None


def _is_living_other(content: str, fd: int) -> bool:
    """Whether a lock file that the kernel calls free belongs to a living watcher of the reference's."""
    pid = _pid(content)
    if pid is None or str(_fields(content).get("token", "")).startswith(_OURS):
        return False
    return alive(pid) and not _began_after(pid, os.fstat(fd).st_mtime)


def _began_after(pid: int, moment: float) -> bool:
    """Whether the process began after `moment` (seconds since 1970): then the file is not its own. Linux tells."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as file:  # noqa: PTH123
            uptime = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return False
    began = time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    return began > moment + 2  # the clocks differ by fractions


def _running(path: str, content: str) -> RoomsError:
    pid = _pid(content)
    who = f" (process {pid})" if pid is not None else ""
    return RoomsError(
        f"a watcher for this scope is already running{who}; its lock is {path}. One is enough; let it run."
    )


def _sha256(data: bytes) -> str:
    # hashlib loads OpenSSL: a quarter of a watcher's memory, for one digest.
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    try:
        digest: Any = __import__(name).sha256
    except ImportError:
        import hashlib

        digest = hashlib.sha256
    return str(digest(data).hexdigest())
