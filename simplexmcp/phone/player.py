"""One person who is played: the commands of the pages to its core, and what happens there to every tab.

Events and responses are queued as the core gives them, whoever gave the command, and are worked through in order by one
task; those that came together are one batch.
"""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlencode

import trio

from simplexmcp.chats import chat_of
from simplexmcp.core.api import ChatApi, around, count
from simplexmcp.core.link import Event
from simplexmcp.errors import CoreError, core_error
from simplexmcp.phone.chatview import chat_view, scopes_of, viewer_of
from simplexmcp.phone.events import Batch, concerns
from simplexmcp.phone.texts import number, obj
from simplexmcp.phone.view import Viewer, item_view

if TYPE_CHECKING:
    from simplexmcp.phone.files import Files
    from simplexmcp.phone.protocol import Chat, Item, Push
    from simplexmcp.phone.texts import Wire
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.web.socket import Socket

__all__ = ["Line", "Player", "encoded"]

log = logging.getLogger(__name__)

_CHATS = 1000
_NEWEST = 8  # items
_SHOWN_AGAIN = 50  # items


@final
class Line:
    """A core of the network as a link (`core.link.Link`) that takes no events."""

    def __init__(self, core: SimulatedCore) -> None:
        self._core = core
        self._push, self._events = trio.open_memory_channel[Event](0)

    async def send(self, command: str) -> Event:
        """The response to one command; CoreError when refused."""
        await trio.lowlevel.checkpoint()
        response = self._core.command(command)
        if response["type"] == "chatCmdError":
            raise core_error(response["chatError"])
        return response

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        """Nothing: the player sees the core's events as they happen."""
        return self._events

    @property
    def down_since(self) -> float | None:
        """It is never down."""
        return None


