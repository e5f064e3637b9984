"""The files that an owner rejected: each gets a card again, also under an approval of files and after a restart.

They are kept in the audit log, where each decision is written anyway. A chat's number is given to another chat after a
deletion, so the time of the chat's creation is kept with it; its name is not, since its members change that at will.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simplexmcp.chats import Chat

__all__ = ["RejectedFiles"]

_REMEMBERED = 1000


@final
class RejectedFiles:
    """The newest 1000 rejected files, of this run and of earlier ones."""

    def __init__(self, entries: Iterable[dict[str, Any]] = ()) -> None:
        """`entries` are those of the audit log, oldest first."""
        self._known: OrderedDict[tuple[str, str, int], None] = OrderedDict()
        for entry in entries:
            if entry.get("event") == "decided" and entry.get("decision") == "rejected":
                chat, created, item = entry.get("chat"), entry.get("chat_created"), entry.get("item")
                if isinstance(chat, str) and isinstance(created, str) and isinstance(item, int):
                    self._remember((chat, created, item))

    def add(self, chat: Chat, item: int) -> dict[str, Any]:
        """The file of an item was rejected; the fields that the audit log has to keep with the decision."""
        key = _key(chat, item)
        self._remember(key)
        return dict(zip(("chat", "chat_created", "item"), key, strict=True))

    def holds(self, chat: Chat, item: int) -> bool:
        """Whether the file of an item was rejected."""
        return _key(chat, item) in self._known

    def _remember(self, key: tuple[str, str, int]) -> None:
        self._known[key] = None
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _key(chat: Chat, item: int) -> tuple[str, str, int]:
    # An item has one number in a group and in its conversations with the admins.
    return (chat.base, str(chat.info.get("createdAt") or ""), item)
