"""Tools on claims: saying who works on what, so that two do not do the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.fields import Integer, Text
from simplexmcp.rooms.pages import trim
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store import claims
from simplexmcp.rooms.store.members import target_room, touch
from simplexmcp.rooms.store.personas import check_epoch, disclosure
from simplexmcp.rooms.texts import CAPS, check_text, preview
from simplexmcp.rooms.tools.rooms import LISTED_CHARS

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]


def _claim(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    key = check_text("key", arguments["key"], CAPS["claim_key"])
    note = arguments["note"]
    if note is not None:
        check_text("note", note, CAPS["claim_note"])
    with db.write():
        check_epoch(db, binding)
        room, _ = target_room(runtime, binding, arguments["room"], present=True)
        held = claims.claim(db, room["id"], binding.agent_id, key, arguments["ttl_seconds"], note)
    touch(runtime, room["id"])
    where = {"room_id": room["id"], "room_name": room["name"]}
    if held.granted:
        expires_at = held.row["expires_at"]
        return {**where, "granted": True, "key": key, "expires_at": expires_at, "renewed": held.renewed}
    return {**where, "granted": False, **{name: held.row[name] for name in _SHOWN}}


def _release_claim(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    key = check_text("key", arguments["key"], CAPS["claim_key"])
    with db.write():
        check_epoch(db, binding)
        room, _ = target_room(runtime, binding, arguments["room"], present=False)
        holder = claims.release(db, room["id"], binding.agent_id, key)
    touch(runtime, room["id"])
    where = {"room_id": room["id"], "room_name": room["name"]}
    if holder is None:
        return {**where, "released": True, "key": key}
    reason = f'It is held by "{holder}".' if holder else "There is no such claim."
    return {**where, "released": False, "key": key, "reason": reason}


def _list_claims(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding, limit = runtime.database, runtime.bound(), arguments["limit"]
    after_key = arguments["after_key"]
    if after_key is not None:
        check_text("after_key", after_key, CAPS["claim_key"])
    room, _ = target_room(runtime, binding, arguments["room"], present=False)
    touch(runtime, room["id"])
    claims.drop_expired(db, room["id"])
    with db.snapshot():
        lost = disclosure(db, binding)
        rows, total = claims.list_claims(db, room["id"], after_key=after_key, limit=limit)
    listed, trimmed = trim([_listed(row) for row in rows[:limit]])
    more = len(listed) < len(rows)
    return {
        **lost,
        "room_id": room["id"],
        "room_name": room["name"],
        "claims": listed,
        "total": total,
        **({"next_key": listed[-1]["key"], "truncated": True} if more else {}),
        **({"size_trimmed": True} if trimmed else {}),
    }


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    if row["note"] is not None:
        row["note"], cut = preview(row["note"], LISTED_CHARS)
        if cut:
            row["note_truncated"] = True
    return row


_SHOWN = ("key", "holder", "note", "expires_at", "expires_in_seconds")
_ROOM = Text("The room's id or name; the active room without it.", CAPS["room_reference"], shortest=1)
_KEY = Text("What it is about, for example file:src/db.ts.", CAPS["claim_key"], shortest=1, required=True)

TOOLS = (
    Tool(
        "claim",
        "Says that you work on something, for a while: granted to one persona at a time, or refused with who has it. "
        "Claiming again renews it. It is advice among members, not a lock; it is freed when it expires.",
        {
            "room": _ROOM,
            "key": _KEY,
            "ttl_seconds": Integer("How long it holds.", 1, 86_400, default=900),
            "note": Text("What you do with it; shown to others.", CAPS["claim_note"]),
        },
        _claim,
    ),
    Tool(
        "release_claim",
        "Gives a claim back. Works also after you left the room.",
        {"room": _ROOM, "key": _KEY},
        _release_claim,
    ),
    Tool(
        "list_claims",
        "Lists who holds what in a room, by key.",
        {
            "room": _ROOM,
            "limit": Integer("At most this many.", 1, 1000, default=200),
            "after_key": Text("The next_key of the page before.", CAPS["claim_key"]),
        },
        _list_claims,
    ),
)
