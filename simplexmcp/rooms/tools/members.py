"""Tools on being in a room: joining, leaving, one's role and read marker, and who else is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.build import build_fields
from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.fields import Choice, Integer, Nullable, Number, Text
from simplexmcp.rooms.pages import trim
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store import members
from simplexmcp.rooms.store.personas import check_epoch, disclosure
from simplexmcp.rooms.store.rooms import find_room
from simplexmcp.rooms.store.unread import latest_seq, unread_count
from simplexmcp.rooms.texts import CAPS, check_text, is_unstorable, preview
from simplexmcp.rooms.tools.identity import persona_fields
from simplexmcp.rooms.tools.rooms import LISTED_CHARS
from simplexmcp.rooms.watcher_command import watcher_command

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]


def _join_room(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    role = _checked_role(arguments["role"])
    at_latest = arguments["cursor_start"] == "latest"
    with db.write():
        check_epoch(db, binding)
        room = find_room(db, arguments["room"])
        room_id = room["id"]
        row, new = members.join(db, room_id, binding.agent_id, role, at_latest=at_latest)
        result = {
            "agent_id": binding.agent_id,
            **persona_fields(runtime, binding),
            "room_id": room_id,
            "room_name": room["name"],
            "room_description": room["description"],
            "pinned": room["pinned"],
            "role": row["role"],
            "new_membership": new,
            **(_SKIPPED if new and at_latest else {}),
            "last_read_seq": row["last_read_seq"],
            "unread": unread_count(db, room_id, binding.agent_id, row["last_read_seq"]),
            "members": members.count_present(db, room_id),
        }
    runtime.room_id = room_id
    command = watcher_command(binding.agent_id, binding.epoch)
    return {**result, "poller_cmd": command, **build_fields(runtime)}


def _set_role(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    role = _checked_role(arguments["role"])
    with db.write():
        check_epoch(db, binding)
        room, _ = members.target_room(runtime, binding, arguments["room"], present=True)
        members.set_role(db, room["id"], binding.agent_id, role)
    return {
        "agent_id": binding.agent_id,
        "room_id": room["id"],
        "room_name": room["name"],
        "role": role,
        "cleared": role is None,
    }


def _leave_room(runtime: Runtime, _arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    with db.write():
        check_epoch(db, binding)
        room = members.resolve_room(runtime, None)
        left = members.leave(db, room["id"], binding.agent_id)
    runtime.room_id = None
    return {"left": left, "room_id": room["id"], "agent_id": binding.agent_id}


def _list_agents(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    room = members.resolve_room(runtime, None)
    limit = arguments["limit"]
    text = (arguments["filter"] or "").strip()
    seconds = arguments["active_within_minutes"] * 60
    with db.snapshot():
        lost = disclosure(db, binding)
        rows: list[dict[str, Any]] = []
        total = 0
        if not is_unstorable(text):
            rows, total = members.list_members(
                db, room["id"], text, after=arguments["after"] or 0, limit=limit, active_seconds=seconds
            )
    agents, trimmed = trim([_listed(row) for row in rows[:limit]])
    more = len(agents) < len(rows)
    return {
        **lost,
        "agents": agents,
        "total": total,
        **({"next_after": rows[len(agents) - 1]["cursor"], "truncated": True} if more else {}),
        **({"size_trimmed": True} if trimmed else {}),
    }


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    agent = {key: row[key] for key in _LISTED}
    if agent["description"] is not None:
        agent["description"], cut = preview(agent["description"], LISTED_CHARS)
        if cut:
            agent["description_truncated"] = True
    return agent | {key: row[key] for key in ("present", "active", "watching")}


def _mark_read(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding, seq = runtime.database, runtime.bound(), arguments["seq"]
    with db.write():
        check_epoch(db, binding)
        room, row = members.target_room(runtime, binding, None, present=True)
        latest = latest_seq(db, room["id"])
        new = latest if seq is None else min(seq, latest)
        members.move_marker(db, room["id"], binding.agent_id, new)
    return {"previous": row["last_read_seq"], "new": new, "latest": latest}


def _checked_role(role: str | None) -> str | None:
    if role is None:
        return None
    if not role.strip():
        raise RoomsError("role must be non-blank.")
    return check_text("role", role, CAPS["room_role"])


_LISTED = (
    *("id", "brand", "model", "version", "is_human", "role", "description"),
    *("joined_at", "last_read_seq", "last_seen", "idle_seconds"),
)
_SKIPPED = {
    "cursor_start": "latest",
    "note": "Older messages count as read. read_history shows them; mark_read with a lower seq makes them unread.",
}
_ROLE = Text("Your role in this room.", CAPS["room_role"], shortest=1, blank=False, required=True)

TOOLS = (
    Tool(
        "join_room",
        "Enters a room and makes it the active one. The first join starts at the beginning of its messages unless "
        "cursor_start says latest; coming back keeps your read marker and role. Returns the pinned text, how much is "
        "unread, and poller_cmd: run that in the background to be woken by new messages.",
        {
            "room": Text("The room's id or name.", CAPS["room_reference"], shortest=1, required=True),
            "role": Text("Your role in this room, for example reviewer.", CAPS["room_role"], shortest=1, blank=False),
            "cursor_start": Choice(
                "Where reading starts at the first join: beginning (all is unread) or latest.", ("beginning", "latest")
            ),
        },
        _join_room,
    ),
    Tool(
        "set_role",
        "Changes your role in a room; null removes it. Others see it in list_agents, not in messages.",
        {
            "role": Nullable(_ROLE),
            "room": Text("The room's id or name; the active room without it.", CAPS["room_reference"], shortest=1),
        },
        _set_role,
    ),
    Tool(
        "leave_room",
        "Leaves the active room. Read marker and role are kept for a later join_room; claims stay yours.",
        {},
        _leave_room,
    ),
    Tool(
        "list_agents",
        "Lists everyone who ever joined the active room, in that order: who they are, their role, how far they have "
        "read, and signs of life. present: has not left. active: a session or watcher of theirs was there lately. "
        "watching: a catch_up of theirs waits right now. None of these proves that a model reads.",
        {
            "filter": Text("Only agents with this text in id, model, role or description.", CAPS["filter"]),
            "active_within_minutes": Number("How recent counts as active.", 0, 1440, above=True, default=5),
            "limit": Integer("At most this many.", 1, 1000, default=200),
            "after": Integer("The next_after of the page before.", 1),
        },
        _list_agents,
    ),
    Tool(
        "mark_read",
        "Moves your read marker in the active room: to seq, also backwards (what is above it is unread again); "
        "without seq to the newest message, which gives up all that is unread. catch_up moves it as it reads.",
        {"seq": Integer("The last message that counts as read; 0 for none.", 0)},
        _mark_read,
    ),
)
