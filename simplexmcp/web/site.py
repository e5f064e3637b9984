"""A site on 127.0.0.1: the ASGI app around its pages, routes and sockets, and the call that serves it."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias, final

import trio
from hypercorn.config import Config

from simplexmcp.web.answers import STRICT, Answer, HttpRefusal, json_answer, text_answer
from simplexmcp.web.checks import Gate, Head, Rules
from simplexmcp.web.serving import Connections, base_config
from simplexmcp.web.socket import Receive, Send, Socket
from simplexmcp.web.static import PREFIX

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from simplexmcp.web.connection import Connection

__all__ = ["Limits", "Request", "Site", "serve_site"]

log = logging.getLogger(__name__)

_UNKNOWN = "This page opens only by its full address, which ends with its token: look for it where the program runs."
_BLOCK = 65_536
_CUT_OFF = (408, 413)  # statuses of a body that was not heard to its end
_CLOSE = ((b"connection", b"close"),)
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}"><title>…</title>'


@final
@dataclass(frozen=True)
class Limits:
    """What a site takes on: sizes in bytes, times in seconds."""

    connections: int = 128
    frame: int = 256 * 1024
    """Of one frame of a tab."""
    queue_frames: int = 1000
    queue_size: int = 16 * 1024 * 1024
    """What may wait for one tab."""
    stall: float = 30
    """Between two parts of a body."""
    idle: float = 75
    grace: float = 1.5


Handler: TypeAlias = "Callable[[Request], Awaitable[Answer]]"
Refuser: TypeAlias = "Callable[[int, str], Answer]"
SocketHandler: TypeAlias = "Callable[[Socket, Request], Awaitable[None]]"


@final
@dataclass(frozen=True)
class Site:
    """What is served; see the package's documentation."""

    name: str
    token: str | None
    assets: Mapping[str, Answer]
    pages: Mapping[str, str]
    """Path → name of an asset."""
    routes: Mapping[tuple[str, str], Handler] = field(default_factory=dict)
    """Method and path → handler."""
    sockets: Mapping[str, SocketHandler] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    rules: Rules = field(default_factory=Rules)
    refuse: Refuser = text_answer
    """Status and sentence → the answer to what no handler gets."""


