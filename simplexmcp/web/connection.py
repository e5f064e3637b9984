"""One client's connection, between trio's socket and hypercorn.

Everything that is done for a client happens in its connection's `scope`, which is cancelled as soon as the client has
left: hypercorn alone would keep the connection until its idle time is over, and shields its writes so that nothing but
a closed socket ends one to a client that does not read (`abort`).
"""

from __future__ import annotations

import trio

__all__ = ["Connection"]


class Connection:
    """The stream that hypercorn serves; the app finds it in the request's state as `connection`."""

    __slots__ = ("_stream", "scope")

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.scope = trio.CancelScope()

    @property
    def socket(self) -> trio.socket.SocketType:
        """The client's socket (hypercorn reads its addresses)."""
        return self._stream.socket

    async def send_all(self, data: bytes) -> None:
        """Sends; raises trio's errors of a lost or closed stream. Callers hold a lock, which is their checkpoint."""
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost()
            raise

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receives; an end of the stream or of the connection means that the client is gone."""
        try:
            data = await self._stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost()
            raise
        if not data:
            self._lost()
        return bytes(data)

    async def send_eof(self) -> None:
        """Says the end to the client."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Closes the socket."""
        await self._stream.aclose()

    def abort(self) -> None:
        """Closes the socket at once: a send or receive that waits ends with trio.ClosedResourceError."""
        self._stream.socket.close()

    def _lost(self) -> None:
        self.scope.cancel(reason="the client has left")
