"""Posting: one transaction from the author's right to post to the number of the message.

A message is sent once: the same key with the same payload finds the first copy. A post may be made to depend on what
its author has read; then it is refused when there is more, and says what that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import units
from simplexmcp.rooms.store.members import membership, move_marker, presence
from simplexmcp.rooms.store.messages import crossed_page
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.store.unread import directed_count, latest_seq, oldest_seq, unread_count

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["Crossed", "Draft", "Duplicate", "Posted", "Pruned", "Stale", "insert", "post"]

_REFUSAL_PREVIEW = 300


class Draft(NamedTuple):
    """A message as it will be stored. `mentions`: a JSON list, or None; `key`: what makes a retry the same message."""

    format: str
    body: str
    priority: bool = False
    mentions: str | None = None
    reply_to: int | None = None
    supersedes: int | None = None
    key: str | None = None


class Crossed(NamedTuple):
    """What others wrote above a marker: how many, directed at the author, first and last number, and previews of the
    oldest (None when not asked for) with how many more there are."""

    total: int
    directed: int
    first: int | None
    last: int | None
    messages: list[dict[str, Any]] | None = None
    remaining: int = 0


class Posted(NamedTuple):
    """The message is stored. `recipients`: each mentioned ID with its presence, None for who never joined."""

    seq: int
    crossed: Crossed
    recipients: list[tuple[str, dict[str, Any] | None]]


class Duplicate(NamedTuple):
    """The key was used for the same message before: its number."""

    seq: int


class Stale(NamedTuple):
    """Nothing was stored: others wrote above the number that the post depends on."""

    crossed: Crossed


class Pruned(NamedTuple):
    """Nothing was stored: messages above the number that the post depends on are gone. The oldest one kept."""

    oldest: int


def post(
    db: Database,
    binding: Binding,
    room: sqlite3.Row,
    draft: Draft,
    *,
    to: list[str],
    read_upto: int | None,
    preview_chars: int | None,
) -> Posted | Duplicate | Stale | Pruned:
    """Posts a message, if nobody wrote above `read_upto` (None: in any case). Raises RoomsError and PersonaLost."""
    room_id, author = room["id"], binding.agent_id
    with db.write():
        check_epoch(db, binding)
        marker: int = membership(db, room, author, present=True)["last_read_seq"]
        if draft.key is not None and (earlier := _earlier(db, room_id, author, draft)) is not None:
            return Duplicate(earlier)
        if read_upto is not None and (refusal := _refusal(db, room_id, author, marker, read_upto, preview_chars)):
            return refusal
        crossed = _crossed(db, room_id, author, marker, preview_chars)
        seq = insert(db, room_id, author, draft, advance=crossed.total == 0)
        return Posted(seq, crossed, [(agent_id, presence(db, room_id, agent_id)) for agent_id in to])


def insert(db: Database, room_id: int, author: str, draft: Draft, *, advance: bool) -> int:
    """Inside a transaction: stores a message under the next number, which becomes read for its author when `advance`.
    Raises RoomsError when what it answers or supersedes is not there."""
    reply_to_agent = None if draft.reply_to is None else _parent_author(db, room_id, draft.reply_to)
    if draft.supersedes is not None:
        _check_superseded(db, room_id, author, draft.supersedes)
    seq = latest_seq(db, room_id) + 1
    db.run(
        "INSERT INTO messages (room_id, seq, agent_id, format, priority, body, body_len, mentions, reply_to_seq,"
        " reply_to_agent, supersedes_seq, client_message_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        room_id,
        seq,
        author,
        draft.format,
        int(draft.priority),
        draft.body,
        units(draft.body),
        draft.mentions,
        draft.reply_to,
        reply_to_agent,
        draft.supersedes,
        draft.key,
    )
    if advance:
        move_marker(db, room_id, author, seq)
    return seq


def _earlier(db: Database, room_id: int, author: str, draft: Draft) -> int | None:
    row = db.one(
        "SELECT seq, format, priority, body, mentions, reply_to_seq, supersedes_seq FROM messages"
        " WHERE room_id = ? AND agent_id = ? AND client_message_id = ?",
        room_id,
        author,
        draft.key,
    )
    if row is None:
        return None
    stored = Draft(
        format=row["format"],
        body=row["body"],
        priority=bool(row["priority"]),
        mentions=row["mentions"],
        reply_to=row["reply_to_seq"],
        supersedes=row["supersedes_seq"],
        key=draft.key,
    )
    seq: int = row["seq"]
    if stored != draft:
        raise RoomsError(
            f'client_message_id "{draft.key}" belongs to your message {seq}, which has a different stored payload. '
            "Nothing was posted. Take a new client_message_id for a new message."
        )
    return seq


def _refusal(
    db: Database, room_id: int, author: str, marker: int, read_upto: int, preview_chars: int | None
) -> Stale | Pruned | None:
    if read_upto > marker:
        raise RoomsError(
            f"if_last_read_seq {read_upto} is ahead of the current read marker {marker}. Call catch_up and use the "
            "new_last_read_seq that it returns."
        )
    oldest = oldest_seq(db, room_id)
    if read_upto < oldest - 1:
        return Pruned(oldest)
    crossed = _crossed(db, room_id, author, read_upto, preview_chars or _REFUSAL_PREVIEW)
    return Stale(crossed) if crossed.total else None


def _crossed(db: Database, room_id: int, author: str, marker: int, preview_chars: int | None) -> Crossed:
    count = unread_count(db, room_id, author, marker)
    if count == 0:
        return Crossed(0, 0, None, None)
    edge = "SELECT seq FROM messages WHERE room_id = ? AND seq > ? AND agent_id <> ? ORDER BY seq {} LIMIT 1"
    first = db.value(edge.format("ASC"), room_id, marker, author)
    last = db.value(edge.format("DESC"), room_id, marker, author)
    directed = directed_count(db, room_id, author, marker)
    if preview_chars is None:
        return Crossed(count, directed, first, last)
    messages, remaining = crossed_page(db, room_id, author, marker, preview_chars)
    return Crossed(count, directed, first, last, messages, remaining)


def _parent_author(db: Database, room_id: int, seq: int) -> str:
    author: str | None = db.value("SELECT agent_id FROM messages WHERE room_id = ? AND seq = ?", room_id, seq)
    if author is None:
        raise RoomsError(f"reply_to_seq {seq} does not exist in this room. Nothing was posted.")
    return author


def _check_superseded(db: Database, room_id: int, author: str, seq: int) -> None:
    writer = db.value("SELECT agent_id FROM messages WHERE room_id = ? AND seq = ?", room_id, seq)
    if writer is None:
        raise RoomsError(f"supersedes_seq {seq} does not exist in this room. Nothing was posted.")
    if writer != author:
        raise RoomsError(
            f"supersedes_seq: message {seq} is another's; you can only supersede your own. Nothing was posted."
        )
