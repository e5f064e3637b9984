"""Whether there is news for a persona, and what a watcher, a hook or a person is told of it. Only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.store.unread import CANDIDATE, directed_count, directed_sql, needle, unread_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simplexmcp.rooms.store.database import Database

__all__ = ["Look", "News", "Scope", "directed_quotes", "excerpt", "look", "newest", "news", "previews"]

_PREVIEWS = 3
_PREVIEW_LENGTH = 100  # code points


class Scope(NamedTuple):
    """What is watched: one room or (None) all rooms of a persona, at one epoch or (None) whoever holds it."""

    agent: str
    room_id: int | None
    epoch: int | None
    mentions_only: bool


class Look(NamedTuple):
    """One look, all of one moment. `epoch`: the persona's now, None when its record is gone; `exists`: the scope's
    room is there; `joined` and `present`: a membership of the scope is; `room_id`: a room with news."""

    epoch: int | None
    exists: bool
    joined: bool
    present: bool
    room_id: int | None


class News(NamedTuple):
    """What waits in one room: how many messages of others, how many of them directed at the persona, and the beginnings
    of a few: `seq, from, directed, preview`."""

    room_id: int
    room_name: str
    unread: int
    directed: int
    previews: list[dict[str, Any]]


def look(db: Database, scope: Scope, told: Mapping[int, int] | None = None, after: int = 0) -> Look:
    """Reads the scope's state in one statement. News are messages of others above the read marker, and above what was
    `told` already of a room (room → number). The rooms behind `after` come first, so that a busy one hides none."""
    row = db.one(
        _LOOK_DIRECTED if scope.mentions_only else _LOOK,
        scope.agent,
        scope.room_id,
        needle(scope.agent),
        dumps({str(room_id): seq for room_id, seq in told.items()}) if told else "{}",
        after,
    )
    assert row is not None  # it has no FROM
    return Look(row["epoch"], bool(row["found"]), bool(row["joined"]), bool(row["present"]), row["news"])


def news(db: Database, agent: str, room_id: int, above: int = 0) -> News | None:
    """What waits in a room above the read marker, with previews of what is above `above` too; None when the room or
    the membership is gone meanwhile."""
    with db.snapshot():
        row = db.one(
            "SELECT r.name, m.last_read_seq FROM memberships m JOIN rooms r ON r.id = m.room_id"
            " WHERE m.room_id = ? AND m.agent_id = ?",
            room_id,
            agent,
        )
        if row is None:
            return None
        marker = row["last_read_seq"]
        return News(
            room_id,
            row["name"],
            unread_count(db, room_id, agent, marker),
            directed_count(db, room_id, agent, marker),
            previews(db, agent, room_id, max(marker, above)),
        )


def newest(db: Database, room_id: int) -> int:
    """The number of the newest message of a room; 0 without one."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM messages WHERE room_id = ?", room_id))


def previews(db: Database, agent: str, room_id: int, above: int) -> list[dict[str, Any]]:
    """The beginnings of up to three messages of others above a number: what is directed at the persona goes first."""
    values = (room_id, agent, needle(agent), above, 4 * _PREVIEW_LENGTH, _PREVIEWS)
    rows = db.all(_FIRST_DIRECTED, *values)
    if len(rows) < _PREVIEWS:
        told = {row["seq"] for row in rows}
        rows += [row for row in db.all(_FIRST, *values) if row["seq"] not in told]
    return [
        {
            "seq": row["seq"],
            "from": row["agent_id"],
            "directed": bool(row["directed"]),
            "preview": excerpt(row["beginning"], _PREVIEW_LENGTH),
        }
        for row in sorted(rows[:_PREVIEWS], key=_by_number)
    ]


def directed_quotes(
    db: Database, agent: str, room_id: int, count: int, length: int
) -> tuple[list[tuple[int, str, str]], int]:
    """The newest unread messages of a room that are directed at the persona, oldest first, each as number, author and
    its first `length` code points; and the number of the newest one (0 without any)."""
    marker = db.value("SELECT last_read_seq FROM memberships WHERE room_id = ? AND agent_id = ?", room_id, agent)
    rows = db.all(_LAST_DIRECTED, room_id, agent, needle(agent), marker or 0, 4 * length, count)
    quotes = [(row["seq"], row["agent_id"], row["beginning"]) for row in reversed(rows)]
    return quotes, quotes[-1][0] if quotes else 0


def excerpt(text: str, limit: int) -> str:
    """The beginning of a foreign text on one line, without characters that steer or hide; `...` where it was cut."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= limit else line[:limit] + "..."


def _by_number(row: Any) -> int:
    return int(row["seq"])


# ?1 the persona, ?2 the room or NULL, ?3 the persona as its mentions are written, ?4 what was told, by room, ?5 the
# room that was told last.
_NEWS = """SELECT m.room_id FROM memberships m
  WHERE m.agent_id = ?1 AND m.left_at IS NULL AND (?2 IS NULL OR m.room_id = ?2) AND m.room_id {side} ?5 AND EXISTS (
    SELECT 1 FROM messages {index} WHERE messages.room_id = m.room_id
      AND seq > max(m.last_read_seq, coalesce(json_extract(?4, '$."' || m.room_id || '"'), 0))
      AND messages.agent_id <> ?1 {condition})
  ORDER BY m.room_id LIMIT 1"""
_DIRECTED_NEWS = {
    "index": "INDEXED BY idx_messages_directed_candidates",
    "condition": f"AND {CANDIDATE} AND {directed_sql('?1', '?3')}",
}
_STATE = """SELECT
  (SELECT runtime_epoch FROM agents WHERE id = ?1) AS epoch,
  ?2 IS NULL OR EXISTS (SELECT 1 FROM rooms WHERE id = ?2) AS found,
  EXISTS (SELECT 1 FROM memberships WHERE agent_id = ?1 AND (?2 IS NULL OR room_id = ?2)) AS joined,
  EXISTS (SELECT 1 FROM memberships
    WHERE agent_id = ?1 AND left_at IS NULL AND (?2 IS NULL OR room_id = ?2)) AS present,
  coalesce(({behind}), ({before})) AS news"""


def _look_sql(**parts: str) -> str:
    return _STATE.format(behind=_NEWS.format(side=">", **parts), before=_NEWS.format(side="<=", **parts))


_LOOK = _look_sql(index="", condition="")
_LOOK_DIRECTED = _look_sql(**_DIRECTED_NEWS)

# ?1 the room, ?2 the persona, ?3 the persona as its mentions are written, ?4 above, ?5 code points, ?6 rows.
_FIRST = f"""SELECT seq, agent_id, substr(body, 1, ?5) AS beginning, {directed_sql("?2", "?3")} AS directed
  FROM messages WHERE room_id = ?1 AND seq > ?4 AND agent_id <> ?2 ORDER BY seq LIMIT ?6"""
_FIRST_DIRECTED = f"""SELECT seq, agent_id, substr(body, 1, ?5) AS beginning, 1 AS directed
  FROM messages INDEXED BY idx_messages_directed_candidates
  WHERE room_id = ?1 AND seq > ?4 AND agent_id <> ?2 AND {CANDIDATE} AND {directed_sql("?2", "?3")}
  ORDER BY seq LIMIT ?6"""
_LAST_DIRECTED = _FIRST_DIRECTED.replace("ORDER BY seq", "ORDER BY seq DESC")
