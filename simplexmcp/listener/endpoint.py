"""The MCP endpoint: one POST, one message; a GET only to come back to a stream that broke. Handshake versions
(2024-11-05 to 2025-11-25) are served here, around the SDK's kernel; every other version goes to `modern`.

Sessions are soft: `initialize` hands out an id, which only tells clients apart when they cancel a request by its
number. It is never demanded, so a client lives through a restart of the server.

A call of a tool goes straight to the tools: what the kernel would do for it (a context, two validations) is most of the
cost of a quick call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final
from uuid import uuid4

import trio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from simplexmcp.listener import jsonrpc
from simplexmcp.listener.kernel import refusal
from simplexmcp.listener.replies import event, lost_call, respond
from simplexmcp.listener.requests import accepts, tool_call
from simplexmcp.listener.stream import EventStream

if TYPE_CHECKING:
    from simplexmcp.listener.calls import Calls
    from simplexmcp.listener.jsonrpc import Message
    from simplexmcp.listener.kernel import Kernel
    from simplexmcp.listener.modern import Modern
    from simplexmcp.listener.replies import Request

__all__ = ["Endpoint"]

_VERSIONS = frozenset(version.encode("ascii") for version in HANDSHAKE_PROTOCOL_VERSIONS)
_DEFAULT_VERSION = b"2025-03-26"
"""What a client speaks that names no version, by the protocol."""
_NOT_ACCEPTABLE = "The client must accept application/json and text/event-stream."
_LOST = (
    "The connection of this call was lost, perhaps with a restart of the server. Make the same call again: it attaches "
    "to its action, if that is still there; else look at the chat before you ask anew."
)
_LARGE = 256 * 1024
_TEXT_ONLY = frozenset((b"2024-11-05", b"2025-03-26"))
"""Versions without structured content."""


@final
class Endpoint:
    """Answers the requests that passed the guard."""

    def __init__(self, kernel: Kernel, calls: Calls, modern: Modern) -> None:
        self._kernel = kernel
        self._calls = calls
        self._modern = modern

    async def handle(self, request: Request) -> None:
        """Answers one request."""
        if request.scope["method"] == "GET":
            await self._tell_lost(request)
            return
        message = await _read(request.body)
        if isinstance(message, jsonrpc.Complaint):
            await respond(request, 400, jsonrpc.error_body(message.id, message.code, message.text))
            return
        version = request.headers.get(b"mcp-protocol-version", _DEFAULT_VERSION)
        session = request.headers.get(b"mcp-session-id")
        if message.method == "notifications/cancelled" and (session is not None or version in _VERSIONS):
            self._calls.cancel(session, message.params.get("requestId"))
        if version not in _VERSIONS:
            await self._modern.handle(request, message)
            return
        if message.id is None:
            await respond(request, 202, b"")
        elif not accepts(request):
            await respond(request, 406, jsonrpc.error_body(message.id, jsonrpc.INVALID_REQUEST, _NOT_ACCEPTABLE))
        elif message.method == "tools/call":
            request.body = b""
            await self._call(request, message, message.id, version)
        else:
            await self._ask(request, message, version)

    async def _tell_lost(self, request: Request) -> None:
        """To a client that comes back to a broken stream: its call ended with it, in this run or the last."""
        lost = lost_call(request.headers.get(b"last-event-id", b""))
        if lost is None:
            await respond(request, 400, jsonrpc.error_body(None, jsonrpc.INVALID_REQUEST, "No such stream."))
        else:
            await EventStream(request).finish(event(jsonrpc.error_body(lost, jsonrpc.CANCELLED, _LOST)), None)

    async def _ask(self, request: Request, message: Message, version: bytes) -> None:
        reply = await self._kernel.request(message, version.decode("ascii"))
        headers = None
        if message.method == "initialize" and reply.ok:
            headers = [(b"mcp-session-id", uuid4().hex.encode("ascii"))]
        await respond(request, 200, reply.body, headers)

    async def _call(self, request: Request, message: Message, request_id: jsonrpc.RequestId, version: bytes) -> None:
        asked = tool_call(message.params, self._kernel.infos)
        if isinstance(asked, str):
            await respond(request, 200, jsonrpc.error_body(request_id, jsonrpc.INVALID_PARAMS, asked))
            return
        call = self._calls.open(request, request.headers.get(b"mcp-session-id"), request_id, asked.token)
        if call is None:
            await respond(request, 200, _result(request_id, refusal(self._calls.full), version))
            return
        try:
            answer = await self._kernel.perform(asked.name, asked.arguments, call)
            if answer is None:
                await call.answer(jsonrpc.error_body(request_id, jsonrpc.CANCELLED, call.ended))
            else:
                await call.answer(_result(request_id, answer.result, version), answer.settle)
        finally:
            self._calls.close(call)


async def _read(body: bytes) -> Message | jsonrpc.Complaint:
    """The message; a large one is read beside the loop, where the others go on."""
    if len(body) < _LARGE:
        return jsonrpc.read_message(body)
    return await trio.to_thread.run_sync(jsonrpc.read_message, body)


def _result(request_id: jsonrpc.RequestId, result: dict[str, Any], version: bytes) -> bytes:
    if version in _TEXT_ONLY:
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    return jsonrpc.result_body(request_id, jsonrpc.dump(result))
