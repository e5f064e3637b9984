"""One POST to a port of this computer, its answer read as it comes. The border to h11.

Each request has a connection of its own: so every request finds the server that runs now, and a request that is
cancelled closes what the server waits on.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

__all__ = ["Answer", "LostError", "NotOpenedError", "post"]

_READ = 1 << 16  # bytes


class LostError(Exception):
    """The connection ended, or was silent too long, before the answer was there."""


class NotOpenedError(Exception):
    """Nothing answers on the port; nothing was sent."""


@final
@dataclass(frozen=True)
class Answer:
    """An answer whose body is still coming."""

    status: int
    headers: Mapping[bytes, bytes]
    """By names in lower case."""
    parts: AsyncIterator[bytes]
    """The body; ends at its end. Raises LostError."""

    async def whole(self, limit: int) -> bytes:
        """The body. Raises LostError, also for one of more than `limit` bytes."""
        body = bytearray()
        async for part in self.parts:
            body += part
            if len(body) > limit:
                raise LostError
        return bytes(body)


@asynccontextmanager
async def post(
    port: int, path: str, headers: Mapping[str, str], body: bytes, *, silence: float
) -> AsyncGenerator[Answer]:
    """The answer to a POST on 127.0.0.1; `silence` is the longest wait for the next byte, in seconds. Raises LostError,
    NotOpenedError."""
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError as error:
        raise NotOpenedError from error
    async with stream:
        connection = h11.Connection(h11.CLIENT)
        fields = {"Host": f"127.0.0.1:{port}", "Connection": "close", "Content-Length": str(len(body)), **headers}
        events = (
            h11.Request(method="POST", target=path, headers=list(fields.items())),
            h11.Data(body),
            h11.EndOfMessage(),
        )
        try:
            await stream.send_all(b"".join(connection.send(event) or b"" for event in events))
        except trio.BrokenResourceError as error:
            raise LostError from error
        head = await _next(connection, stream, silence)
        while isinstance(head, h11.InformationalResponse):
            head = await _next(connection, stream, silence)
        if not isinstance(head, h11.Response):
            raise LostError
        async with aclosing(_parts(connection, stream, silence)) as parts:
            yield Answer(head.status_code, dict(head.headers), parts)


async def _parts(connection: h11.Connection, stream: trio.SocketStream, silence: float) -> AsyncGenerator[bytes]:
    while isinstance(event := await _next(connection, stream, silence), h11.Data):
        yield bytes(event.data)


async def _next(connection: h11.Connection, stream: trio.SocketStream, silence: float) -> object:
    try:
        while (event := connection.next_event()) is h11.NEED_DATA:
            with trio.fail_after(silence):
                connection.receive_data(await stream.receive_some(_READ))
    except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.TooSlowError) as error:
        raise LostError from error
    if isinstance(event, h11.ConnectionClosed):
        raise LostError
    return event