async def serve_site(
    site: Site, listener: socket.socket, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve on a socket of `serving.listen` until cancelled; then tabs are told, within `grace`. Reports the port."""
    port: int = listener.getsockname()[1]
    finished = trio.Event()
    config = base_config(_StrictConfig(), site.limits.idle)
    config.websocket_max_message_size = site.limits.frame
    config.websocket_ping_interval = 20
    app = _App(site, Gate(site.name, port, site.token, site.rules), finished)
    connections = Connections(app, config, limit=site.limits.connections, grace=site.limits.grace)

    async def finish_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            finished.set()

    async with (
        trio.SocketListener(trio.socket.from_stdlib_socket(listener)) as accepting,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(finish_when_cancelled)
        with trio.CancelScope(shield=True):
            await connections.run(accepting, finished, partial(task_status.started, port))


class _StrictConfig(Config):
    """The strict headers stand on what hypercorn answers by itself, too."""

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        return [*super().response_headers(protocol), *STRICT]


@final
class Request:
    """A request that may be answered."""

    def __init__(self, head: Head, receive: Receive, limits: Limits) -> None:
        self.path, self.query = head.path, head.query
        self._length = head.headers.get(b"content-length")
        self._receive, self._limits = receive, limits
        self.ended = False
        """Whether the whole body was read."""

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes. HttpRefusal: larger than `limit` bytes, not whole, or too slow."""
        too_large = HttpRefusal(413, f"This is larger than {limit:,} bytes.")
        if self._length is not None and (not self._length.isdigit() or int(self._length[:20]) > limit):
            raise too_large
        seen = 0
        while not self.ended:
            try:
                with trio.fail_after(self._limits.stall):
                    message = await self._receive()
            except trio.TooSlowError:
                raise HttpRefusal(408, "The rest of the upload did not come.") from None
            if message["type"] != "http.request":
                raise HttpRefusal(400, "The upload broke off.")
            part: bytes = message.get("body", b"")
            seen += len(part)
            if seen > limit:
                raise too_large
            self.ended = not message.get("more_body", False)
            yield part

    async def swallow(self, read: trio.Event) -> None:
        """Read on into nothing: without a reader the connection of an unread body would hang. `read` at its end."""
        while not self.ended:
            message = await self._receive()
            self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        read.set()


@final
class _App:
    def __init__(self, site: Site, gate: Gate, finished: trio.Event) -> None:
        self._site, self._gate, self._finished = site, gate, finished

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        head = Head.of(scope)
        request = Request(head, receive, self._site.limits)
        refused = self._refused(scope, head)
        if head.socket:
            await self._socket(refused, scope["state"]["connection"], request, receive, send)
        else:
            answer = refused or await self._handled(head, request)
            await _send_answer(answer, request, send)

    def _refused(self, scope: Any, head: Head) -> Answer | None:
        """The answer to a request that nobody handles: a refusal, or the first visit with the token."""
        if scope["http_version"] not in ("1.1", "1.0"):
            return self._site.refuse(505, "Only HTTP/1.1 is served here.")
        if refused := self._gate.refusal(head):
            return self._site.refuse(refused.status, refused.text)
        if visit := self._gate.visit(head):
            cookie = (b"set-cookie", visit.cookie)
            if visit.direct:
                return Answer(303, headers=((b"location", visit.target.encode()), cookie))
            page = _REDIRECT.format(escape(visit.target)).encode()
            return Answer(200, page, b"text/html; charset=utf-8", headers=(cookie,))
        if not self._gate.is_known(head):
            return self._site.refuse(401, _UNKNOWN)
        return None

    async def _handled(self, head: Head, request: Request) -> Answer:
        handler = self._site.routes.get((head.method, head.path))
        if handler is None:
            return self._static(head)
        try:
            return await handler(request)
        except HttpRefusal as refusal:
            answer = json_answer({"error": str(refusal)}, refusal.status)
            return replace(answer, headers=_CLOSE) if refusal.status in _CUT_OFF else answer
        except Exception:
            # The last resort: the defect is logged, this tab gets a plain answer, the others go on.
            log.exception("A request failed")
            return json_answer({"error": "The server has a defect; its log says more."}, 500)

    def _static(self, head: Head) -> Answer:
        name = self._site.pages.get(head.path)
        if name is None and head.path.startswith(PREFIX):
            name = head.path.removeprefix(PREFIX)
        found = self._site.assets.get(name) if name is not None else None
        if found is None:
            return text_answer(404, "Nothing is here.")
        return found if head.method == "GET" else text_answer(405, "Only GET is served here.", ((b"allow", b"GET"),))

    async def _socket(
        self, refused: Answer | None, connection: Connection, request: Request, receive: Receive, send: Send
    ) -> None:
        handler = self._site.sockets.get(request.path)
        if refused is None and handler is not None:
            limits = self._site.limits
            tab = Socket(receive, send, connection, frames=limits.queue_frames, size=limits.queue_size)
            await tab.run(partial(_with_request, handler, request), self._finished)
            return
        answer = refused or text_answer(404, "Nothing is here.")
        head = {"type": "websocket.http.response.start", "status": answer.status, "headers": answer.fields()}
        await send(head)
        await send({"type": "websocket.http.response.body", "body": answer.body})


async def _with_request(handler: SocketHandler, request: Request, tab: Socket) -> None:
    await handler(tab, request)


async def _send_answer(answer: Answer, request: Request, send: Send) -> None:
    """Answer, while the rest of a body that nobody read runs into nothing: up to a second the client is heard out."""
    read = trio.Event()
    with answer.file or nullcontext():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(request.swallow, read)
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.fields()})
            async for part in _parts(answer):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            with trio.move_on_after(1):
                await read.wait()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            nursery.cancel_scope.cancel()


async def _parts(answer: Answer) -> AsyncIterator[bytes]:
    """Its body, or the bytes of its file, and no more than were promised."""
    if answer.file is None:
        yield answer.body
        return
    left = answer.size
    while left > 0 and (block := await trio.to_thread.run_sync(answer.file.read, min(left, _BLOCK))):
        left -= len(block)
        yield block
