"""The listener: MCP over HTTP on 127.0.0.1. Its door is `serve`; what it knows of the tools is in `tooling`.

`serve` and what belongs to it are imported when they are first asked for: the SDK and hypercorn take half a second,
which nobody pays who only needs those types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.tooling import Call, Hints, ToolInfo, ToolResult, Tools

if TYPE_CHECKING:
    from simplexmcp.listener.calls import Closing
    from simplexmcp.listener.limits import Limits
    from simplexmcp.listener.server import check_port, serve

__all__ = ["Call", "Closing", "Hints", "Limits", "ToolInfo", "ToolResult", "Tools", "check_port", "serve"]

_HEAVY = {"Closing": "calls", "Limits": "limits", "check_port": "server", "serve": "server"}


def __getattr__(name: str) -> Any:
    if name not in _HEAVY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HEAVY[name]}"), name)
