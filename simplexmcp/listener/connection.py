"""One client's connection to the listener: that of `web/connection`, and when an answer was delivered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

from simplexmcp.web import connection

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

__all__ = ["Connection"]

log = logging.getLogger(__name__)


@final
class Connection(connection.Connection):
    """The stream that hypercorn serves; the app finds it in the request's state."""

    __slots__ = ("_corked", "_kept", "_settle")

    def __init__(self, stream: trio.SocketStream) -> None:
        super().__init__(stream)
        self._kept = b""
        self._corked = False
        self._settle: Callable[[], None] | None = None

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
        await super().send_all(data)
        if settle is not None and present:
            try:
                settle()
            except Exception:
                # The answer is out; a defect here must not cost the connection.
                log.exception("Settling a delivered result failed")
