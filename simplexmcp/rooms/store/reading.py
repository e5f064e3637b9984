"""Reading a room in order: `catch_up`, which moves the read marker, and what only looks.

The marker moves in the same transaction that reads the page, past what was delivered and one's own messages, never past
a message of somebody else that was not delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import PersonaLost, RoomsError
from simplexmcp.rooms.jsontext import size
from simplexmcp.rooms.pages import Page, fill, fit, remainder
from simplexmcp.rooms.store.members import membership, move_marker
from simplexmcp.rooms.store.messages import drafts, fetch
from simplexmcp.rooms.store.personas import check_epoch, disclosure
from simplexmcp.rooms.store.rooms import room_row
from simplexmcp.rooms.store.unread import directed_sql, latest_seq, needle, oldest_seq, rooms_with_unread, unread_count

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["Request", "by_urgency", "catch_up", "get_message", "has_news", "read_history"]

_LISTED_ROOMS = 20
_LONGEST_WAIT_MS = 999_999


class Request(NamedTuple):
    """What a page may hold: messages, code points of each body, units of the whole answer."""

    limit: int
    preview: int | None
    budget: int
    priority_only: bool = False


class _Step(NamedTuple):
    page: Page
    marker: int
    remaining: int
    more: dict[str, Any]


def catch_up(
    db: Database, binding: Binding, room_id: int, request: Request, *, waited_ms: int | None = None, last: bool = True
) -> dict[str, Any]:
    """The messages of others above the marker, which moves. `waited_ms`: since when a wait is open; `last`: an empty
    page is the answer, so it tells of the other rooms. Raises RoomsError and PersonaLost: nothing moved."""
    with db.write():
        check_epoch(db, binding)
        room = room_row(db, room_id)
        agent_id = binding.agent_id
        marker = membership(db, room, agent_id, present=True)["last_read_seq"]
        newest = latest_seq(db, room_id)
        head = {"agent_id": agent_id, "room_id": room_id, "room_name": room["name"]}
        left = remainder(request.budget, _widest(head, max(newest, marker), request, waited_ms is not None))
        step = (_triage if request.priority_only else _onward)(db, agent_id, room_id, marker, newest, request, left)
        if step.marker != marker:
            move_marker(db, room_id, agent_id, step.marker)
        result = {
            **head,
            "messages": step.page.messages,
            "new_last_read_seq": step.marker,
            "remaining": step.remaining,
            "advanced": step.marker != marker,
            **({"byte_limited": True} if step.page.byte_limited else {}),
            **step.more,
        }
        waited = {} if waited_ms is None else {"waited_ms": min(waited_ms, _LONGEST_WAIT_MS)}
        if step.page.messages or not last:
            return {**result, **waited}
        if waited_ms is not None:
            waited.update(timed_out=True, call_again=True)
        return {**result, **_other_rooms(db, agent_id, room_id, request.budget - size({**result, **waited})), **waited}


def has_news(db: Database, binding: Binding, room_id: int) -> bool:
    """Whether `catch_up` would find something. Reads only. Raises PersonaLost, and RoomsError when the room was deleted
    or left."""
    row = db.one(
        """SELECT (SELECT runtime_epoch FROM agents WHERE id = ?2) AS epoch,
          EXISTS (SELECT 1 FROM rooms WHERE id = ?1) AS there, m.agent_id IS NOT NULL AND m.left_at IS NULL AS present,
          EXISTS (SELECT 1 FROM messages WHERE room_id = ?1 AND seq > m.last_read_seq AND agent_id <> ?2) AS news
        FROM (SELECT 1) LEFT JOIN memberships m ON m.room_id = ?1 AND m.agent_id = ?2""",
        room_id,
        binding.agent_id,
    )
    assert row is not None
    if row["epoch"] != binding.epoch:
        raise PersonaLost(binding.agent_id, binding.epoch, row["epoch"])
    if not row["there"]:
        raise RoomsError(
            "The room was deleted while waiting. list_rooms shows the others, create_room makes a new one."
        )
    if not row["present"]:
        membership(db, room_row(db, room_id), binding.agent_id, present=True)
    return bool(row["news"])


def read_history(
    db: Database, binding: Binding, room_id: int, request: Request, before_seq: int | None
) -> dict[str, Any]:
    """The newest messages, or those before a number, oldest first."""
    with db.snapshot():
        lost = disclosure(db, binding)
        before = 2**53 if before_seq is None else before_seq
        fixed = {**lost, "messages": [], "oldest_seq": before, "has_more": False, "byte_limited": True}
        left = remainder(request.budget, fixed)
        fetched = fetch(
            db,
            "WHERE m.room_id = ?2 AND m.seq < ?3 ORDER BY m.seq DESC LIMIT ?4",
            *(room_id, before, request.limit),
            budget=left,
            preview=request.preview,
        )
        page = fill(drafts(db, fetched.rows), left)
        messages = page.messages[::-1]
        oldest = messages[0]["seq"] if messages else None
        return {
            **lost,
            "messages": messages,
            "oldest_seq": oldest,
            "has_more": oldest is not None and oldest > oldest_seq(db, room_id),
            **({"byte_limited": True} if page.byte_limited or fetched.cut else {}),
        }


def get_message(
    db: Database, binding: Binding, room: sqlite3.Row, seq: int, offset: int, max_chars: int
) -> dict[str, Any]:
    """One message, or the window of its text that starts at `offset` (code points). Raises RoomsError without one."""
    with db.snapshot():
        rows = fetch(db, "WHERE m.room_id = ?2 AND m.seq = ?3", room["id"], seq, budget=max_chars).rows
        if not rows:
            raise RoomsError(f'There is no message {seq} in room "{room["name"]}". read_history shows what there is.')
        draft = drafts(db, rows)[0]
        message = {**disclosure(db, binding), **draft.message}
        if offset == 0 and draft.length <= len(draft.body) and size(message["content"]) - 2 <= max_chars:
            return message
        part = db.value(
            "SELECT substr(body, ?, ?) FROM messages WHERE room_id = ? AND seq = ?",
            *(offset + 1, max_chars, room["id"], seq),
        )
        length = draft.length
        part = fit(part, max_chars)
        end = offset + len(part)
        return {
            **_before_length({**message, "content": part, "truncated": end < length}),
            "length": length,
            **{key: message[key] for key in ("supersedes", "superseded_by") if key in message},
            "offset": offset,
            "next_offset": end,
        }


def by_urgency(rooms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rooms with unread messages: most directed ones first, then most unread, then the oldest room."""
    return sorted(rooms, key=lambda room: (-room["directed"], -room["unread"], room["room_id"]))


