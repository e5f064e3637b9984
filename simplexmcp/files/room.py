"""Everything that the server does with files, put together: folders, downloads, uploads, and what the owners are told.

It also knows which folders belong to chats that are gone: the core gives their numbers again, and a new chat must not
find the files of an old one.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

import trio

from simplexmcp.chats import chat_of, chat_of_contact, chat_of_group
from simplexmcp.core.link import LINK_UP
from simplexmcp.files.births import Births
from simplexmcp.files.downloads import Downloads
from simplexmcp.files.folders import Folders, Kept, folder_name
from simplexmcp.files.paths import Rules
from simplexmcp.files.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from simplexmcp.audit import Audit
    from simplexmcp.chats import Chat
    from simplexmcp.clock import Clock
    from simplexmcp.core.api import ChatApi
    from simplexmcp.core.link import Event
    from simplexmcp.files.offer import FileOffer, SentCopy

__all__ = ["FileRoom", "News"]

_log = logging.getLogger(__name__)

_FOLDER = re.compile(r"(contact|group)-([1-9][0-9]{0,18})")
_HOUR = timedelta(hours=1)
_TOLD = 19  # and one more, that says that there are others


class News(Protocol):
    """What the owners are told of files without a question."""

    def refused(self, path: str, reason: str, *, last: bool) -> None:
        """The agent wanted to send a file that it may not send; `last`: further ones are not told for a while."""
        ...

    def failed(self, line: str) -> None:
        """A file was not uploaded, after its message was sent; `line` is inert."""
        ...

    def kept(self, chat: Chat, folder: Path, kept: Kept, after: trio.Event) -> None:
        """A chat was left and its files stay; told `after` the outcome of the leave."""
        ...

    def link_is_back(self) -> None:
        """The link to the core is there again: what could not be told is told now."""
        ...


@final
class FileRoom:
    """The files of one agent. `secrets` are files with secrets of the server, which are never sent."""

    def __init__(
        self, api: ChatApi, data: Path, audit: Audit, clock: Clock, news: News, *,
        home: Path | None = None, secrets: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        self._audit, self._clock, self.news = audit, clock, news
        data = data.resolve()  # a path that a download gives is one that a send takes
        self.rules = Rules(data, home or Path.home(), secrets=tuple(path.resolve() for path in secrets))
        self.folders = Folders(data)
        self._births = Births(data / "chats.json")
        self.downloads = Downloads(api, self.folders)
        self.uploads = Uploads(self.folders, self._upload_failed)
        self._left: dict[str, str | None] = {}
        self._told: dict[tuple[str, str], datetime] = {}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive and send until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.downloads.run)
            task_status.started()

    def on_event(self, event: Event) -> None:
        """Take one event of the core, before anybody else who uses files of its chat."""
        if event.get("type") == LINK_UP:
            self.news.link_is_back()
        for chat in _chats_of(event):
            self.arrived(chat)
        self.downloads.on_event(event)
        self.uploads.on_event(event)

    # Chats that are gone

    def know(self, chats: Mapping[str, str]) -> None:
        """These are all chats, and when they were made: every other folder is that of a chat that is gone, and so is
        that of a number which is another chat's now. OSError when the disk refuses."""
        folders = {folder_name(ref) for ref in chats}
        for root in (self.folders.data / "files", self.folders.data / "forwarded"):
            for path in root.iterdir() if root.is_dir() and not root.is_symlink() else ():
                if (found := _FOLDER.fullmatch(path.name)) and path.name not in folders:
                    self._left[f"{'@' if found[1] == 'contact' else '#'}{found[2]}"] = None
        for ref, born in chats.items():
            if self._births.another(ref, born):
                self._set_aside(ref)
        self._births.replace(dict(chats), self._left)

    def left(self, chat: Chat) -> Kept:
        """The agent left a chat, or deleted it: its downloads end, and its number may be given again. What stays of it
        in its folder."""
        self._left[chat.base] = _born(chat)
        self.downloads.chat_gone(chat)
        self.uploads.chat_gone(chat.ref)
        try:
            self.folders.delete(chat.ref, "forwarded")
            return self.folders.kept(chat.ref, "received")
        except OSError as error:  # the chat is left whatever the disk says
            _log.warning("The folders of %s could not be looked at: %s", chat.base, error.strerror)
            return Kept()

    def arrived(self, chat: Chat) -> None:
        """There is this chat: what an older one left under its number is set aside first."""
        born = _born(chat)
        if self._left.get(chat.base, born) != born or self._births.another(chat.base, born):
            self._left.pop(chat.base, None)
            self._set_aside(chat.base)
        self._births.note(chat.base, born)

    def _set_aside(self, ref: str) -> None:
        try:
            aside = self.folders.set_aside(ref, self._clock.now().date())
        except OSError as error:
            _log.warning("The old files of %s were not set aside: %s", ref, error.strerror)
            return
        if aside is not None:
            self._audit.write("files-set-aside", chat=ref, folder=aside.name)

    # What the owners are told

    def refused(self, path: str, reason: str) -> None:
        """The agent wanted to send a file that it may not send. Each is in the audit log; what is repeated within an
        hour, and more than a few, would only tire the owners."""
        self._audit.write("refused-file", path=path, reason=reason)
        now = self._clock.now()
        self._told = {what: at for what, at in self._told.items() if now - at < _HOUR}
        if (path, reason) not in self._told and len(self._told) <= _TOLD:
            self._told[path, reason] = now
            self.news.refused(path, reason, last=len(self._told) > _TOLD)

    def sent(self, ref: str, file_id: int, offer: FileOffer, copy: SentCopy) -> None:
        """The core took a file to send it to chat `ref`: which bytes went is in the audit log."""
        self._audit.write("file-sent", chat=ref, path=offer.path, kind=offer.kind, size=copy.size, sha256=offer.sha256)
        self.uploads.track(file_id, copy, ref)

    def _upload_failed(self, line: str) -> None:
        self._audit.write("upload-failed", error=line)
        self.news.failed(line)


def _born(chat: Chat) -> str:
    """What tells a chat from an older one with its number."""
    return str(chat.info.get("createdAt") or "")


def _chats_of(event: Event) -> Iterator[Chat]:
    """The chats that an event is about."""
    items = event.get("chatItems")
    for entry in [event.get("chatItem"), *(items if isinstance(items, list) else []), event]:
        if not isinstance(entry, dict):
            continue
        found = (
            chat_of(entry.get("chatInfo")),
            chat_of_group(entry.get("groupInfo")),
            chat_of_contact(entry.get("contact")),
        )
        yield from filter(None, found)
