"""Reading what is unread in a chat, in pages, as far as it is wanted (flow 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.core.api import after, around, initial
from simplexmcp.errors import CoreError
from simplexmcp.inbox import Arrival

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.inbox import Inbox
    from simplexmcp.tools.kit import Kit

__all__ = ["Unread", "read_unread"]

_PAGE = 100
_TRIES = 3


@dataclass
class Unread:
    """What was found: final messages in the chat's order, the numbers of live ones and of service items, and
    how many unread items lie beyond the pages that were read."""

    chat: Chat
    found: list[Arrival] = field(default_factory=list)
    live: set[int] = field(default_factory=set)
    service: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    beyond: int = 0
    counted: set[int] = field(default_factory=set)

    def take(self, items: list[dict[str, Any]]) -> None:
        """Sort the items of a page."""
        for item in items:
            number = messages.item_id(item)
            if number is None or number in self.seen or not messages.is_unread(item):
                continue
            self.seen.add(number)
            if not messages.is_received(item):
                self.service.append(number)
            elif messages.is_live(item):
                self.live.add(number)
            else:
                self.found.append(Arrival(self.chat, item))


async def read_unread(kit: Kit, ref: str, want: int, inbox: Inbox | None = None) -> Unread:
    """The unread items of chat `ref`, until `want` final messages are found; `inbox` collects beside. Marks
    nothing. Raises Refused for the control chat, CoreError."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return await _read(kit, ref, want, inbox)
        except CoreError as error:
            # An item that a page starts from was deleted in between: begin again.
            if error.tag != "errorStore/chatItemNotFound" or not tries_left:
                raise
    raise AssertionError("unreachable")


async def _read(kit: Kit, ref: str, want: int, inbox: Inbox | None) -> Unread:
    first = await kit.api.get_chat(ref, initial(1))
    unread = Unread(kit.checked(ref, first))
    _, start = _stats(first)
    if not start:
        return unread
    page = await kit.api.get_chat(ref, around(start, 0))
    total, _ = _stats(page)
    arrived = inbox.numbers(ref) if inbox is not None else set()
    unread.take(page["chatItems"])
    last = start
    exhausted = False
    while len(unread.found) < want and not exhausted:
        page = await kit.api.get_chat(ref, after(last, _PAGE))
        items: list[dict[str, Any]] = page["chatItems"]
        unread.take(items)
        exhausted = len(items) < _PAGE
        if items:
            number = messages.item_id(items[-1])
            exhausted = exhausted or number is None
            last = number or last
    if not exhausted:
        unread.beyond, unread.counted = max(0, total - len(unread.seen)), arrived
    return unread


def _stats(chat: dict[str, Any]) -> tuple[int, int]:
    stats = chat.get("chatStats")
    if not isinstance(stats, dict):
        return 0, 0
    count, first = stats.get("unreadCount"), stats.get("minUnreadItemId")
    return (
        count if isinstance(count, int) else 0,
        first if isinstance(first, int) and isinstance(count, int) and count > 0 else 0,
    )
