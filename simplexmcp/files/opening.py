"""A file that the agent names, opened so that nothing is followed, nothing waits and nothing but a regular file is
opened; and read in one pass with flat memory.

A path is walked part by part, each opened from the folder before it: what is checked is what is opened, whoever renames
things meanwhile. Linux and macOS.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import trio

from simplexmcp.errors import Refused
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from simplexmcp.files.paths import Rules

__all__ = ["Identity", "identity_of", "is_sparse", "opened", "read_through", "refuse", "reopened"]

_AGENTS = ("token", "headers.json")
_HOLES = 1 << 20  # bytes of a file that may be on no disk
_CHUNK = 1 << 20
_SHOWN_PATH = 300  # characters of a path in a sentence
_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symlink; give the real path",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# A folder that may be entered but not listed can be passed with O_PATH, as it can be in any other open.
_WAY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_Place = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class Identity:
    """What must be equal between a card and its perform, besides the bytes themselves."""

    device: int
    inode: int
    size: int
    changed: int
    """Change time (ctime) in nanoseconds."""


def identity_of(fd: int) -> Identity:
    """The identity that an open file has now."""
    found = os.fstat(fd)
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


@asynccontextmanager
async def opened(path: str, rules: Rules) -> AsyncGenerator[int]:
    """The regular file at `path`, an absolute path without `..`, for reading. Raises Refused."""
    fd = await trio.to_thread.run_sync(_open, path, rules)
    try:
        yield fd
    finally:
        os.close(fd)


@asynccontextmanager
async def reopened(path: str, identity: Identity) -> AsyncGenerator[int]:
    """The file again that had `identity` when it was opened before. Raises Refused when it is not the same."""
    fd = await trio.to_thread.run_sync(_open_again, path, identity)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(path: str, rules: Rules) -> int:
    way: list[_Place] = []
    agents: set[_Place] = set()
    try:
        fd = _walk(path, way, agents)
    except OSError as error:
        refuse(path, _why(error))
    if why := _refused_identity(way, agents, rules):
        os.close(fd)
        refuse(path, why)
    return fd


def _open_again(path: str, identity: Identity) -> int:
    try:
        fd = _walk(path, [], set())
    except (OSError, Refused):
        refuse(path, "changed after the request")
    if identity_of(fd) != identity:
        os.close(fd)
        refuse(path, "changed after the request")
    return fd


def _walk(path: str, way: list[_Place], agents: set[_Place]) -> int:
    """The file at `path`, opened from folder to folder; what they are is added to `way`, the file last, and to `agents`
    when one is the data folder of an agent."""
    *folders, name = [part for part in path.split("/") if part]
    here = os.open("/", _WAY)
    try:
        way.append(_place(os.fstat(here)))
        for at, part in enumerate(folders):
            if stat.S_ISLNK(os.lstat(part, dir_fd=here).st_mode):
                link = "/" + "/".join(folders[: at + 1])
                refuse(path, f"leads through the symlink {_shown(link)}; give the real path")
            below = os.open(part, _WAY, dir_fd=here)
            os.close(here)
            here = below
            way.append(_place(os.fstat(here)))
            if _is_agents(here):
                agents.add(way[-1])
        # Looked at before it is opened: even an open can do something to a device.
        seen = os.lstat(name, dir_fd=here)
        if not stat.S_ISREG(seen.st_mode):
            refuse(path, f"is {_TYPES.get(stat.S_IFMT(seen.st_mode), 'no regular file')}")
        fd = os.open(name, _READ, dir_fd=here)
    finally:
        os.close(here)
    found = os.fstat(fd)
    if _place(found) != _place(seen) or not stat.S_ISREG(found.st_mode):
        os.close(fd)
        refuse(path, "changed while it was opened")
    way.append(_place(found))
    return fd


def _is_agents(folder: int) -> bool:
    """True for the data folder of an agent: it is told by two of its files."""
    try:
        return all(stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode) for name in _AGENTS)
    except OSError:
        return False


def _refused_identity(way: list[_Place], agents: set[_Place], rules: Rules) -> str | None:
    """Why the file is refused by what it and the folders on its way are, whatever their names: another name on a disk
    that ignores case, a second mount."""
    if way[-1] in map(_found, rules.secrets):
        return "holds a secret of this server"
    data, received, sent = (_found(path) for path in (rules.data, rules.received, rules.sent))
    if data in way:
        below = way[way.index(data) + 1 :]
        if not below or below[0] != received:
            return "is in the agent's own data folder"
        if sent in below:
            return "is a copy of a file that is being sent"
        way = below[1:]  # as in `paths.refusal`: what is above DATA is the user's choice
    secret = {place for place in map(_found, rules.roots) if place}
    if secret.intersection(way):
        return "is in a folder of secrets, under another name"
    return "is in the data folder of another agent" if agents.intersection(way) else None


def _found(path: Path) -> _Place | None:
    try:
        return _place(path.stat())
    except OSError:
        return None


def _place(found: os.stat_result) -> _Place:
    return found.st_dev, found.st_ino


def is_sparse(fd: int) -> bool:
    """True when over 1 MB of the file is on no disk. Compressed files take less room than their size too, but have no
    holes."""
    found = os.fstat(fd)
    if found.st_blocks * 512 >= found.st_size - _HOLES:
        return False
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE) < found.st_size
    except OSError:  # a file system that does not tell
        return False


def read_through(fd: int, size: int, sink: Callable[[bytes], None]) -> str | None:
    """Gives exactly `size` bytes from the beginning to `sink`; their SHA-256 in hexadecimal digits, None when the file
    has fewer or more. For a thread of trio; ends when its task is cancelled."""
    digest = hashlib.sha256()
    at = 0
    while at < size:
        trio.from_thread.check_cancelled()
        chunk = os.pread(fd, min(_CHUNK, size - at), at)
        if not chunk:
            return None
        digest.update(chunk)
        sink(chunk)
        at += len(chunk)
    return None if os.pread(fd, 1, size) else digest.hexdigest()


def refuse(path: str, why: str) -> NoReturn:
    """Raises Refused with `file: PATH WHY.`, the path in one line of printable characters."""
    raise Refused(f"file: {_shown(path)} {why}.")


def _shown(path: str) -> str:
    shown = printable(path)
    return shown if len(shown) <= _SHOWN_PATH else f"{shown[: _SHOWN_PATH // 2]}…{shown[-_SHOWN_PATH // 2 :]}"


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "does not exist"
    if error.errno == errno.ENOTDIR:
        return "does not exist: a part of the path is no folder"
    if error.errno == errno.ELOOP:
        return "changed while it was opened"
    return f"can't be read: {error.strerror or type(error).__name__}"
