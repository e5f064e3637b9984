"""Wait leases: others see that a persona waits inside a call right now.

A lease names the epoch that opened it. Several waits of one runtime in one room share one row: the last one out
takes it away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.rooms.store.members import membership
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.store.rooms import room_row

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["close_lease", "has_lease", "open_lease"]

_MARGIN = 5  # seconds that a lease outlasts its wait: then it is plain that its process died


def open_lease(db: Database, binding: Binding, room_id: int, seconds: int) -> None:
    """Says that the persona waits in the room for `seconds`; forgets what ended there. Raises PersonaLost, and
    RoomsError unless the persona is present."""
    with db.write():
        check_epoch(db, binding)
        membership(db, room_row(db, room_id), binding.agent_id, present=True)
        db.run("DELETE FROM wait_leases WHERE room_id = ? AND expires_at <= datetime('now')", room_id)
        # A wait of this runtime that lasts longer keeps its end; one of an earlier epoch is over.
        db.run(
            "INSERT INTO wait_leases (room_id, agent_id, epoch, started_at, expires_at)"
            " VALUES (?1, ?2, ?3, datetime('now'), datetime('now', ?4))"
            " ON CONFLICT (room_id, agent_id) DO UPDATE SET started_at = excluded.started_at,"
            " expires_at = CASE WHEN epoch = excluded.epoch THEN max(expires_at, excluded.expires_at)"
            " ELSE excluded.expires_at END, epoch = excluded.epoch",
            room_id,
            binding.agent_id,
            binding.epoch,
            f"+{seconds + _MARGIN} seconds",
        )
    db.leases[_key(binding, room_id)] += 1


def close_lease(db: Database, binding: Binding, room_id: int) -> None:
    """Takes back one `open_lease` that succeeded; with the last one the row goes, if it is still this epoch's."""
    key = _key(binding, room_id)
    db.leases[key] -= 1
    if db.leases[key] > 0:
        return
    del db.leases[key]
    with db.write():
        db.run(
            "DELETE FROM wait_leases WHERE room_id = ? AND agent_id = ? AND epoch = ?",
            room_id,
            binding.agent_id,
            binding.epoch,
        )


def has_lease(db: Database, room_id: int, agent_id: str) -> bool:
    """Whether the persona waits in the room right now."""
    return bool(
        db.value(
            "SELECT EXISTS (SELECT 1 FROM wait_leases"
            " WHERE room_id = ? AND agent_id = ? AND expires_at > datetime('now'))",
            room_id,
            agent_id,
        )
    )


def _key(binding: Binding, room_id: int) -> tuple[int, str, int]:
    return room_id, binding.agent_id, binding.epoch
