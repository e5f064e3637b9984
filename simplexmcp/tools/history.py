"""`history`: messages of a chat, read or not; marks nothing."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.core.api import before, count
from simplexmcp.errors import CoreError, Refused
from simplexmcp.tooling import ToolResult

if TYPE_CHECKING:
    from simplexmcp.action import Progress
    from simplexmcp.tools.arguments import History
    from simplexmcp.tools.kit import Kit

__all__ = ["history"]

_PAGE = 100
_PAGES = 20


async def history(kit: Kit, arguments: History, _call: Progress) -> ToolResult:
    """A page of messages, oldest first, that ends with the newest or before an item; `more` is 0 at the
    chat's beginning. Raises Refused, CoreError."""
    search = _search(arguments.search)
    chat = await kit.chat(arguments.chat)
    try:
        found, start = await _read(kit, chat.ref, arguments.before, search, arguments.limit)
    except CoreError as error:
        if error.tag == "errorStore/chatItemNotFound" and arguments.before is not None:
            raise Refused(f"Item {arguments.before} is not in {chat.ref}.") from None
        raise
    shown = [entry for item in found if (entry := kit.shown(chat, item)) is not None]
    # The newest are kept: the next page ends before the oldest that is shown.
    kept = messages.fitting(shown[::-1], arguments.limit)[::-1]
    more = len(shown) - len(kept) + (0 if start else 1)
    return ToolResult({"chat": chat.ref, "messages": kept, "more": more})


async def _read(
    kit: Kit, ref: str, end: int | None, search: str | None, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """At least `limit` messages before item `end`, when there are so many, and whether the beginning was
    reached."""
    found: list[dict[str, Any]] = []
    for _ in range(_PAGES):
        page = count(_PAGE) if end is None else before(end, _PAGE)
        items: list[dict[str, Any]] = (await kit.api.get_chat(ref, page, search))["chatItems"]
        found = [item for item in items if messages.is_message(item)] + found
        first = messages.item_id(items[0]) if items else None
        if len(items) < _PAGE or first is None:
            return found, True
        if len(found) > limit:
            return found, False
        end = first
    return found, False


def _search(text: str | None) -> str | None:
    if text is None:
        return None
    if any(unicodedata.category(char) == "Cc" for char in text) or not text.strip():
        raise Refused("`search` must be one line of text.")
    return text.strip()
