"""One tab's WebSocket: text frames both ways, with bounded queues. A tab that does not read is cut off.

hypercorn inflates a compressed frame before it looks at its size, and keeps all that comes after a frame that was too
large, until the client leaves. It has no switch for either: both are taken from it here.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, TypeAlias, final

import trio
from hypercorn.protocol.ws_stream import FrameTooLargeError, WebsocketBuffer, WSStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wsproto.events import Message

    from simplexmcp.web.connection import Connection

__all__ = ["GOING_AWAY", "POLICY", "Receive", "Send", "Socket"]

log = logging.getLogger(__name__)

Receive: TypeAlias = "Callable[[], Awaitable[Any]]"
Send: TypeAlias = "Callable[[Any], Awaitable[None]]"

NORMAL, GOING_AWAY, UNSUPPORTED, POLICY, DEFECT = 1000, 1001, 1003, 1008, 1011
"""Close codes."""

_LINGER = 1.0
"""Seconds for the other side to hear the end."""


@final
class Socket:
    """`async for text in socket` gives frames until the tab leaves; `send` and `close` never wait."""

    def __init__(self, receive: Receive, send: Send, connection: Connection, *, frames: int, size: int) -> None:
        self._receive, self._send, self._connection = receive, send, connection
        self._push, self._queue = trio.open_memory_channel[str | tuple[int, str]](math.inf)
        self._free_frames, self._free_size = frames, size
        self._ended = False

    def __aiter__(self) -> Socket:
        return self

    async def __anext__(self) -> str:
        message = await self._receive()
        if message["type"] != "websocket.receive" or self._ended:
            raise StopAsyncIteration
        text = message.get("text")
        if not isinstance(text, str):
            self.close(UNSUPPORTED, "Only text frames are understood.")
            raise StopAsyncIteration
        return text

    def send(self, text: str) -> None:
        """Queue a frame. When the tab has not read for too long its connection is closed at once."""
        if self._ended:
            return
        self._free_frames -= 1
        self._free_size -= len(text)
        if self._free_frames < 0 or self._free_size < 0:
            self._ended = True
            # The way to it is full: a closing frame would wait behind the rest.
            self._connection.abort()
            return
        self._push.send_nowait(text)

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """End it after what is queued; `reason` has at most 120 bytes."""
        if not self._ended:
            self._ended = True
            self._push.send_nowait((code, reason))

    async def run(self, handler: Callable[[Socket], Awaitable[None]], finished: trio.Event) -> None:
        """Accept, let the handler work until one of the sides ends it, and say goodbye. `finished`: the server ends."""
        await self._receive()
        _bound(self._send, self._connection)
        await self._send({"type": "websocket.accept"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, nursery.cancel_scope)
            nursery.start_soon(self._end_with, finished)
            try:
                await handler(self)
            except Exception:
                log.exception("A tab's requests failed")
                self.close(DEFECT, "The server has a defect.")
            self.close()
            # The writer cancels this when the end was sent.
            await trio.sleep(_LINGER)
            nursery.cancel_scope.cancel()
        # A socket that is closed with unread bytes in it would take back what was sent last.
        with trio.move_on_after(_LINGER):
            while (await self._receive())["type"] != "websocket.disconnect":
                pass

    async def _write(self, work: trio.CancelScope) -> None:
        """Send what is queued; the end of it ends the work."""
        async for frame in self._queue:
            if isinstance(frame, tuple):
                code, reason = frame
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
                break
            await self._send({"type": "websocket.send", "text": frame})
            self._free_frames += 1
            self._free_size += len(frame)
        work.cancel()

    async def _end_with(self, finished: trio.Event) -> None:
        await finished.wait()
        self.close(GOING_AWAY, "The server ended.")


def _bound(send: Any, connection: Connection) -> None:
    """Before a WebSocket is accepted: no compression, and an end soon after a frame that is too large."""
    stream = send.__self__
    assert isinstance(stream, WSStream)
    stream.handshake.extensions = None
    stream.buffer = _Frames(stream.buffer.max_length, connection)


@final
class _Frames(WebsocketBuffer):
    """The frame that comes in. Nothing is kept of one that is too large, and its sender has a moment to read so."""

    def __init__(self, max_length: int, connection: Connection) -> None:
        super().__init__(max_length)
        self._connection = connection
        self._refused = False

    def extend(self, event: Message[Any]) -> None:
        try:
            if self._refused:
                raise FrameTooLargeError
            super().extend(event)
        except FrameTooLargeError:
            if not self._refused:
                self._refused = True
                self.value = None
                self._connection.scope.deadline = trio.current_time() + _LINGER
            raise
