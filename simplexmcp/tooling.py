"""What the listener knows of the agent's tools, and nothing more: their description, one call, its result.

Arguments reach `Tools.call` as they were decoded from JSON, whole and unchecked: the tools say what fits them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Call", "Hints", "ToolInfo", "ToolResult", "Tools"]


@final
@dataclass(frozen=True)
class Hints:
    """What a client may assume of a tool (MCP's annotations); hints, never checked."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = True


@final
@dataclass(frozen=True)
class ToolInfo:
    """A tool as `tools/list` shows it. `schema` is the JSON schema of its arguments; `meta` becomes `_meta`."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    hints: Hints = Hints()
    meta: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class ToolResult:
    """The answer of a call.

    `content` is a JSON object; with `is_error` it is `{"error": one sentence}`. `settle` is called once, after the
    answer was written to a client that is still there; else never.
    """

    content: dict[str, Any]
    is_error: bool = False
    settle: Callable[[], None] | None = None


class Call(Protocol):
    """One call as its tool sees it."""

    def say(self, text: str) -> None:
        """Sets the progress text; the client gets it now, and again while the call is held. Never blocks."""
        ...


class Tools(Protocol):
    """The agent's tools."""

    def describe(self) -> Sequence[ToolInfo]:
        """The tools, always in the same order."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], call: Call) -> ToolResult:
        """Does one call. A `ToolResult` also for a refusal; any exception is a defect and reaches the agent only as
        "internal error". Cancelled when the client leaves, cancels, or the server has waited long enough at its end."""
        ...
