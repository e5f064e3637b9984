"""Where received files lie on the disk: looking for one, and moving it without writing over another.

A completed download is `files/group-15/7.pdf`; what only the owner got is in `forwarded/`. A file that the core
received by itself waits in the chat's folder as `7.held.m4a` until a download of it is approved. The functions that
work on the disk block: for a thread.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, final

from simplexmcp.files.names import stored_name

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.files.folders import Folders, Place
    from simplexmcp.messages import ChatFile

__all__ = ["Places", "free_bytes", "is_file", "move", "secure"]

_CHUNK = 1 << 20
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@final
class Places:
    """The places of received files in one data folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders

    def path(self, chat: Chat, file: ChatFile, place: Place = "received") -> Path:
        """Where a download of `file` belongs; the folder need not exist."""
        return self.folders.folder(chat.ref, place) / stored_name(file.file_id, file.name)

    def held(self, chat: Chat, file: ChatFile) -> Path:
        """Where `file` waits when it came without a request."""
        path = self.path(chat, file)
        return path.with_name(f"{file.file_id}.held{path.suffix}")

    def look(self, chat: Chat, file: ChatFile) -> tuple[str, Path | None]:
        """The state of a file as the agent sees it, and the path of a completed download. A file that the core received
        is offered when it lies elsewhere than in the chat's folder, and failed when it is nowhere."""
        if file.own or file.status != "rcvComplete":
            return file.state, None
        if is_file(path := self.path(chat, file)):
            return "received", path
        return ("failed" if self.find(chat, file) is None else "offered"), None

    def find(self, chat: Chat, file: ChatFile) -> Path | None:
        """Where a file that the core received is now; the best place first."""
        ours = (self.path(chat, file), self.held(chat, file), self.path(chat, file, "forwarded"))
        if found := next((path for path in ours if is_file(path)), None):
            return found
        source = Path(file.source)
        # A path that is not absolute is in a folder of the core's that nobody here knows.
        if not source.is_absolute() or self.is_ours(source) or not is_file(source):
            return None
        # The core's own folder: only a whole file is of use, a part of one may belong to a later transfer.
        return source if source.lstat().st_size == file.size else None

    def is_ours(self, path: Path) -> bool:
        """True for a path in a chat's folder."""
        roots = (self.folders.data / "files", self.folders.data / "forwarded")
        return ".." not in path.parts and any(path.is_relative_to(root) for root in roots)

    def clear(self, chat: Chat, file: ChatFile) -> None:
        """Moves older files with the number of `file` out of its way: the core gives numbers again."""
        for path in (self.path(chat, file), self.held(chat, file), self.path(chat, file, "forwarded")):
            if not os.path.lexists(path):
                continue
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode) or found.st_size == 0:
                path.unlink()
                continue
            aside, count = path.with_name(f"{path.stem}-old{path.suffix}"), 1
            while os.path.lexists(aside):
                count += 1
                aside = path.with_name(f"{path.stem}-old-{count}{path.suffix}")
            path.rename(aside)

    def hold(self, chat: Chat, file: ChatFile, source: Path) -> bool:
        """Moves a file that the core received by itself from its own folder into the chat's; False when it is not
        whole. OSError."""
        held = self.held(chat, file)
        if not is_file(source) and is_file(held):
            return True
        if source.lstat().st_size != file.size:
            return False
        self.folders.target(chat.ref, file.file_id, file.name)
        self.clear(chat, file)
        move(source, held)
        return True

    def remove_empty(self, path: Path) -> None:
        """Removes the empty file that stands for a download that ended without its file."""
        if self.is_ours(path) and is_file(path) and path.lstat().st_size == 0:
            path.unlink()


def is_file(path: Path) -> bool:
    """True for a regular file, not for a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def free_bytes(folder: Path) -> int:
    """Bytes that can still be written to the file system of `folder`. OSError."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def secure(path: Path) -> int:
    """Takes every right of others and the right to execute from a file: its size in bytes. OSError, also for a link."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        os.fchmod(fd, 0o600)
        return found.st_size
    finally:
        os.close(fd)


def move(source: Path, target: Path) -> None:
    """Moves a file to the new path `target`, never over another. FileExistsError, OSError: then it is where it was."""
    if source == target:
        return
    secure(source)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(source, target)
    source.unlink()


def _copy(source: Path, target: Path) -> None:
    """Another file system, or one without hard links."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as old:
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(made, "wb") as new:
                shutil.copyfileobj(old, new, _CHUNK)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
