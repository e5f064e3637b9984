"""How a call follows its action: attach, wait for the outcome, and the fields that every result has (flow
10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.tooling import ToolResult

if TYPE_CHECKING:
    from simplexmcp.action import Action
    from simplexmcp.tools.kit import Kit

__all__ = ["fields", "settled"]


def fields(action: Action) -> dict[str, Any]:
    """The number, status and decision of an action that ended, and its error when it failed."""
    result: dict[str, Any] = {"action": action.number, "status": action.state.value}
    if action.decided_by is not None:
        result["decided_by"] = action.decided_by
    if action.error is not None:
        result["error"] = action.error
    return result


def settled(kit: Kit, action: Action, content: dict[str, Any], given: list[int]) -> ToolResult:
    """The result of a call; when it was delivered, the action is forgotten and its messages are not given
    again."""

    def settle() -> None:
        kit.gave(given)
        kit.actions.settle(action)

    return ToolResult(content, settle=settle)
