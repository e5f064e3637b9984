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
from simplexmcp.files.downloads import Downloads
from simplexmcp.files.folders import Folders, Kept, folder_name
from simplexmcp.files.paths import Rules
from simplexmcp.files.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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


@final
class FileRoom:
    """The files of one agent."""

    def __init__(
        self, api: ChatApi, data: Path, audit: Audit, clock: Clock, news: News, *, home: Path | None = None
    ) -> None:
        self._audit, self._clock, self.news = audit, clock, news
        self.rules = Rules(data=data.resolve(), home=home or Path.home())
        self.folders = Folders(data)
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
        for chat in _chats_of(event) if self._left else ():
            self.arrived(chat)
        self.downloads.on_event(event)
        self.uploads.on_event(event)

    # Chats that are gone

    def know(self, refs: Iterable[str]) -> None:
        """These are all chats: every other folder is that of a chat that is gone. OSError when the disk refuses."""
        folders = {folder_name(ref) for ref in refs}
        for root in (self.folders.data / "files", self.folders.data / "forwarded"):
            for path in root.iterdir() if root.is_dir() and not root.is_symlink() else ():
                if (found := _FOLDER.fullmatch(path.name)) and path.name not in folders:
                    self._left[f"{'@' if found[1] == 'contact' else '#'}{found[2]}"] = None

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
        if chat.base not in self._left or self._left[chat.base] == _born(chat):
            return
        del self._left[chat.base]
        try:
            aside = self.folders.set_aside(chat.ref, self._clock.now().date())
        except OSError as error:
            _log.warning("The old files of %s were not set aside: %s", chat.base, error.strerror)
            return
        if aside is not None:
            self._audit.write("files-set-aside", chat=chat.base, folder=aside.name)

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
    return str(chat.info.get("createdAt"))


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
