"""One client's connection, between trio's socket and hypercorn.

hypercorn shields its writes and hears of a lost client only in its own loop. Here both borders are watched: `on_gone`
is called at once when the client has left, `delivered` says whether the last write went to a client that was there, and
`abort` ends even a write that waits for a client that does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Connection"]


@final
class Connection:
    """The stream that hypercorn serves; the app finds it in the request's state."""

    __slots__ = ("_corked", "_kept", "_stream", "delivered", "gone", "on_gone")

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._kept = b""
        self._corked = False
        self.delivered = False
        self.gone = False
        self.on_gone: Callable[[], None] | None = None

    @property
    def socket(self) -> trio.socket.SocketType:
        """The client's socket (hypercorn reads its addresses)."""
        return self._stream.socket

    def cork(self) -> None:
        """Keeps what is sent next, so that it leaves in one packet with what follows `uncork`."""
        self._corked = True

    def uncork(self) -> None:
        """The next send takes the kept bytes along."""
        self._corked = False

    async def send_all(self, data: bytes) -> None:
        """Sends; raises trio's errors of a lost or closed stream. Callers hold a lock, which is their checkpoint."""
        if self._corked:
            self._kept += data
            return
        if self._kept:
            data, self._kept = self._kept + data, b""
        if not data:
            return
        self.delivered, present = False, not self.gone
        try:
            await self._stream.send_all(data)
            self.delivered = present
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
        if not self.gone:
            self.gone = True
            if self.on_gone is not None:
                self.on_gone()
