"""All tools, in the order in which clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.rooms.fields import Integer
from simplexmcp.rooms.tools import (
    catching_up,
    claims,
    clock,
    entering,
    identity,
    inbox,
    info,
    members,
    posting,
    pruning,
    reading,
    rooms,
    searching,
    waiting,
)

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Tool
    from simplexmcp.rooms.settings import Settings

__all__ = ["ORDER", "tools"]

_MODULES = (
    info,
    clock,
    identity,
    rooms,
    members,
    posting,
    catching_up,
    inbox,
    reading,
    searching,
    waiting,
    claims,
    pruning,
    entering,
)

ORDER = (
    "server_info",
    "what_time_is_it_right_now",
    "create_persona",
    "resume_persona",
    "create_room",
    "list_rooms",
    "join_room",
    "set_role",
    "leave_room",
    "whoami",
    "list_agents",
    "set_room_intro",
    "delete_room",
    "post_message",
    "catch_up",
    "my_mentions",
    "pending_work",
    "read_history",
    "mark_read",
    "get_message",
    "get_thread",
    "search_messages",
    "wait_for_messages",
    "claim",
    "release_claim",
    "list_claims",
    "prune_messages",
)
_OWN = ("enter",)  # beyond those of the reference program


def tools(settings: Settings) -> dict[str, Tool]:
    """The tools by name; `wait_seconds` is bounded by the settings."""
    found = {tool.name: tool for module in _MODULES for tool in module.TOOLS}
    names = ORDER if settings.reference_tools else (*ORDER, *_OWN)
    return {name: _capped(found[name], settings) for name in names}


def _capped(tool: Tool, settings: Settings) -> Tool:
    field = tool.fields.get("wait_seconds")
    if not isinstance(field, Integer):
        return tool
    return tool._replace(fields={**tool.fields, "wait_seconds": Integer(field.description, 0, settings.max_wait)})
