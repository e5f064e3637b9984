"""The event stream of a held call: written by a task of its own, so that nobody waits for a client that does not read.

At most one chunk waits besides the one that is being written; a newer chunk takes its place. So progress can be lost
and memory cannot grow. The last event is never lost: `finish` waits until it was written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

import trio

from simplexmcp.listener.replies import EVENT_STREAM

if TYPE_CHECKING:
    from simplexmcp.listener.replies import Request, Settle

__all__ = ["EventStream"]

log = logging.getLogger(__name__)


@final
class EventStream:
    """A response of events. The writer runs in `nursery` only while there is something to write."""

    __slots__ = ("_first", "_free", "_next", "_nursery", "_request", "_writing")

    def __init__(self, request: Request, nursery: trio.Nursery | None = None, first: bytes = b"") -> None:
        """`first` comes before the first chunk that `offer` writes; without a `nursery` there is only `finish`."""
        self._request = request
        self._first = first
        self._nursery = nursery
        self._next = b""
        self._writing = False
        self._free: trio.Event | None = None

    def offer(self, chunk: bytes) -> None:
        """Writes `chunk` when the client takes it, unless a newer one comes first."""
        self._next = chunk
        if not self._writing:
            self._writing = True
            assert self._nursery is not None
            self._nursery.start_soon(self._write)

    async def finish(self, chunk: bytes, settle: Settle) -> None:
        """Writes the last chunk and ends the response; then `settle`, if it was delivered. Waits as long as the client
        does not read."""
        while self._writing:
            self._next = b""
            self._free = trio.Event()
            await self._free.wait()
        # The event and the end of the response leave together: a client may close as soon as it has read the event.
        request = self._request
        request.connection.cork()
        try:
            await self._begin()
            await request.send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            request.connection.uncork()
        request.connection.on_delivery(settle)
        await request.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self) -> None:
        try:
            while self._next:
                chunk, self._next = self._next, b""
                await self._send(chunk)
        except Exception:
            # A stream that fails is that client's loss; raised from here it would end the server.
            log.exception("A held call's stream failed")
            self._request.connection.abort()
        finally:
            self._writing = False
            if self._free is not None:
                self._free.set()

    async def _send(self, chunk: bytes) -> None:
        request = self._request
        request.connection.cork()
        try:
            await self._begin()
        finally:
            request.connection.uncork()
        chunk, self._first = self._first + chunk, b""
        await request.send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _begin(self) -> None:
        if not self._request.started:
            self._request.started = True
            await self._request.send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
