"""A message with what it answers and what answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import size
from simplexmcp.rooms.pages import DEFAULT_BUDGET, FLOOR, Page, fill, remainder, shrink
from simplexmcp.rooms.store.messages import drafts, fetch, fetch_each
from simplexmcp.rooms.store.personas import disclosure

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["get_thread"]

_MOST_REPLIES = 500
# Children of the message that was taken last come first, so that each answer stands below what it answers.
_TREE = """WITH RECURSIVE tree(id, seq, depth) AS (
  SELECT id, seq, 1 FROM messages WHERE room_id = ?1 AND reply_to_seq = ?2
  UNION ALL
  SELECT m.id, m.seq, tree.depth + 1 FROM tree CROSS JOIN messages m ON m.room_id = ?1 AND m.reply_to_seq = tree.seq
  WHERE tree.depth < ?3
  ORDER BY 3 DESC, 2
) SELECT id, depth FROM tree LIMIT ?4"""


def get_thread(
    db: Database, binding: Binding, room: sqlite3.Row, seq: int, max_depth: int, preview: int | None
) -> dict[str, Any]:
    """The message, its parent and up to 500 replies, in one budget. Raises RoomsError: there is no such message."""
    with db.snapshot():
        lost = disclosure(db, binding)
        fixed = {**lost, "message": None, "parent": None, "replies": [], "replies_capped": False, "byte_limited": True}
        left = remainder(DEFAULT_BUDGET, fixed)
        message = _one(db, room["id"], seq, left - FLOOR)
        if message is None:
            raise RoomsError(f'There is no message {seq} in room "{room["name"]}". read_history shows what there is.')
        left -= size(message)
        parent = None
        if message["reply_to"] is not None:
            parent = _one(db, room["id"], message["reply_to"]["seq"], max(left - FLOOR - 2, FLOOR))
            left -= size(parent)
        tree = db.all(_TREE, room["id"], seq, max_depth, _MOST_REPLIES + 1)
        replies = _replies(db, tree[:_MOST_REPLIES], left, preview)
        return {
            **lost,
            "message": message,
            "parent": parent,
            "replies": replies.messages,
            "replies_capped": len(tree) > _MOST_REPLIES,
            **({"byte_limited": True} if replies.byte_limited else {}),
        }


def _one(db: Database, room_id: int, seq: int, budget: int) -> dict[str, Any] | None:
    """The message whole, if it fits the budget; else cut so far that a tenth is left for what stands around it."""
    rows = fetch(db, "WHERE m.room_id = ?2 AND m.seq = ?3", room_id, seq, budget=budget).rows
    if not rows:
        return None
    draft = drafts(db, rows)[0]
    return draft.message if size(draft.message) <= budget else shrink(draft, max(budget * 9 // 10, FLOOR))


def _replies(db: Database, tree: list[sqlite3.Row], left: int, preview: int | None) -> Page:
    if left < FLOOR + 2:
        return Page([], byte_limited=bool(tree), used=2)
    fetched = fetch_each(db, [row["id"] for row in tree], budget=left, preview=preview)
    found = drafts(db, fetched.rows)
    for draft, row in zip(found, tree, strict=False):
        draft.message["depth"] = row["depth"]
    page = fill(found, left)
    return page._replace(byte_limited=page.byte_limited or fetched.cut)
