"""Collecting what arrives while somebody waits.

One event pump feeds `Watch.on_event`; an `Inbox` keeps the received messages of one chat, or of all, from the
moment it is opened, by item number: a number is never given twice, so a message that is seen again (event,
reading after a lost link) is one message. `Joins` keeps what is seen of new connections. Both only collect;
reading and marking is the caller's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import messages
from simplexmcp.chats import chat_of, chat_of_contact, chat_of_group
from simplexmcp.core.link import LINK_UP

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from simplexmcp.chats import Chat
    from simplexmcp.core.link import Event

__all__ = ["CAPACITY", "Arrival", "Inbox", "Join", "Joins", "Watch", "changes_in"]

CAPACITY = 100
"""Messages that an inbox keeps; later ones are counted."""

_JOINS = 1000
_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """A received message and its chat."""

    chat: Chat
    item: dict[str, Any]

    @property
    def live(self) -> bool:
        """True while its sender still types."""
        return messages.is_live(self.item)


class _Changing:
    """Something that others wait for: `changed` returns at the next change after it was called."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def touch(self) -> None:
        """Wake whoever waits."""
        event, self._event = self._event, trio.Event()
        event.set()

    async def changed(self) -> None:
        """Return at the next change. What is looked at before, without an await between, misses none."""
        await self._event.wait()


@final
class Inbox(_Changing):
    """Messages that arrived since it was opened, in the order of their arrival."""

    def __init__(self, ref: str | None) -> None:
        super().__init__()
        self.ref = ref
        self.floor = 0
        self.gap = False
        """The link was lost and is there again: what arrived meanwhile must be read from the chat, then set
        False."""
        self.gone = False
        """The chat went from here; its number may be given to another."""
        self.ended = False
        """Nothing more will come: the other side ended the chat, or the server stops."""
        self.last_at: float | None = None
        """When the last message arrived or became final, by trio's clock."""
        self._kept: dict[int, Arrival] = {}
        self._over: dict[int, str] = {}
        self._uncounted = 0

    def ready(self, ref: str | None = None) -> list[Arrival]:
        """The final messages (of one chat), oldest arrival first."""
        return [a for a in self._kept.values() if not a.live and ref in (None, a.chat.ref)]

    def live(self, ref: str | None = None) -> int:
        """How many messages are still being typed."""
        return len(self.live_numbers(ref))

    def live_numbers(self, ref: str | None = None) -> set[int]:
        """The numbers of the messages that are still being typed."""
        return {number for number, a in self._kept.items() if a.live and ref in (None, a.chat.ref)}

    def overflow(self, ref: str | None = None) -> int:
        """How many messages came when it was full."""
        return self._uncounted + sum(ref in (None, chat) for chat in self._over.values())

    def numbers(self, ref: str) -> set[int]:
        """The numbers of all messages of a chat that arrived: final, still typed, and those that it did not keep."""
        kept = {number for number, a in self._kept.items() if a.chat.ref == ref}
        return kept | {number for number, chat in self._over.items() if chat == ref}

    def add(self, chat: Chat, item: dict[str, Any]) -> None:
        """Take a received message, or its new state when it is known; others are ignored."""
        number = messages.item_id(item)
        if number is None or number <= self.floor or not messages.is_received(item):
            return
        known = self._kept.get(number)
        if known is None and len(self._kept) >= CAPACITY:
            self._leave_out(number, chat.ref)
            return
        arrival = Arrival(chat, item)
        self._kept[number] = arrival
        if known is None or (known.live and not arrival.live):
            self.last_at = trio.current_time()
        self.touch()

    def _leave_out(self, number: int, ref: str) -> None:
        if number not in self._over:
            if len(self._over) < _COUNTED:
                self._over[number] = ref
            else:
                self._uncounted += 1
            self.touch()

    def update(self, chat: Chat, item: dict[str, Any]) -> None:
        """An edit or the next state of a live message. One of a message that is not known is a new message
        when it is unread: so the core delivers the edit of a message that never came."""
        if messages.item_id(item) in self._kept or messages.is_unread(item):
            self.add(chat, item)

    def replace(self, chat: Chat, item: dict[str, Any]) -> None:
        """The new state of a message when it is known."""
        if messages.item_id(item) in self._kept:
            self.add(chat, item)

    def merge(self, chat: Chat, items: Iterable[dict[str, Any]]) -> None:
        """Messages as the chat has them, in its order: they come before what is not among them."""
        arrived = list(self._kept.values())
        self._kept = {}
        for item in items:
            self.add(chat, item)
        for arrival in arrived:
            if messages.item_id(arrival.item) not in self._kept:
                self.add(arrival.chat, arrival.item)

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget messages: deleted for good, or given to the agent by another call."""
        before = len(self._kept)
        for number in numbers:
            self._kept.pop(number, None)
        if len(self._kept) != before:
            self.touch()

    def start_after(self, number: int) -> None:
        """Only messages after item `number` count: drop those up to it, also later."""
        self.floor = number
        self.drop([known for known in self._kept if known <= number])

    def end(self, *, gone: bool = False) -> None:
        """Nothing more will come."""
        self.ended = True
        self.gone = self.gone or gone
        self.touch()

    def reread(self) -> None:
        """The link is there again."""
        self.gap = True
        self.touch()


@dataclass(frozen=True, slots=True)
class Join:
    """One sign of a new connection: the event's tag, the chat as it is now, the connection's number, and for
    a business the contact that the chat replaces."""

    tag: str
    chat: Chat
    connection: int | None = None
    replaces: int | None = None


@final
class Joins(_Changing):
    """Signs of new connections since it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Join] = []
        self.gap = False
        """The link was lost and is there again: signs may be missing."""

    def add(self, join: Join) -> None:
        """Take a sign."""
        if len(self.seen) < _JOINS:
            self.seen.append(join)
        self.touch()

    def found(self, chat: Chat, connection: int | None) -> None:
        """A chat as it was read after a gap: a sign as its event would have been."""
        tag = "contactConnected" if chat.ref.startswith("@") else "userJoinedGroup"
        self.add(Join(tag, chat, connection))

    def reread(self) -> None:
        """The link is there again."""
        self.gap = True
        self.touch()


