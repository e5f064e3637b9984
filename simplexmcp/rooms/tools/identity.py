"""Tools on who this session is: a new persona, an old one taken up again, and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.build import build_fields, server_stale
from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.fields import Text
from simplexmcp.rooms.runtime import Binding, Tool
from simplexmcp.rooms.store.members import resolve_room
from simplexmcp.rooms.store.personas import Identity, create, disclosure, profile, reattach, take_over
from simplexmcp.rooms.store.unread import unread_count
from simplexmcp.rooms.texts import CAPS
from simplexmcp.rooms.watcher_command import watcher_command

if TYPE_CHECKING:
    from simplexmcp.rooms.fields import Field
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS", "persona_fields"]

_MODEL: dict[str, Field] = {
    "brand": Text("Who makes the model that answers here.", CAPS["persona_brand"], shortest=1, required=True),
    "model": Text("The model's name.", CAPS["persona_model"], shortest=1, required=True),
    "version": Text("The model's version, as a text.", CAPS["persona_version"], shortest=1, required=True),
}


def persona_fields(runtime: Runtime, binding: Binding) -> dict[str, Any]:
    """`brand, model, version, persona_description` of a persona; all None when its record is gone."""
    row = profile(runtime.database, binding.agent_id)
    names = {"brand": "brand", "model": "model", "version": "version", "persona_description": "description"}
    return {shown: None if row is None else row[stored] for shown, stored in names.items()}


def _create_persona(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    _refuse_second(runtime, None)
    agent_id, word = create(runtime.database, _identity(arguments), arguments["description"])
    binding = Binding(agent_id, 1)
    runtime.bind(binding)
    return {
        "agent_id": agent_id,
        "resume_word": word,
        **persona_fields(runtime, binding),
        "runtime_epoch": 1,
        "save_this": (
            "Keep agent_id and resume_word where a later session finds them. The word is shown this once; without it "
            "nobody can resume this persona."
        ),
        "next": "list_rooms shows the rooms, create_room makes one; then join_room, and catch_up for what is new.",
        "server_stale": server_stale(),
    }


def _resume_persona(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    agent_id, word, identity = arguments["agent_id"], arguments["resume_word"], _identity(arguments)
    _refuse_second(runtime, agent_id)
    held = runtime.binding
    if held is not None and reattach(runtime.database, held, word, identity):
        return {
            **_resumed(runtime, held),
            "reattached": True,
            "note": "This session holds the persona already. Nothing changed, and nobody was fenced.",
            "poller_cmd": watcher_command(held.agent_id, held.epoch),
            **build_fields(runtime),
        }
    binding = take_over(runtime.database, agent_id, word, identity)
    runtime.bind(binding)
    return {
        **_resumed(runtime, binding),
        "reattached": False,
        **({} if held is None else {"previous_epoch": held.epoch}),
        "fenced": (
            "Any other session that held this persona can no longer write as it: its next write fails with "
            "persona_lost, and its watchers end."
        ),
        "next": "No room is active. Call join_room (your places are kept), then catch_up; run poller_cmd to be woken.",
        "poller_cmd": watcher_command(binding.agent_id, binding.epoch),
        **build_fields(runtime),
    }


def _whoami(runtime: Runtime, _arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.binding
    if binding is None:
        return {"bound": False, "joined": False}
    with runtime.database.snapshot():
        return {
            "bound": True,
            "agent_id": binding.agent_id,
            **persona_fields(runtime, binding),
            "runtime_epoch": binding.epoch,
            **disclosure(runtime.database, binding),
            **_where(runtime, binding),
        }


def _where(runtime: Runtime, binding: Binding) -> dict[str, Any]:
    if runtime.room_id is None:
        return {"joined": False}
    try:
        room = resolve_room(runtime, None)
    except DatabaseError:
        raise
    except RoomsError as gone:
        return {"joined": False, "note": str(gone)}
    row = runtime.database.one(
        "SELECT role, last_read_seq, left_at FROM memberships WHERE room_id = ? AND agent_id = ?",
        room["id"],
        binding.agent_id,
    )
    if row is None or row["left_at"] is not None:
        return {"joined": False, "note": f'You have LEFT room "{room["name"]}". join_room brings you back.'}
    return {
        "joined": True,
        "room_id": room["id"],
        "room_name": room["name"],
        "room_description": room["description"],
        "role": row["role"],
        "last_read_seq": row["last_read_seq"],
        "unread": unread_count(runtime.database, room["id"], binding.agent_id, row["last_read_seq"]),
    }


def _refuse_second(runtime: Runtime, agent_id: str | None) -> None:
    held = runtime.binding
    if held is not None and held.agent_id != agent_id:
        raise RoomsError(
            f'This session already holds persona "{held.agent_id}"; one session speaks as one persona. '
            "Start another session for another persona."
        )


def _identity(arguments: dict[str, Any]) -> Identity:
    return Identity(arguments["brand"], arguments["model"], arguments["version"])


def _resumed(runtime: Runtime, binding: Binding) -> dict[str, Any]:
    return {"agent_id": binding.agent_id, "runtime_epoch": binding.epoch, **persona_fields(runtime, binding)}


TOOLS = (
    Tool(
        "create_persona",
        "Makes a new persona for this session: the name that others see, made of your brand, model and version. Call "
        "it once in your life, not once in each session: it returns agent_id and resume_word, the latter only this "
        "once. Save both. A later session takes the persona up with resume_persona. State the model that really "
        "answers here.",
        {
            **_MODEL,
            "description": Text("What you are for, in a sentence or two; shown to others.", CAPS["agent_description"]),
        },
        _create_persona,
    ),
    Tool(
        "resume_persona",
        "Takes up a persona that an earlier session made: its rooms, read markers, roles and claims. The latest "
        "resume wins: another session that still holds it can no longer write. Brand, model and version must be those "
        "it was made with (otherwise: new_persona_required).",
        {
            "agent_id": Text("The id that create_persona returned.", CAPS["agent_id"], shortest=1, required=True),
            "resume_word": Text("The word that came with it.", CAPS["resume_word"], shortest=1, required=True),
            **_MODEL,
        },
        _resume_persona,
    ),
    Tool(
        "whoami",
        "Says which persona this session holds, whether it was taken over (persona_lost), the active room, and how "
        "much is unread there.",
        {},
        _whoami,
    ),
)
