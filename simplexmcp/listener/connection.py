"""One client's connection, between trio's socket and hypercorn.

Everything that is done for a client happens in its connection's `scope`, which is cancelled as soon as the client has
left: hypercorn alone would keep the connection until its idle time is over, and shields its writes so that nothing but
a closed socket ends one to a client that does not read (`abort`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Connection"]

log = logging.getLogger(__name__)


@final
class Connection:
    """The stream that hypercorn serves; the app finds it in the request's state."""

    __slots__ = ("_corked", "_kept", "_settle", "_stream", "scope")

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._kept = b""
        self._corked = False
        self._settle: Callable[[], None] | None = None
        self.scope = trio.CancelScope()

    @property
    def socket(self) -> trio.socket.SocketType:
        """The client's socket (hypercorn reads its addresses)."""
        return self._stream.socket

    def cork(self) -> None:
        """Keeps what is sent next, so that it leaves in one packet with what follows `uncork`."""
        self._corked = True

    def uncork(self) -> None:
        """The next write takes the kept bytes along."""
        self._corked = False

    def on_delivery(self, settle: Callable[[], None] | None) -> None:
        """The next write is the end of an answer: when it went to a client that was there, `settle` is called in the
        same breath, so that no next request of this client can come before."""
        self._settle = settle

    async def send_all(self, data: bytes) -> None:
        """Sends; raises trio's errors of a lost or closed stream. Callers hold a lock, which is their checkpoint."""
        if self._corked:
            self._kept += data
            return
        if self._kept:
            data, self._kept = self._kept + data, b""
        if not data:
            return
        settle, self._settle = self._settle, None
        present = not self.scope.cancel_called
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost()
            raise
        if settle is not None and present:
            try:
                settle()
            except Exception:
                # The answer is out; a defect here must not cost the connection.
                log.exception("Settling a delivered result failed")

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