@final
class Player:
    """A person and the tabs that play it."""

    def __init__(self, core: SimulatedCore, files: Files) -> None:
        self.core, self.files = core, files
        self.api = ChatApi(Line(core))
        self.tabs: set[Socket] = set()
        self._queue, self._seen = trio.open_memory_channel[Event](math.inf)
        self._scopes: dict[str, None] = {}
        self._shown: dict[str, Chat] = {}
        self._viewers: dict[str, Viewer] = {}

    async def start(self) -> None:
        """Start the core's chats, and see from now on what happens in it. Raises CoreError."""
        await self.api.active_user()
        await self.api.start()
        self.core.watch(self._see)
        for group in await self.api.list_groups():
            _, members = await self.api.list_members(group["groupId"])
            self._scopes |= dict.fromkeys(scopes_of(group, members))
        await self._read_chats()

    async def run(self) -> None:
        """Tell the tabs what happens, until cancelled."""
        while True:
            batch = Batch()
            batch.add(await self._seen.receive())
            while self._seen.statistics().current_buffer_used:
                batch.add(self._seen.receive_nowait())
            if not self.tabs:
                continue
            try:
                await self._tell(batch)
            except CoreError as error:
                # Another program may stop the core under us; the others' pages go on.
                log.warning("What happened to %s could not be shown: %s", self.core.name, error)

    def enter(self, tab: Socket) -> None:
        """A tab plays this person from now on."""
        self.tabs.add(tab)
        self.core.played = True

    def leave(self, tab: Socket) -> None:
        """A tab plays it no more."""
        self.tabs.discard(tab)
        self.core.played = bool(self.tabs)

    def changed(self) -> None:
        """The chats changed by a command whose response does not tell it."""
        self._queue.send_nowait({"type": "changed"})

    async def chats(self) -> list[Chat]:
        """All chats that are shown, newest first. Raises CoreError."""
        chats = [chat for entry in await self._entries() if (chat := chat_view(entry)) is not None]
        return sorted(chats, key=lambda chat: chat["at"], reverse=True)

    async def chat(self, ref: str) -> Chat:
        """One chat. Raises CoreError when there is none."""
        for chat in await self.chats():
            if chat["chat"] == ref:
                return chat
        shown = chat_view(await self.api.get_chat(ref, count(1)))
        if shown is None:
            raise CoreError("errorStore/contactNotFound", "This chat is not shown.")
        return shown

    async def _entries(self) -> list[Wire]:
        """The core's chats, and the conversations with admins, which it does not list."""
        entries = [await self._with_newest(entry) for entry in await self.api.list_chats(_CHATS)]
        for ref in list(self._scopes):
            try:
                chat = await self.api.get_chat(ref, count(1))
                if chat["chatItems"]:
                    # Only a page around an item says what is unread.
                    chat = await self.api.get_chat(ref, around(chat["chatItems"][-1]["meta"]["itemId"], 0))
            except CoreError:  # the group or the member is gone
                del self._scopes[ref]
            else:
                entries.append(chat)
        return entries

    async def _with_newest(self, entry: Wire) -> Wire:
        """A chat of the list with more than its last item when that is no message: it may be one that is not shown, or
        older than a message that tells its time in whole seconds."""
        chat, items = chat_of(entry["chatInfo"]), entry["chatItems"]
        if chat is None or not items or "msgContent" in items[-1]["content"]:
            return entry
        try:
            return {**entry, "chatItems": (await self.api.get_chat(chat.ref, count(_NEWEST)))["chatItems"]}
        except CoreError:  # it was deleted meanwhile
            return entry

    async def item(self, ref: str, item_id: int) -> tuple[Wire, Wire]:
        """chatInfo and the core's object of an item. Raises CoreError."""
        chat = await self.api.get_chat(ref, around(item_id, 0))
        return obj(chat, "chatInfo"), chat["chatItems"][0]

    def view(self, ref: str, item: Wire, viewer: Viewer) -> Item | None:
        """An item as it is shown, with the place of its file when that is here."""
        shown = item_view(item, viewer)
        if shown is not None and "file" in shown and self.files.path(obj(item, "file")) is not None:
            query = {"person": self.core.name, "chat": ref, "item": shown["id"]}
            shown["file"]["url"] = f"/file?{urlencode(query)}"
        return shown

    def _see(self, event: Event) -> None:
        if concerns(event):
            self._queue.send_nowait(event)

    async def _tell(self, batch: Batch) -> None:
        for (ref, item_id), touched in batch.items.items():
            info, item = touched.info, touched.item
            if "(" in ref:
                self._scopes[ref] = None
            if item is None:
                try:
                    info, item = await self.item(ref, item_id)
                except CoreError:  # it was deleted meanwhile, which is told by an event of its own
                    continue
            if shown := self.view(ref, item, viewer_of(info)):
                self._push({"push": "item", "chat": ref, "item": shown, "new": touched.new})
        for ref, items in batch.gone.items():
            self._push({"push": "gone", "chat": ref, "items": items})
        for (ref, item_id), progress in batch.progress.items():
            self._push({"push": "progress", "chat": ref, "item": item_id, "progress": progress})
        for ref in batch.members:
            self._push({"push": "members", "chat": ref})
        await self._tell_chats()

    async def _tell_chats(self) -> None:
        before, viewers = self._shown, self._viewers
        await self._read_chats()
        for ref, chat in self._shown.items():
            if before.get(ref) != chat:
                self._push({"push": "chat", "chat": chat})
        for ref in before.keys() - self._shown.keys():
            self._push({"push": "forgotten", "chat": ref})
        for ref, viewer in self._viewers.items():
            if ref in viewers and viewers[ref] != viewer:
                await self._show_again(ref, viewer)

    async def _read_chats(self) -> None:
        entries = await self._entries()
        shown = {chat["chat"]: (chat, viewer_of(entry["chatInfo"])) for entry in entries if (chat := chat_view(entry))}
        self._shown = {ref: chat for ref, (chat, _) in shown.items()}
        self._viewers = {ref: viewer for ref, (_, viewer) in shown.items()}

    async def _show_again(self, ref: str, viewer: Viewer) -> None:
        """What may be done with the items changed: a new role, an end of the chat, a menu."""
        for item in (await self.api.get_chat(ref, count(_SHOWN_AGAIN)))["chatItems"]:
            if number(obj(item, "meta"), "itemId") and (shown := self.view(ref, item, viewer)):
                self._push({"push": "item", "chat": ref, "item": shown, "new": False})

    def _push(self, push: Push) -> None:
        text = encoded(push)
        for tab in list(self.tabs):
            tab.send(text)


def encoded(value: Any) -> str:
    """A frame, in ASCII: a text of others may hold half a character, which no UTF-8 can."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
