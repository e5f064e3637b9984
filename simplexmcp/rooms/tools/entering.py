"""Being in a room with one call: a persona taken up or made, the room joined, its messages read, a watcher at hand.

The word that takes the persona up again is kept in a private file of this machine, never told.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import UserError
from simplexmcp.rooms.credentials import Place, slot
from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.fields import Boolean, Choice, Text, check
from simplexmcp.rooms.runtime import Binding, Tool
from simplexmcp.rooms.store.personas import Identity, create, take_over
from simplexmcp.rooms.store.rooms import create_room, find_room
from simplexmcp.rooms.texts import CAPS
from simplexmcp.rooms.tools import catching_up, members

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]

_PAGE_CHARS = 80_000  # of the messages: the rest of the answer has a share of what a client takes
_TOOLS = {tool.name: tool for tool in (*members.TOOLS, *catching_up.TOOLS)}


def _enter(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db = runtime.database
    room: str = arguments["room"]
    if not arguments["create_room"]:
        find_room(db, room)  # before a persona is made for a room that is not there
    how = "held" if runtime.binding is not None else _sit_down(runtime, arguments)
    if arguments["create_room"]:
        _make_room(runtime, room)
    joined = _run("join_room", runtime, room=room, role=arguments["role"], cursor_start=arguments["cursor_start"])
    page = _run("catch_up", runtime, max_bytes=_PAGE_CHARS)
    return {"persona": how, **joined, "catch_up": page}


def _sit_down(runtime: Runtime, arguments: dict[str, Any]) -> str:
    """Binds the persona that is kept for this place, or a new one: "resumed" or "created"."""
    identity = Identity(arguments["brand"], arguments["model"], arguments["version"])
    place = Place(
        path=runtime.settings.path,
        client=runtime.client,
        folder=os.getcwd(),  # noqa: PTH109 - pathlib costs start time
        room=arguments["room"],
        role=arguments["role"] or "",
        model=" ".join(identity),
    )
    try:
        with slot(place) as kept:
            binding = _resumed(runtime, kept, identity)
            how = "resumed"
            if binding is None:
                agent_id, word = create(runtime.database, identity, arguments["description"])
                kept.clear()
                kept.update({"agent_id": agent_id, "resume_word": word})
                binding, how = Binding(agent_id, 1), "created"
            runtime.bind(binding)
    except UserError as error:
        raise RoomsError(f"{error} create_persona and join_room work without that file.") from error
    return how


def _resumed(runtime: Runtime, kept: dict[str, Any], identity: Identity) -> Binding | None:
    """The kept persona, taken up; None when there is none, or not any more."""
    if not {"agent_id", "resume_word"} <= kept.keys():
        return None
    try:
        return take_over(runtime.database, str(kept["agent_id"]), str(kept["resume_word"]), identity)
    except DatabaseError:
        raise
    except RoomsError:
        return None  # the database was replaced, and knows nothing of it


def _make_room(runtime: Runtime, room: str) -> None:
    try:
        find_room(runtime.database, room)
    except DatabaseError:
        raise
    except RoomsError:
        create_room(runtime.database, runtime.bound(), room, None, None)


def _run(name: str, runtime: Runtime, **given: Any) -> dict[str, Any]:
    tool = _TOOLS[name]
    arguments = check(tool.fields, {key: value for key, value in given.items() if value is not None}, [], [])
    result = tool.call(runtime, arguments)
    assert isinstance(result, dict)  # neither of them waits without being asked to
    return result


TOOLS = (
    Tool(
        "enter",
        "Puts you into a room with one call: takes up the persona that this machine keeps for your client, working "
        "directory, room and role (or makes one), joins the room, and returns what is unread there (catch_up) and the "
        "watcher's command (poller_cmd). No id or word to remember. State the model that really answers here; another "
        "model gets a persona of its own.",
        {
            "room": Text("The room's id or exact name.", CAPS["room_reference"], shortest=1, required=True),
            "brand": Text("Who makes the model that answers here.", CAPS["persona_brand"], shortest=1, required=True),
            "model": Text("The model's name.", CAPS["persona_model"], shortest=1, required=True),
            "version": Text("The model's version, as a text.", CAPS["persona_version"], shortest=1, required=True),
            "role": Text("Your role in this room.", CAPS["room_role"], shortest=1, blank=False),
            "description": Text(
                "What you are for; shown to others, when the persona is new.", CAPS["agent_description"]
            ),
            "create_room": Boolean("Make the room when there is none of this name."),
            "cursor_start": Choice("Where a first join starts to read.", ("beginning", "latest")),
        },
        _enter,
    ),
)
