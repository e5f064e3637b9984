"""The outermost app: who may speak to the endpoint at all, and in what form.

In this order: version of HTTP (505), path (404), host (421), origin (403), token (401), method (405), type of the body
(415), readiness (503), size (413) and time (408) of the body. Each refusal is a JSON-RPC error that tells nothing about
the tools, and the body of a refused request is drained. A GET passes only when it comes back to a broken stream. A
header that decides something may come only once.
"""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.listener import jsonrpc
from simplexmcp.listener.replies import Request, drain, respond

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.listener.calls import Closing
    from simplexmcp.listener.connection import Connection
    from simplexmcp.listener.limits import Limits
    from simplexmcp.listener.replies import Receive, Send

__all__ = ["PATH", "Guard"]

log = logging.getLogger(__name__)

PATH = b"/mcp"
NOT_READY = "The agent is starting: its control chat is not ready yet. Try again in a few seconds."

_ONCE = frozenset(
    (
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"mcp-session-id",
        b"mcp-protocol-version",
        b"last-event-id",
    )
)


@final
@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@final
class Guard:
    """An ASGI app for hypercorn whose request state holds the `connection`; `handler` gets what passes."""

    def __init__(
        self,
        handler: Callable[[Request], Awaitable[None]],
        *,
        port: int,
        token: str,
        ready: Callable[[], bool],
        closing: Closing,
        limits: Limits,
    ) -> None:
        self._handler = handler
        self._hosts = frozenset((f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()))
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._authorization = b"Bearer " + token.encode("ascii")
        self._ready = ready
        self._closing = closing
        self._limits = limits
        self._buffered = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # Before the handshake this answers 403.
            await send({"type": "websocket.close"})
            return
        headers: dict[bytes, bytes] = {}
        doubled: set[bytes] = set()
        for name, value in scope["headers"]:
            if name in headers and name in _ONCE:
                doubled.add(name)
            headers[name] = value
        connection: Connection = scope["state"]["connection"]
        request = Request(scope, headers, b"", receive, send, connection)
        refusal = self._judge(scope, headers, doubled)
        if refusal is not None:
            await drain(request, refusal.status, refusal.text, list(refusal.headers))
            return
        await self._serve(request)

    async def _serve(self, request: Request) -> None:
        body = await self._body(request)
        if body is None:
            return
        if isinstance(body, _Refusal):
            await drain(request, body.status, body.text, list(body.headers))
            return
        request.body = body
        try:
            await self._handler(request)
        except Exception:
            # The last resort of the server's life: the defect is logged, this client gets a plain answer.
            log.exception("A request failed")
            if not request.started:
                await respond(request, 500, jsonrpc.error_body(None, jsonrpc.INTERNAL, "Internal error."))

    def _judge(self, scope: Any, headers: dict[bytes, bytes], doubled: set[bytes]) -> _Refusal | None:
        """What the head of a request says against it. The token is compared in constant time, as bytes."""
        if scope["http_version"] not in ("1.1", "1.0"):
            return _Refusal(505, "Only HTTP/1.1 is served here.")
        if scope["raw_path"] != PATH:
            return _Refusal(404, "Nothing is here. The endpoint is /mcp.")
        if headers.get(b"host", b"").lower() not in self._hosts:
            return _Refusal(421, "This server answers only to 127.0.0.1 and localhost with its own port.")
        if not self._same_origin(headers, doubled):
            return _Refusal(403, "Requests of web pages are refused.")
        given = headers.get(b"authorization", b"")
        if b"authorization" in doubled or not hmac.compare_digest(given, self._authorization):
            return _Refusal(401, "The token is missing or wrong.", ((b"www-authenticate", b"Bearer"),))
        comes_back = scope["method"] == "GET" and b"last-event-id" in headers
        if scope["method"] != "POST" and not comes_back:
            return _Refusal(405, "Only POST is served here.", ((b"allow", b"POST"),))
        if doubled:
            return _Refusal(400, "A header that may come once came twice.")
        if not comes_back and not _is_json(headers):
            return _Refusal(415, "The body must be application/json in UTF-8, not encoded further.")
        if self._closing.refusing:
            return _Refusal(503, self._closing.refusing, ((b"retry-after", b"30"),))
        if not self._ready():
            return _Refusal(503, NOT_READY, ((b"retry-after", b"3"),))
        return None

    def _same_origin(self, headers: dict[bytes, bytes], doubled: set[bytes]) -> bool:
        """Whether no browser sent it: programs send no Origin, and only browsers say where a request was made."""
        origin = headers.get(b"origin")
        if origin is None:
            return b"sec-fetch-site" not in headers
        return b"origin" not in doubled and origin in self._origins

    async def _body(self, request: Request) -> bytes | _Refusal | None:
        """The whole body, counted while it comes; None when the connection broke before its end."""
        limit = self._limits.body
        too_large = _Refusal(413, f"The body is larger than {limit // 1024} KiB.")
        declared = request.headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > limit:
            return too_large
        body = bytearray()
        try:
            with trio.CancelScope(deadline=trio.current_time() + self._limits.body_seconds):
                while (message := await request.receive())["type"] == "http.request":
                    part = message.get("body", b"")
                    body += part
                    self._buffered += len(part)
                    if len(body) > limit:
                        return too_large
                    if self._buffered > self._limits.buffered:
                        return _Refusal(503, "Too many large requests at once.", ((b"retry-after", b"1"),))
                    if not message.get("more_body", False):
                        return bytes(body)
                return None
        finally:
            self._buffered -= len(body)
        return _Refusal(408, f"The body did not come within {self._limits.body_seconds:g} seconds.")


def _is_json(headers: dict[bytes, bytes]) -> bool:
    kind, _, parameter = headers.get(b"content-type", b"").lower().partition(b";")
    charset = parameter.replace(b" ", b"").replace(b'"', b"")
    return (
        kind.strip() == b"application/json"
        and charset in (b"", b"charset=utf-8")
        and headers.get(b"content-encoding", b"identity") == b"identity"
    )