@final
class Watch:
    """Hands events to the open inboxes."""

    def __init__(self) -> None:
        self.user_id: int | None = None
        """The agent's user, once known: what other profiles of the same core get is none of the agent's
        business."""
        self._inboxes: list[Inbox] = []
        self._joins: list[Joins] = []
        self._stopped = False
        self._handlers: dict[str, Callable[[Event], None]] = {
            "newChatItems": self._new_items,
            "chatItemUpdated": self._updated,
            "chatItemsDeleted": self._deleted,
            "groupChatItemsDeleted": self._deleted_numbers,
            "contactConnecting": self._contact,
            "contactSndReady": self._contact,
            "contactConnected": self._contact,
            "groupLinkConnecting": self._group,
            "businessLinkConnecting": self._group,
            "userJoinedGroup": self._group,
            "contactDeletedByContact": self._contact_ended,
            "deletedMemberUser": self._group_ended,
            "groupDeleted": self._group_ended,
            LINK_UP: self._link_up,
        }

    def on_event(self, event: Event) -> None:
        """Take one event of the core; unknown and damaged ones are ignored. Never blocks."""
        handler = self._handlers.get(event.get("type", ""))
        if handler is not None and self._is_ours(event):
            handler(event)

    @contextmanager
    def collect(self, ref: str | None) -> Generator[Inbox]:
        """An inbox for the messages of chat `ref` that arrive from now on; None: of every chat but the
        control chat."""
        inbox = Inbox(ref)
        inbox.ended = self._stopped
        self._inboxes.append(inbox)
        try:
            yield inbox
        finally:
            self._inboxes.remove(inbox)

    @contextmanager
    def joins(self) -> Generator[Joins]:
        """The signs of new connections from now on."""
        joins = Joins()
        self._joins.append(joins)
        try:
            yield joins
        finally:
            self._joins.remove(joins)

    def given(self, numbers: Iterable[int], but: Inbox | None = None) -> None:
        """A call gives these messages to the agent: no other inbox than `but` gives them again."""
        taken = list(numbers)
        for inbox in self._inboxes:
            if inbox is not but:
                inbox.drop(taken)

    def stop(self) -> None:
        """The server stops: every wait ends, and what was collected is its result."""
        self._stopped = True
        for inbox in self._inboxes:
            inbox.end()

    def chat_gone(self, base: str) -> None:
        """The chat `base` (`#15`) was left or deleted: the waits for it end, its messages are forgotten."""
        for inbox in self._inboxes:
            gone = [a for a in inbox.ready() if a.chat.base == base]
            inbox.drop([number for a in gone if (number := messages.item_id(a.item)) is not None])
            if inbox.ref is not None and inbox.ref.partition("(")[0] == base:
                inbox.end(gone=True)

    def _is_ours(self, event: Event) -> bool:
        if self.user_id is None or not isinstance(user := event.get("user"), dict):
            return True
        return user.get("userId") == self.user_id

    def _listening(self, chat_info: Any) -> tuple[Chat, list[Inbox]] | None:
        chat = chat_of(chat_info) if self._inboxes else None
        if chat is None or chat.is_control:
            return None
        return chat, [inbox for inbox in self._inboxes if inbox.ref in (None, chat.ref)]

    def _new_items(self, event: Event) -> None:
        for entry in _objects(event.get("chatItems")):
            if found := self._listening(entry.get("chatInfo")):
                for inbox in found[1]:
                    inbox.add(found[0], _object(entry.get("chatItem")))

    def _updated(self, event: Event) -> None:
        entry = _object(event.get("chatItem"))
        if found := self._listening(entry.get("chatInfo")):
            for inbox in found[1]:
                inbox.update(found[0], _object(entry.get("chatItem")))

    def _deleted(self, event: Event) -> None:
        for deletion in _objects(event.get("chatItemDeletions")):
            marked, gone = _object(deletion.get("toChatItem")), _object(deletion.get("deletedChatItem"))
            number = messages.item_id(_object((marked or gone).get("chatItem")))
            if number is None:
                continue
            if not marked:
                self.given([number])
            elif found := self._listening(marked.get("chatInfo")):
                for inbox in found[1]:
                    inbox.replace(found[0], _object(marked.get("chatItem")))

    def _deleted_numbers(self, event: Event) -> None:
        numbers = event.get("chatItemIDs")
        if isinstance(numbers, list):
            self.given([number for number in numbers if isinstance(number, int)])

    def _contact(self, event: Event) -> None:
        chat = chat_of_contact(event.get("contact"))
        connection = _object(_object(event.get("contact")).get("activeConn")).get("connId")
        self._join(event, chat, connection, None)

    def _group(self, event: Event) -> None:
        chat = chat_of_group(event.get("groupInfo"))
        connection = _object(_object(event.get("hostMember")).get("activeConn")).get("connId")
        self._join(event, chat, connection, _object(event.get("fromContact")).get("contactId"))

    def _join(self, event: Event, chat: Chat | None, connection: Any, replaces: Any) -> None:
        if chat is None or chat.is_control:
            return
        join = Join(
            event["type"],
            chat,
            connection if isinstance(connection, int) else None,
            replaces if isinstance(replaces, int) else None,
        )
        for joins in self._joins:
            joins.add(join)

    def _contact_ended(self, event: Event) -> None:
        self._end_waits(chat_of_contact(event.get("contact")))

    def _group_ended(self, event: Event) -> None:
        self._end_waits(chat_of_group(event.get("groupInfo")))

    def _end_waits(self, chat: Chat | None) -> None:
        """The other side ended a chat; its messages stay, to be read."""
        for inbox in self._inboxes:
            if chat is not None and inbox.ref is not None and inbox.ref.partition("(")[0] == chat.ref:
                inbox.end()

    def _link_up(self, _: Event) -> None:
        for inbox in self._inboxes:
            inbox.reread()
        for joins in self._joins:
            joins.reread()


def changes_in(event: Event) -> list[tuple[int, dict[str, Any] | None]]:
    """The messages that an event changes, by number, with their new state; None for one that is deleted for
    good."""
    if event.get("type") == "chatItemUpdated":
        item = _object(_object(event.get("chatItem")).get("chatItem"))
        return [] if (number := messages.item_id(item)) is None else [(number, item)]
    if event.get("type") != "chatItemsDeleted":
        return []
    changes: list[tuple[int, dict[str, Any] | None]] = []
    for deletion in _objects(event.get("chatItemDeletions")):
        marked, gone = _object(deletion.get("toChatItem")), _object(deletion.get("deletedChatItem"))
        item = _object((marked or gone).get("chatItem"))
        if (number := messages.item_id(item)) is not None:
            changes.append((number, item if marked else None))
    return changes


def _object(node: Any) -> dict[str, Any]:
    return node if isinstance(node, dict) else {}


def _objects(node: Any) -> list[dict[str, Any]]:
    return [entry for entry in node if isinstance(entry, dict)] if isinstance(node, list) else []