def _onward(db: Database, agent_id: str, room_id: int, marker: int, newest: int, request: Request, left: int) -> _Step:
    fetched = fetch(
        db,
        "WHERE m.room_id = ?2 AND m.seq > ?3 AND m.agent_id <> ?4 ORDER BY m.seq LIMIT ?5",
        *(room_id, marker, agent_id, request.limit),
        budget=left,
        preview=request.preview,
    )
    page = fill(drafts(db, fetched.rows), left)
    last = page.messages[-1]["seq"] if page.messages else marker
    remaining = unread_count(db, room_id, agent_id, last)
    following = None
    if remaining:
        following = db.value(
            "SELECT seq FROM messages WHERE room_id = ? AND seq > ? AND agent_id <> ? ORDER BY seq LIMIT 1",
            *(room_id, last, agent_id),
        )
    reached = max(newest, marker) if following is None else following - 1
    return _Step(page._replace(byte_limited=page.byte_limited or fetched.cut), reached, remaining, {})


def _triage(db: Database, agent_id: str, room_id: int, marker: int, newest: int, request: Request, left: int) -> _Step:
    """Only what is marked or directed at the persona; the rest is passed over."""
    wanted = f"""m.room_id = ?2 AND m.seq > ?3 AND m.agent_id <> ?4
      AND (m.priority <> 0 OR {directed_sql("?4", "?5", "m")})"""
    fetched = fetch(
        db,
        f"WHERE {wanted} ORDER BY m.seq LIMIT ?6",
        *(room_id, marker, agent_id, needle(agent_id), request.limit),
        budget=left,
        preview=request.preview,
    )
    page = fill(drafts(db, fetched.rows), left)
    last = page.messages[-1]["seq"] if page.messages else marker
    more = len(page.messages) < len(fetched.rows) or fetched.cut or len(fetched.rows) == request.limit
    qualifying = 0
    if more:
        qualifying = db.value(
            f"SELECT count(*) FROM messages m WHERE {wanted}",
            *(None, room_id, last, agent_id, needle(agent_id)),
        )
    reached = last if qualifying else max(newest, marker)
    remaining = unread_count(db, room_id, agent_id, reached)
    passed = unread_count(db, room_id, agent_id, marker) - remaining - len(page.messages)
    lossy = {
        "lossy": True,
        "priority_only": True,
        "skipped_count": passed,
        "qualifying_remaining": qualifying,
        "cutoff_seq": reached,
    }
    return _Step(page._replace(byte_limited=page.byte_limited or fetched.cut), reached, remaining, lossy)


def _widest(head: dict[str, Any], newest: int, request: Request, waits: bool) -> dict[str, Any]:
    """An answer without messages whose other fields are as long as they can get."""
    fixed = {**head, "messages": [], "new_last_read_seq": newest, "remaining": newest, "advanced": False}
    fixed["byte_limited"] = True
    if request.priority_only:
        counts = dict.fromkeys(("skipped_count", "qualifying_remaining", "cutoff_seq"), newest)
        fixed.update(lossy=True, priority_only=True, **counts)
    if waits:
        fixed.update(waited_ms=_LONGEST_WAIT_MS)
    return fixed


def _other_rooms(db: Database, agent_id: str, room_id: int, left: int) -> dict[str, Any]:
    found = by_urgency(rooms_with_unread(db, agent_id, except_room=room_id))
    result: dict[str, Any] = {"rooms_with_unread": [], "rooms_with_unread_truncated": True}
    used = size(result)
    whole = True
    for count, room in enumerate(found):
        if not count:  # the most urgent one is named, if only by the beginning of its name
            name = fit(room["name"], left - used - size({**room, "name": ""}))
            whole = name == room["name"]
            room["name"] = name
        used += size(room) + bool(count)
        if count == _LISTED_ROOMS or used > left:
            return result
        result["rooms_with_unread"].append(room)
    return {"rooms_with_unread": result["rooms_with_unread"]} if whole else result


def _before_length(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("length", "supersedes", "superseded_by")}
