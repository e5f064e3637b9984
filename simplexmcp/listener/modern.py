"""Protocol 2026-07-28 and whatever version comes after, by the SDK's own manager.

The manager judges headers and envelope and calls the tool; its answer is collected, not streamed. What goes to the
client meanwhile is the same event stream as for older versions: a first byte at once, progress that never blocks, and a
last write that nothing cancels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from simplexmcp.listener import jsonrpc
from simplexmcp.listener.replies import respond
from simplexmcp.listener.requests import ToolCall, tool_call

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import mcp_types

    from simplexmcp.listener.calls import Calls, OpenCall
    from simplexmcp.listener.jsonrpc import Message
    from simplexmcp.listener.kernel import Answer, Kernel
    from simplexmcp.listener.limits import Limits
    from simplexmcp.listener.replies import Headers, Request

__all__ = ["Modern"]

_CALL = "simplexmcp.call"
"""Where the scope of a request keeps its open call for the handler behind the SDK."""


@final
@dataclass(slots=True)
class _Held:
    call: OpenCall
    answer: Answer | None = None


@final
@dataclass(slots=True)
class _Collected:
    """The SDK's whole response; of an event stream only the last event."""

    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
            return
        self.body = message.get("body", b"")

    def message(self) -> bytes:
        """The JSON-RPC message of the response."""
        _, found, data = self.body.partition(b"data: ")
        return data.strip() if found and self.is_stream else self.body

    @property
    def is_stream(self) -> bool:
        return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in self.headers)


@final
class Modern:
    """Answers the requests of versions without a handshake, while `running`."""

    def __init__(self, kernel: Kernel, calls: Calls, limits: Limits) -> None:
        self._kernel = kernel
        self._calls = calls
        self._manager = StreamableHTTPSessionManager(kernel.server, stateless=True, max_request_body_size=limits.body)
        kernel.serve_calls(self._tool)

    def running(self) -> AbstractAsyncContextManager[None]:
        """The life of the SDK's manager; once."""
        return self._manager.run()

    async def handle(self, request: Request, message: Message) -> None:
        """Answers one request, or acknowledges one notification."""
        asked = tool_call(message.params, self._kernel.infos) if message.method == "tools/call" else ""
        if message.id is None or not isinstance(asked, ToolCall):
            # The SDK has the right answer to a call that makes no sense, too.
            collected = await self._ask_sdk(request)
            await respond(request, collected.status, collected.body, _fields(collected))
            return
        call = self._calls.open(request, request.headers.get(b"mcp-session-id"), message.id, asked.token)
        if call is None:
            await respond(request, 503, jsonrpc.error_body(message.id, jsonrpc.REFUSED, self._calls.full))
            return
        try:
            await self._hold(request, _Held(call))
        finally:
            self._calls.close(call)

    async def _hold(self, request: Request, held: _Held) -> None:
        request.scope[_CALL] = held
        collected = await self._ask_sdk(request)
        body = collected.message()
        # An answer that the SDK turned into an error is not delivered.
        settle = held.answer.settle if held.answer is not None and "result" in json.loads(body) else None
        await held.call.answer(body, settle, status=collected.status, headers=_fields(collected))

    async def _ask_sdk(self, request: Request) -> _Collected:
        """The SDK's answer; it hears a client that leaves through the request's own `receive`."""
        collected = _Collected()
        body: list[bytes] = [request.body]
        request.body = b""

        async def receive() -> Any:
            if body:
                return {"type": "http.request", "body": body.pop(), "more_body": False}
            return await request.receive()

        await self._manager.asgi_app(request.scope, receive, collected.send)
        return collected

    async def _tool(self, ctx: Any, params: mcp_types.CallToolRequestParams) -> dict[str, Any]:
        held: _Held | None = ctx.request.scope.get(_CALL)
        if held is None:
            raise MCPError(code=jsonrpc.INVALID_PARAMS, message=str(tool_call(ctx.params, self._kernel.infos)))
        held.answer = await self._kernel.perform(params.name, params.arguments or {}, held.call)
        if held.answer is None:
            raise MCPError(code=jsonrpc.CANCELLED, message=held.call.ended)
        return {**held.answer.result, "resultType": "complete"}


def _fields(collected: _Collected) -> Headers:
    """The SDK's headers without those that the answer brings itself."""
    own = (b"content-length", b"content-type", b"cache-control", b"connection")
    return [(name, value) for name, value in collected.headers if name.lower() not in own]
