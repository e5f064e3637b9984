"""Receiving files: one download for each file, however many want it (flows 13, 14 and 16).

A download runs in the nursery of `Downloads`, not in the call that wants it. What the core goes on receiving after a
restart is joined, not begun again. The file is handed to its owner's `/forward` first: it is moved to the agent's
folder when nobody copies it any more. What one download does is in `carrying`.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import messages
from simplexmcp.chats import chat_of
from simplexmcp.core.api import before, count
from simplexmcp.core.link import LINK_UP
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.files import places as disk
from simplexmcp.files.carrying import BUSY, INTERNAL, Carrier
from simplexmcp.files.describing import Describing
from simplexmcp.files.items import (
    deleted,
    deleted_entries,
    event_entry,
    event_file_id,
    reason_of,
    touched_items,
    unknown_servers,
)
from simplexmcp.files.transfer import Receiving, Transfer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from simplexmcp.chats import Chat
    from simplexmcp.core.api import ChatApi
    from simplexmcp.core.link import Event
    from simplexmcp.files.folders import Folders, Place
    from simplexmcp.files.relays import Relays
    from simplexmcp.messages import ChatFile

__all__ = ["Downloads"]

_log = logging.getLogger(__name__)

_CANCEL_WAIT = 10.0  # seconds
_PAGE = 100


@final
class Downloads:
    """The downloads of one agent. `run` has to be started before `fetch`."""

    def __init__(self, api: ChatApi, folders: Folders, *, free: Callable[[Path], int] = disk.free_bytes) -> None:
        """`free` tells how many bytes a folder's disk still takes."""
        self._api = api
        self._places = disk.Places(folders)
        self._describing = Describing(api)
        self._carrier = Carrier(api, self._places, self._describing, free)
        self._receiving: dict[int, Receiving] = {}
        self._nursery: trio.Nursery | None = None
        self._handlers: dict[str, Callable[[Event], None]] = {
            "rcvFileDescrReady": self._described,
            "rcvFileProgressXFTP": self._progress,
            "rcvFileComplete": self._complete,
            "rcvFileError": self._failed,
            "rcvFileSndCancelled": self._sender_cancelled,
            "chatItemUpdated": self._items_touched,
            "chatItemsDeleted": self._items_touched,
            "groupChatItemsDeleted": self._items_touched,
            "chatError": self._error,
            LINK_UP: self._link_up,
        }

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive until cancelled. What is under way then, the core goes on with."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def on_event(self, event: Event) -> None:
        """Take one event of the core; others' and unknown ones are ignored. Never blocks."""
        handler = self._handlers.get(event.get("type", ""))
        if handler is not None and self._is_ours(event):
            handler(event)

    def look(self, chat: Chat, file: ChatFile) -> tuple[str, Path | None]:
        """The state of a file as the agent sees it, and the path of a completed download in its chat's folder."""
        return self._places.look(chat, file)

    async def relays(self, chat: Chat, file: ChatFile, waiting: Callable[[], None] | None = None) -> Relays:
        """The relays of a file that the core does not know, when its sender has uploaded it; `waiting` is called when
        that takes time. Raises Refused when it cannot come (any more), CoreError. Flow 13."""
        return await self._describing.relays(chat, file, waiting)

    @asynccontextmanager
    async def fetch(
        self, chat: Chat, file: ChatFile, place: Place = "received", approved: Relays | None = None
    ) -> AsyncGenerator[Transfer]:
        """The file on its way to the agent (`received`) or to its owner only (`forwarded`); it stays where it is while
        the block of a forward runs. `approved` are the relays that a card named: only those are ever approved. Leaving
        the block does not end the download. Flows 13 and 14."""
        if self._nursery is None:
            raise Refused("The server is stopping; ask again after its next start.")
        receiving = before_it = self._receiving.get(file.file_id)
        if receiving is not None and receiving.file.item != file.item:
            # The core gives the numbers of deleted files again.
            receiving.fail(deleted(receiving.chat, receiving.file))
        if receiving is None or receiving.error is not None:
            named = frozenset(approved.unknown) if approved else frozenset()
            receiving = self._receiving[file.file_id] = Receiving(chat, file, place, named)
            self._nursery.start_soon(self._carry, receiving, before_it)
        with receiving.taken(place):
            yield Transfer(receiving, place)

    async def cancel_chat(self, chat: Chat, why: str = "Your owner deleted the files of this chat.") -> int:
        """Ends every download of a chat, also those that the core went on with after a restart; how many. Flow 16."""
        mine = [one for one in self._receiving.values() if one.chat.base == chat.base]
        for receiving in mine:
            receiving.fail(Refused(why), cancel=True)
        with trio.move_on_after(_CANCEL_WAIT):
            for receiving in mine:
                await receiving.ended.wait()
        done = {receiving.file.file_id for receiving in mine}
        others = 0
        for ref in (chat.base, f"{chat.base}(_support)") if chat.is_group else (chat.base,):
            others += await self._cancel_busy(ref, done)
        return len(mine) + others

    def chat_gone(self, chat: Chat) -> None:
        """A chat was left or deleted: its downloads end. Its folder is another's business."""
        for receiving in self._receiving.values():
            if receiving.chat.base == chat.base:
                receiving.fail(Refused(f"The chat {chat.base} is gone."))

    async def _cancel_busy(self, ref: str, done: set[int]) -> int:
        """Cancels what the core receives in a chat, but for `done`."""
        cancelled, page = 0, count(_PAGE)
        try:
            while True:
                items: list[dict[str, Any]] = (await self._api.get_chat(ref, page))["chatItems"]
                for file in filter(None, map(messages.file_of, items)):
                    if file.status in BUSY and file.file_id not in done:
                        done.add(file.file_id)
                        cancelled += await self._carrier.cancel(file.file_id)
                first = messages.item_id(items[0]) if items else None
                if len(items) < _PAGE or first is None:
                    return cancelled
                page = before(first, _PAGE)
        except LinkLost:
            raise
        except CoreError as error:
            _log.info("The downloads of %s were not all found: %s", ref, error.tag)  # a chat that was left
            return cancelled

    # --- one download

    async def _carry(self, receiving: Receiving, before_it: Receiving | None) -> None:
        """A download from its beginning until nobody works with the file any more; after one that failed has cleaned
        up."""
        stopped = True
        try:
            if before_it is not None:
                await before_it.ended.wait()
            await self._carrier.carry(receiving)
            stopped = False
        except Exception:  # noqa: BLE001 - a defect must not end the server, and who waits must have an answer
            _log.exception("file %d", receiving.file.file_id)
            receiving.fail(Refused(INTERNAL))
        finally:
            if stopped:  # the core goes on with it
                receiving.fail(Refused("The server stopped while the file was received."))
            if self._receiving.get(receiving.file.file_id) is receiving:
                del self._receiving[receiving.file.file_id]
            receiving.ended.set()

    # --- events

    def _is_ours(self, event: Event) -> bool:
        user = event.get("user")
        return not isinstance(user, dict) or user.get("userId") == self._api.user_id

    def _of(self, event: Event) -> Receiving | None:
        """The download that an event is about."""
        receiving = self._receiving.get(event_file_id(event) or 0)
        item = messages.item_id(event_entry(event).get("chatItem"))
        return receiving if receiving is not None and item in (None, receiving.file.item) else None

    def _described(self, event: Event) -> None:
        self._describing.on_ready(event)

    def _progress(self, event: Event) -> None:
        receiving, received, total = self._of(event), event.get("receivedSize"), event.get("totalSize")
        if receiving is not None and isinstance(received, int) and isinstance(total, int):
            self._carrier.risen(receiving, received, total)

    def _complete(self, event: Event) -> None:
        entry = event_entry(event)
        file = messages.file_of(entry.get("chatItem"))
        if file is None or not Path(file.source).is_absolute():
            return
        if (receiving := self._of(event)) is not None and receiving.error is None:
            receiving.complete = Path(file.source)
            receiving.wake()
        elif (chat := chat_of(entry.get("chatInfo"))) is not None and not chat.is_control and self._nursery:
            self._nursery.start_soon(self._take_in, chat, file)

    async def _take_in(self, chat: Chat, file: ChatFile) -> None:
        """A file that came without a download: the core received it by itself, or went on with it after a restart."""
        source = Path(file.source)
        try:
            if self._places.is_ours(source):
                await trio.to_thread.run_sync(disk.secure, source)
            else:
                await self._carrier.hold(chat, file, source)
        except (OSError, Refused) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            _log.warning("File %d of %s was not moved into its folder: %s", file.file_id, chat.ref, why)
        except Exception:  # noqa: BLE001 - a defect must not end the server; the file stays where the core put it
            _log.exception("file %d of %s", file.file_id, chat.ref)

    def _failed(self, event: Event) -> None:
        if (receiving := self._of(event)) is not None:
            error = event.get("agentError")
            why = reason_of(error if isinstance(error, dict) else {})
            receiving.fail(Refused(f"The file could not be received: {why}."))
        else:
            self._nobodys(event_entry(event))
        self._describing.touch()

    def _sender_cancelled(self, event: Event) -> None:
        if (receiving := self._of(event)) is not None:
            receiving.fail(Refused("The sender cancelled the file."))
        else:
            self._nobodys(event_entry(event))
        self._describing.touch()

    def _nobodys(self, entry: dict[str, Any]) -> None:
        """A download ended that the core went on with after a restart: its empty file would stay."""
        file = messages.file_of(entry.get("chatItem"))
        if file is not None and file.source and file.file_id not in self._receiving:
            self._carrier.remove_empty(Path(file.source))

    def _items_touched(self, event: Event) -> None:
        numbers = touched_items(event)
        for entry in deleted_entries(event):
            self._nobodys(entry)
        for receiving in self._receiving.values():
            if receiving.file.item in numbers:
                receiving.check()
        self._describing.touch()

    def _error(self, event: Event) -> None:
        """An error without a command: the core refused relays late, or could not write a file."""
        error = event.get("chatError")
        if not isinstance(error, dict):
            return
        if (refused := unknown_servers(error)) is not None:
            if (receiving := self._receiving.get(refused[0])) is not None:
                self._describing.refused(receiving.file, refused[1])
                receiving.check()
            return
        inner = error.get("errorType")
        text = inner.get("message") if isinstance(inner, dict) else None
        for receiving in self._receiving.values():
            if isinstance(text, str) and receiving.target is not None and f"'{receiving.target}'" in text:
                receiving.fail(Refused("The core could not write the file to the disk."), cancel=True)

    def _link_up(self, _: Event) -> None:
        for receiving in self._receiving.values():
            receiving.check()
        self._describing.touch()
        if self._nursery is not None:
            self._nursery.start_soon(self._carrier.cancel_late, self._receiving)
