"""One message of a chat, read by its number: what is quoted, and whose file is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.core.api import around, before, count
from simplexmcp.errors import CoreError, Refused

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.tools.kit import Kit

__all__ = ["item_of"]


async def item_of(kit: Kit, chat: Chat, number: int) -> dict[str, Any]:
    """Item `number` of exactly this conversation. Raises Refused when it is none, CoreError."""
    absent = Refused(f"Item {number} is no message of {chat.ref}; use history to find the message.")
    try:
        found = (await kit.api.get_chat(chat.ref, around(number, 1 if chat.is_group else 0)))["chatItems"]
    except CoreError as error:
        if error.tag == "errorStore/chatItemNotFound":
            raise absent from None
        raise
    place = next((i for i, item in enumerate(found) if messages.item_id(item) == number), None)
    if place is None or not (not chat.is_group or await _is_of(kit, chat, number, found[place + 1 :])):
        raise absent
    item: dict[str, Any] = found[place]
    return item


async def _is_of(kit: Kit, chat: Chat, number: int, following: list[dict[str, Any]]) -> bool:
    """Whether a group's item belongs to this conversation: the core finds an item of any of its scopes, but
    its neighbours are of the one that was asked. Else a private message could be quoted to the whole
    group."""
    following_id = messages.item_id(following[0]) if following else None
    page = count(1) if following_id is None else before(following_id, 1)
    items = (await kit.api.get_chat(chat.ref, page))["chatItems"]
    return bool(items) and messages.item_id(items[-1]) == number
