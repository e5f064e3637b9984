"""An inbox: the messages of one chat, or of all, from the moment it was opened.

A number is never given twice, so a message that is seen again (event, reading after a lost link) is one message; and
nothing is given while an earlier message may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simplexmcp.chats import Chat

__all__ = ["CAPACITY", "Arrival", "Changing", "Inbox"]

CAPACITY = 100
"""Messages that an inbox keeps; later ones are counted."""

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


class Changing:
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
class Inbox(Changing):
    """Messages that arrived since it was opened, in the order of their arrival."""

    def __init__(self, ref: str | None) -> None:
        super().__init__()
        self.ref = ref
        self.floor = 0
        self.gap = False
        """The link was lost and is there again: what arrived meanwhile must be read from the chat, then set
        False."""
        self._blind = False
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
        """The final messages (of one chat), oldest arrival first. None while earlier ones may be missing: what is given
        before them would come out of order."""
        if self.gap or self._blind:
            return []
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

    def forget(self, base: str) -> None:
        """The chat `base` went: its messages are nobody's any more."""
        self.drop([number for number, a in self._kept.items() if not a.live and a.chat.base == base])

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
        self.gap, self._blind = True, False
        self.touch()

    def unread(self) -> None:
        """The reading of a gap failed with the link: the gap stays until the link's next return."""
        self._blind = not self.gap
