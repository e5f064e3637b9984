"""What every tool works with, and the two things they share: reading a chat for use, and giving messages
once.

A message is marked read in the core before its result is written, since the agent is to find it unread until
then and never after. Between the two it lies on the shelf: a result that does not reach the client is given
again by the next `receive`.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from simplexmcp import messages
from simplexmcp.chats import Chat, chat_of, is_ref
from simplexmcp.core.api import count
from simplexmcp.errors import CoreError, Refused
from simplexmcp.inbox import Arrival
from simplexmcp.tools.lanes import Lanes
from simplexmcp.tools.trouble import GONE_TAGS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from simplexmcp.actions import Actions
    from simplexmcp.clock import Clock
    from simplexmcp.core.api import ChatApi
    from simplexmcp.files.folders import Kept
    from simplexmcp.files.room import FileRoom
    from simplexmcp.inbox import Inbox
    from simplexmcp.watch import Watch

__all__ = ["ALL_CHATS", "Kit", "Shelf"]

ALL_CHATS = 5000
"""Chats that are looked at, the ones that changed last."""

_GIVEN = 10_000
_CANDIDATES = 10


@final
class Shelf:
    """Messages that were marked read and did not reach the agent yet, and the numbers of those that did
    lately."""

    def __init__(self) -> None:
        self._held: dict[int, Arrival] = {}
        self._busy: set[int] = set()
        self._given: OrderedDict[int, None] = OrderedDict()

    @contextmanager
    def lent(self, arrivals: Iterable[Arrival]) -> Generator[None]:
        """Hold messages that a call is about to give; until it ends, no other call gets them from here."""
        mine = {number: a for a in arrivals if (number := messages.item_id(a.item)) is not None}
        self._held |= mine
        self._busy |= mine.keys()
        try:
            yield
        finally:
            self._busy -= mine.keys()

    def held(self, ref: str | None = None) -> list[Arrival]:
        """What a call (for chat `ref`) gives first: messages whose result was lost, oldest first."""
        return [a for number, a in self._held.items() if number not in self._busy and ref in (None, a.chat.ref)]

    def is_taken(self, number: int) -> bool:
        """True for a message that another call gives, gave, or that lies here."""
        return number in self._held or number in self._given

    def given(self, numbers: Iterable[int]) -> None:
        """These reached the agent."""
        for number in numbers:
            self._held.pop(number, None)
            self._given[number] = None
        while len(self._given) > _GIVEN:
            self._given.popitem(last=False)

    def changed(self, number: int, item: dict[str, Any] | None) -> None:
        """A message was edited, or deleted for good (None), before it reached the agent."""
        if (held := self._held.get(number)) is not None:
            if item is None:
                del self._held[number]
            else:
                self._held[number] = Arrival(held.chat, item)

    def chat_gone(self, base: str) -> None:
        """The chat `base` (`#15`) went: its number may be another's."""
        for number in [number for number, a in self._held.items() if a.chat.base == base]:
            del self._held[number]


@dataclass(frozen=True)
class Kit:
    """The doors that the tools use."""

    api: ChatApi
    actions: Actions
    watch: Watch
    clock: Clock
    files: FileRoom
    shelf: Shelf = field(default_factory=Shelf)
    lanes: Lanes = field(default_factory=Lanes)

    async def chat(self, ref: str) -> Chat:
        """The chat `ref` as it is now. Raises Refused for a name, an unknown chat and the control chat."""
        if not is_ref(ref):
            raise Refused(await self._not_a_ref(ref))
        try:
            read = await self.api.get_chat(ref, count(0))
        except CoreError as error:
            if error.tag in GONE_TAGS:
                raise Refused(f"There is no chat {ref}; call list to see the chats.") from None
            raise
        return self.checked(ref, read)

    def checked(self, ref: str, read: dict[str, Any]) -> Chat:
        """The chat of what `get_chat` read. Raises Refused for the control chat."""
        chat = chat_of(read.get("chatInfo"))
        if chat is None:
            raise Refused(f"The chat {ref} cannot be read.")
        if chat.is_control:
            raise Refused(f"{ref} is the chat of your owners, which no tool can use; call list to see your chats.")
        self.files.arrived(chat)
        return chat if chat.ref == ref else dataclasses.replace(chat, ref=ref)

    def shown(self, chat: Chat, item: Any) -> dict[str, Any] | None:
        """An item as the agent reads it, with the path of its file when that was downloaded; None for what is no
        message."""
        return messages.message(chat, item, self.files.downloads)

    async def give(
        self, ref: str, arrivals: Sequence[Arrival], others: Iterable[int] = (), keep: Inbox | None = None
    ) -> list[int]:
        """Mark messages, and `others`, read, to give them in a result: their numbers, for `gave` when it was
        delivered. No inbox but `keep` gives them from now on."""
        numbers = [number for a in arrivals if (number := messages.item_id(a.item)) is not None]
        with self.shelf.lent(arrivals):
            self.watch.given(numbers, but=keep)
            await self.api.read_items(ref, [*numbers, *others])
        return numbers

    def gave(self, numbers: Iterable[int]) -> None:
        """A result with these messages reached the agent."""
        self.shelf.given(numbers)

    def chat_gone(self, chat: Chat) -> Kept:
        """A chat was left or deleted: nothing of it is kept for the chat that gets its number. The files that stay."""
        self.shelf.chat_gone(chat.base)
        self.watch.chat_gone(chat.base)
        return self.files.left(chat)

    async def _not_a_ref(self, text: str) -> str:
        shown = messages.shown_name(text)[:60]
        wanted = text.strip().lstrip("@#").casefold()
        fits: list[str] = []
        for entry in await self.api.list_chats(ALL_CHATS):
            chat = chat_of(entry.get("chatInfo"))
            if chat and not chat.is_control and chat.state != "card" and wanted and wanted in chat.name.casefold():
                fits.append(f"{chat.ref} ({chat.kind} {messages.shown_name(chat.name)})")
        if not fits:
            return f'"{shown}" is no chat ID, and no chat has such a name; call list to see the chats.'
        more = f" and {len(fits) - _CANDIDATES} more" if len(fits) > _CANDIDATES else ""
        return f'"{shown}" is a name, not a chat ID; use one of {", ".join(fits[:_CANDIDATES])}{more}.'
