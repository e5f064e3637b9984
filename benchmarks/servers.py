"""Servers to measure, each a process of its own: `python -m benchmarks.servers ours|sdk` prints its port and serves.

Both have the same two tools: `list`, which answers at once, and `wait`, which holds its call until it is cancelled.
"""

from __future__ import annotations

import json
import logging
import sys
from functools import partial
from typing import Any

import trio

TOKEN = "benchmark"
CHATS: dict[str, Any] = {
    "agent": "bench",
    "chats": [
        {"chat": f"@{number}", "name": f"Contact {number}", "kind": "contact", "unread": number % 3, "state": "ready"}
        for number in range(1, 9)
    ],
    "actions": [],
}
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


async def ours() -> None:
    """The listener of this project, with the fast path, the guard and all."""
    from simplexmcp.listener import Call, Closing, Limits, ToolInfo, ToolResult, serve

    class BenchTools:
        def describe(self) -> list[ToolInfo]:
            return [ToolInfo(name, name.title(), f"Does {name}.", SCHEMA) for name in ("list", "wait")]

        async def call(self, name: str, arguments: dict[str, Any], call: Call) -> ToolResult:
            if name == "wait":
                call.say("Waiting for an approval since 12:00")
                await trio.sleep_forever()
            return ToolResult(CHATS | arguments)

    async with trio.open_nursery() as nursery:
        port = await nursery.start(
            partial(
                serve,
                BenchTools(),
                port=0,
                token=TOKEN,
                ready=lambda: True,
                closing=Closing(),
                limits=Limits(calls=20_000, connections=20_000),
            )
        )
        print(port, flush=True)


async def sdk() -> None:
    """The SDK's own manager, stateless, under hypercorn: the reference."""
    import mcp_types
    from hypercorn.config import Config
    from hypercorn.trio import serve
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    async def list_tools(_ctx: Any, _params: Any) -> mcp_types.ListToolsResult:
        tools = [
            mcp_types.Tool(name=name, description=f"Does {name}.", input_schema=SCHEMA) for name in ("list", "wait")
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        if params.name == "wait":
            await ctx.session.report_progress(1, None, "Waiting for an approval since 12:00")
            await trio.sleep_forever()
        text = mcp_types.TextContent(type="text", text=json.dumps(CHATS))
        return mcp_types.CallToolResult(content=[text], structured_content=CHATS | (params.arguments or {}))

    server: Server[Any] = Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(server, stateless=True)
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = config.accesslog = None
    config.keep_alive_max_requests = 10**9
    config.backlog = 1024

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await manager.asgi_app(scope, receive, send)
        elif scope["type"] == "lifespan":
            for stage in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{stage}.complete"})

    async with manager.run(), trio.open_nursery() as nursery:
        bound: list[str] = await nursery.start(partial(serve, app, config, mode="asgi"))
        print(bound[0].rpartition(":")[2], flush=True)


if __name__ == "__main__":
    logging.getLogger("mcp").setLevel(logging.ERROR)
    trio.run({"ours": ours, "sdk": sdk}[sys.argv[1]])
