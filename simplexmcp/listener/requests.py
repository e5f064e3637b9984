"""What a request says in its headers and in the params of tools/call, the same for every version of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Collection

    from simplexmcp.listener.jsonrpc import RequestId
    from simplexmcp.listener.replies import Request

__all__ = ["ToolCall", "accepts", "tool_call"]


@final
@dataclass(frozen=True, slots=True)
class ToolCall:
    """The params of a tools/call: `token` is what progress is reported for, None when the client wants none."""

    name: str
    arguments: dict[str, Any]
    token: RequestId | None


def accepts(request: Request) -> bool:
    """Whether the client reads both forms of an answer, as the protocol demands."""
    accept = request.headers.get(b"accept", b"*/*").lower()
    if b"application/json" in accept and b"text/event-stream" in accept:
        return True
    kinds = {part.partition(b";")[0].strip() for part in accept.split(b",")}
    return b"*/*" in kinds or (
        not kinds.isdisjoint((b"application/json", b"application/*"))
        and not kinds.isdisjoint((b"text/event-stream", b"text/*"))
    )


def tool_call(params: dict[str, Any], names: Collection[str]) -> ToolCall | str:
    """The call that `params` ask for, or one sentence that says what is wrong with them."""
    name = params.get("name")
    if not isinstance(name, str) or name not in names:
        return f"There is no tool of this name. The tools are: {', '.join(names)}."
    arguments = params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return "The arguments of a call are an object."
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if isinstance(token, bool) or not isinstance(token, str | int):
        token = None
    return ToolCall(name, arguments, token)
