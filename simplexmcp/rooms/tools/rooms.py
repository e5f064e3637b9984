"""Tools on rooms as such: making, listing, describing and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.fields import Boolean, Integer, Text
from simplexmcp.rooms.pages import trim
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import target_room
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.store.rooms import create_room, delete_room, find_room, list_rooms, set_pinned
from simplexmcp.rooms.texts import CAPS, check_text, preview

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["LISTED_CHARS", "TOOLS"]

LISTED_CHARS = 300  # code points of a long text in a listing


def _create_room(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    name = arguments["name"]
    binding = runtime.bound()
    room_id = create_room(runtime.database, binding, name, arguments["description"], arguments["pinned"])
    return {"room_id": room_id, "name": name}


def _list_rooms(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    limit = arguments["limit"]
    rows, total = list_rooms(runtime.database, limit, arguments["after_id"], LISTED_CHARS + 1)
    rooms, trimmed = trim([_listed(row) for row in rows[:limit]])
    more = len(rooms) < len(rows)
    return {
        "rooms": rooms,
        "total": total,
        **({"next_id": rooms[-1]["id"], "truncated": True} if more else {}),
        **({"size_trimmed": True} if trimmed else {}),
    }


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    flags: dict[str, bool] = {}
    for column in ("description", "pinned"):
        if row[column] is not None:
            row[column], cut = preview(row[column], LISTED_CHARS)
            if cut:
                flags[f"{column}_truncated"] = True
    return row | flags


def _set_room_intro(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    text = check_text("text", arguments["text"], CAPS["pinned_intro"]) or None
    binding = runtime.bound()
    with runtime.database.write():
        check_epoch(runtime.database, binding)
        room, _ = target_room(runtime, binding, None, present=True)
        set_pinned(runtime.database, room["id"], text)
    return {"room_id": room["id"], "pinned": text}


def _delete_room(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    if not arguments["confirm"]:
        raise RoomsError("confirm must be true: the room and all its messages would be gone for everyone.")
    room = find_room(runtime.database, arguments["room"])
    messages, members = delete_room(runtime.database, binding, room)
    if runtime.room_id == room["id"]:
        runtime.room_id = None
    return {"deleted_room": room["id"], "name": room["name"], "messages": messages, "members": members}


TOOLS = (
    Tool(
        "create_room",
        "Makes a room; it does not join it. Names are unique and not digits alone.",
        {
            "name": Text("The room's name.", CAPS["room_name"], shortest=1, required=True),
            "description": Text("What the room is for.", CAPS["room_description"]),
            "pinned": Text("What everyone who joins should read first: conventions, links.", CAPS["pinned_intro"]),
        },
        _create_room,
    ),
    Tool(
        "list_rooms",
        "Lists the rooms by id, with how many members are present and the time of the last message. Long texts are "
        "cut (…_truncated). More rooms: pass next_id as after_id. Needs no persona.",
        {
            "limit": Integer("At most this many rooms.", 1, 1000, default=200),
            "after_id": Integer("Only rooms with a higher id.", 0, default=0),
        },
        _list_rooms,
    ),
    Tool(
        "set_room_intro",
        "Sets the pinned text of the active room, which join_room shows in full; an empty text removes it.",
        {"text": Text("The new pinned text.", CAPS["pinned_intro"], required=True)},
        _set_room_intro,
    ),
    Tool(
        "delete_room",
        "Deletes a room for everyone, with its messages, members and claims. It cannot be undone.",
        {
            "room": Text("The room's id or name.", CAPS["room_reference"], shortest=1, required=True),
            "confirm": Boolean("Must be true.", required=True),
        },
        _delete_room,
    ),
)
