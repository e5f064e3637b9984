"""Collecting what arrives while somebody waits.

One event pump feeds `Watch.on_event`; it fills the open inboxes (`inbox`), and `Joins` keeps what is seen of new
connections. All only collect; reading and marking is the caller's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp import messages
from simplexmcp.chats import chat_of, chat_of_contact, chat_of_group
from simplexmcp.core.link import LINK_UP
from simplexmcp.inbox import Changing, Inbox

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from simplexmcp.chats import Chat
    from simplexmcp.core.link import Event

__all__ = ["Join", "Joins", "Watch", "changes_in"]

_JOINS = 1000


@dataclass(frozen=True, slots=True)
class Join:
    """One sign of a new connection: the event's tag, the chat as it is now, the connection's number, and for
    a business the contact that the chat replaces."""

    tag: str
    chat: Chat
    connection: int | None = None
    replaces: int | None = None


@final
class Joins(Changing):
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
        self._inboxes: dict[str | None, list[Inbox]] = {}  # by chat: thousands may wait, each for its own
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
        same = self._inboxes.setdefault(ref, [])
        same.append(inbox)
        try:
            yield inbox
        finally:
            same.remove(inbox)
            if not same and self._inboxes.get(ref) is same:
                del self._inboxes[ref]

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
        for inbox in self._open():
            if inbox is not but:
                inbox.drop(taken)

    def stop(self) -> None:
        """The server stops: every wait ends, and what was collected is its result."""
        self._stopped = True
        for inbox in self._open():
            inbox.end()

    def chat_gone(self, base: str) -> None:
        """The chat `base` (`#15`) was left or deleted: the waits for it end, its messages are forgotten."""
        for inbox in self._open():
            inbox.forget(base)
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
        return chat, [*self._inboxes.get(None, ()), *self._inboxes.get(chat.ref, ())]

    def _open(self) -> list[Inbox]:
        return [inbox for same in self._inboxes.values() for inbox in same]

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
        for inbox in self._open():
            if chat is not None and inbox.ref is not None and inbox.ref.partition("(")[0] == chat.ref:
                inbox.end()

    def _link_up(self, _: Event) -> None:
        for inbox in self._open():
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
