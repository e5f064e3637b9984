"""The folders of files in DATA: `files/KIND-ID` for what the agent received, `forwarded/KIND-ID` for what only its
owner got, `files/sent` for the copies that are being sent.

A chat's folder is named after its type and number, `group-9` or `contact-4`; conversations with a group's admins share
the group's. Links in them are never followed: they are counted as nothing and deleted as links.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, final

from simplexmcp.files.names import stored_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

__all__ = ["Folders", "Kept", "Place", "folder_name"]

_log = logging.getLogger(__name__)

Place = Literal["received", "forwarded"]
"""For whom a file is fetched: the agent, or its owner only."""

_REF = re.compile(r"([@#])([1-9][0-9]{0,18})(?:\(_support(?::[1-9][0-9]{0,18})?\))?")
_COPY = "send-"


def folder_name(ref: str) -> str:
    """The folder of the chat `ref`: `group-9` for `#9` and `#9(_support)`, `contact-4` for `@4`. ValueError for what is
    no reference."""
    found = _REF.fullmatch(ref)
    if not found:
        raise ValueError(f"{ref!r} is not a chat's reference")
    return f"{'contact' if found[1] == '@' else 'group'}-{found[2]}"


@final
@dataclass(frozen=True)
class Kept:
    """Files of a folder: how many, and their bytes together."""

    files: int = 0
    size: int = 0

    def __add__(self, other: Kept) -> Kept:
        """Both together."""
        return Kept(self.files + other.files, self.size + other.size)

    def __bool__(self) -> bool:
        """False without a file."""
        return self.files > 0


@final
class Folders:
    """The folders of one data folder. Everything is made with mode 0700; OSError when the disk refuses."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.sent = data / "files" / "sent"
        """Copies of what is being sent: a folder `send-XXXXXX` for each."""

    def folder(self, ref: str, place: Place = "received") -> Path:
        """The folder of a chat; it need not exist."""
        return self._root(place) / folder_name(ref)

    def target(self, ref: str, file_id: int, name: str, place: Place = "received") -> Path:
        """Where file `file_id`, called `name` by its sender, is kept: `files/group-15/7.pdf`. The folder is there when
        this returns."""
        folder = self.folder(ref, place)
        self._make(folder)
        return folder / stored_name(file_id, name)

    def kept(self, ref: str, place: Place | None = None) -> Kept:
        """The files of a chat in both places, or in one."""
        return sum((_sum(folder) for folder in self._both(ref, place)), Kept())

    def delete(self, ref: str, place: Place | None = None) -> Kept:
        """Deletes a chat's folders in both places, or in one; what was in them. Copies being sent stay."""
        deleted = Kept()
        for folder in self._both(ref, place):
            deleted += _sum(folder)
            _remove(folder)
        return deleted

    def set_aside(self, ref: str, day: date) -> Path | None:
        """Renames what was received from a chat that is gone to `group-9-left-2026-12-01`, so that a new chat with its
        number starts empty; what was forwarded is deleted. None when there was nothing."""
        for forwarded in self._both(ref, "forwarded"):
            _remove(forwarded)
        folder = self.folder(ref)
        if self._root("received").is_symlink() or not os.path.lexists(folder):
            return None
        name = f"{folder.name}-left-{day.isoformat()}"
        aside, count = folder.with_name(name), 1
        while os.path.lexists(aside):
            count += 1
            aside = folder.with_name(f"{name}-{count}")
        folder.rename(aside)
        return aside

    def new_copy(self) -> Path:
        """An empty folder of its own for a copy to be sent."""
        self._make(self.sent)
        folder = Path(tempfile.mkdtemp(prefix=_COPY, dir=self.sent))
        folder.chmod(0o700)
        return folder

    def delete_copy(self, path: Path) -> bool:
        """Deletes the folder of the copy at `path`; False when `path` is not a copy of ours, or is gone already."""
        folder = path.parent
        if folder.parent != self.sent or not folder.name.startswith(_COPY) or not os.path.lexists(folder):
            return False
        if self.sent.is_symlink() or self._root("received").is_symlink():
            return False
        _remove(folder)
        return True

    def discard_copy(self, path: Path) -> None:
        """`delete_copy` where something failed already: a disk that refuses is logged, the next start deletes it."""
        try:
            self.delete_copy(path)
        except OSError as error:
            _log.warning("The copy of a file that was not sent stays for now: %s", error.strerror)

    def empty_sent(self) -> None:
        """Deletes the copies that the last run left; at start, before the core sends."""
        if self._root("received").is_symlink():
            return
        if self.sent.is_symlink():
            self.sent.unlink()
        for entry in _entries(self.sent):
            _remove(Path(entry.path))

    def _root(self, place: Place) -> Path:
        return self.data / ("files" if place == "received" else "forwarded")

    def _both(self, ref: str, place: Place | None) -> list[Path]:
        places: tuple[Place, ...] = (place,) if place else ("received", "forwarded")
        return [self.folder(ref, one) for one in places if not self._root(one).is_symlink()]

    def _make(self, folder: Path) -> None:
        """Makes `folder` below DATA. NotADirectoryError when a part of it is a link or a file."""
        path = self.data
        for part in folder.relative_to(self.data).parts:
            path /= part
            try:
                path.mkdir(0o700)
            except FileExistsError:
                if not stat.S_ISDIR(path.lstat().st_mode):
                    raise NotADirectoryError(20, "Not a folder", str(path)) from None
            else:
                path.chmod(0o700)  # an umask such as 0277 takes rights from the owner


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        if folder.is_symlink():
            return
        with os.scandir(folder) as found:
            yield from found
    except (FileNotFoundError, NotADirectoryError):
        return


def _sum(folder: Path) -> Kept:
    """The regular files in `folder` and below. One that goes meanwhile is not counted."""
    total = Kept()
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            total += _sum(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            try:
                total += Kept(1, entry.stat(follow_symlinks=False).st_size)
            except FileNotFoundError:
                continue
    return total


def _remove(path: Path) -> None:
    """Deletes a folder with all in it, or a link or file in its place; nothing when there is nothing."""
    try:
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return
