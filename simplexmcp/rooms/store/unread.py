"""How much a member has not read, counted without walking the backlog.

A room's numbers are dense: what others wrote above a marker is everything above it, less one's own messages, which
have an index. `marker` is the last number that was read; messages below the oldest one kept are gone, not unread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.jsontext import dumps

if TYPE_CHECKING:
    from simplexmcp.rooms.store.database import Database

__all__ = [
    "CANDIDATE",
    "directed_count",
    "directed_sql",
    "latest_seq",
    "needle",
    "oldest_seq",
    "rooms_with_unread",
    "unread_count",
]

# The condition of the partial index over messages that may be directed at somebody.
CANDIDATE = "(mentions IS NOT NULL OR reply_to_agent IS NOT NULL)"
# The plus keeps the planner to the author's index.
_UNREAD = """max(0,
  coalesce((SELECT max(seq) FROM messages WHERE room_id = ?1), 0)
  - max(?3, coalesce((SELECT min(seq) FROM messages WHERE room_id = ?1), 1) - 1)
  - (SELECT count(*) FROM messages WHERE room_id = ?1
    AND substr(agent_id, -3) = substr(?2, -3) AND +agent_id = ?2 AND seq > ?3))"""


def latest_seq(db: Database, room_id: int) -> int:
    """The number of the newest message; 0 in an empty room."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM messages WHERE room_id = ?", room_id))


def oldest_seq(db: Database, room_id: int) -> int:
    """The number of the oldest message kept; 0 in an empty room."""
    return int(db.value("SELECT coalesce(min(seq), 0) FROM messages WHERE room_id = ?", room_id))


def unread_count(db: Database, room_id: int, agent_id: str, marker: int) -> int:
    """How many messages of others are above the marker."""
    return int(db.value(f"SELECT {_UNREAD}", room_id, agent_id, marker))


def directed_count(db: Database, room_id: int, agent_id: str, marker: int) -> int:
    """How many messages of others above the marker mention the member or answer it."""
    return int(
        db.value(
            f"""SELECT count(*) FROM messages WHERE room_id = ?1 AND seq > ?4 AND {CANDIDATE}
              AND agent_id <> ?2 AND {directed_sql("?2", "?3")}""",
            *(room_id, agent_id, needle(agent_id), marker),
        )
    )


def rooms_with_unread(db: Database, agent_id: str, *, except_room: int | None = None) -> list[dict[str, Any]]:
    """The rooms where the persona is present and has unread messages, by ID: `room_id, name, unread, directed`."""
    found: list[dict[str, Any]] = []
    for row in db.all(
        """SELECT m.room_id, r.name, m.last_read_seq FROM memberships m JOIN rooms r ON r.id = m.room_id
        WHERE m.agent_id = ? AND m.left_at IS NULL AND m.room_id IS NOT ? ORDER BY m.room_id""",
        agent_id,
        except_room,
    ):
        room_id, marker = row["room_id"], row["last_read_seq"]
        if unread := unread_count(db, room_id, agent_id, marker):
            directed = directed_count(db, room_id, agent_id, marker)
            found.append({"room_id": room_id, "name": row["name"], "unread": unread, "directed": directed})
    return found


def needle(agent_id: str) -> str:
    """What the list of mentions contains when it names the persona: the second value of `directed_sql`."""
    return dumps(agent_id)


def directed_sql(agent: str, needle: str, table: str = "messages") -> str:
    """The condition "directed at this persona"; the arguments are the names of the two bound values. The plain search
    for the needle comes first, since reading the list costs more; and it must be one, whoever stored it."""
    return f"""({table}.reply_to_agent IS {agent} OR (instr({table}.mentions, {needle}) AND json_valid({table}.mentions)
      AND EXISTS (SELECT 1 FROM json_each({table}.mentions) WHERE value = {agent})))"""
