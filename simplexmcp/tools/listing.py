"""`list`: the agent's chats and its actions whose result was not delivered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.chats import chat_of
from simplexmcp.clock import iso
from simplexmcp.tooling import ToolResult
from simplexmcp.tools.kit import ALL_CHATS

if TYPE_CHECKING:
    from simplexmcp.action import Action, Progress
    from simplexmcp.tools.arguments import ListChats
    from simplexmcp.tools.kit import Kit

__all__ = ["list_chats"]

_WHOLE_INPUTS = 40_000
"""Characters up to which the inputs of all actions are whole: an agent repeats a call with the same input to attach."""

_INPUT_TEXT = 500


async def list_chats(kit: Kit, _arguments: ListChats, _call: Progress) -> ToolResult:
    """Every chat but the control chat, the one that changed last first, and every action. Raises
    CoreError."""
    user = await kit.api.active_user() or {}
    entries = await kit.api.list_chats(ALL_CHATS)
    chats = [shown for entry in entries if (shown := _chat(kit, entry)) is not None]
    actions = [_action(action) for action in kit.actions.listed()]
    if len(json.dumps(actions, ensure_ascii=False)) > _WHOLE_INPUTS:
        actions = [{**action, "input": _short_input(action["input"])} for action in actions]
    name = str(user.get("localDisplayName", ""))
    content: dict[str, Any] = {"agent": messages.shown_name(name), "chats": chats, "actions": actions}
    return ToolResult(_cut(content))


def _chat(kit: Kit, entry: dict[str, Any]) -> dict[str, Any] | None:
    chat = chat_of(entry.get("chatInfo"))
    if chat is None or chat.is_control or chat.state == "card":
        return None
    stats = entry.get("chatStats")
    unread = stats.get("unreadCount") if isinstance(stats, dict) else 0
    shown: dict[str, Any] = {
        "chat": chat.ref,
        "name": messages.shown_name(chat.name),
        "kind": chat.kind,
        "unread": unread if isinstance(unread, int) else 0,
        "state": chat.state,
    }
    grant = kit.actions.standing.holds(chat.ref, chat.custom)
    if grant is not None:
        shown["approved"] = messages.shown_name(grant.by.name)
    return shown


def _action(action: Action) -> dict[str, Any]:
    return {
        "action": action.number,
        "tool": action.tool,
        "input": dict(action.request.input),
        "state": action.state.value,
        "open": action.open > 0,
        "expires": iso(action.expires),
    }


def _short_input(given: dict[str, Any]) -> dict[str, Any]:
    return {key: _short(value) for key, value in given.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _INPUT_TEXT:
        return f"{value[:_INPUT_TEXT]}… ({len(value)} characters)"
    return value


def _cut(content: dict[str, Any]) -> dict[str, Any]:
    """The oldest chats left out, and counted, when the result would be too long."""
    room = messages.RESULT_LIMIT - len(json.dumps({**content, "chats": []}, ensure_ascii=False)) - 100
    kept: list[dict[str, Any]] = []
    for chat in content["chats"]:
        room -= len(json.dumps(chat, ensure_ascii=False)) + 2
        if room < 0:
            return {**content, "chats": kept, "more": len(content["chats"]) - len(kept)}
        kept.append(chat)
    return content
