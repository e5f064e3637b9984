"""The calls that are open: their progress, their end by the client or by the server, and the pulse of the held ones.

A call that ends within `first_byte` seconds is answered with plain JSON and costs no task of its own. An older one, or
one that has something to say, becomes an event stream; from then on it gets a sign of life every `pulse` seconds. One
task keeps the time of all calls: it sleeps until the earliest of them is due.
"""

from __future__ import annotations

import heapq
from itertools import count
from math import inf
from typing import TYPE_CHECKING, TypeAlias, final

import trio

from simplexmcp.listener import jsonrpc
from simplexmcp.listener.replies import event, priming, respond
from simplexmcp.listener.stream import EventStream

if TYPE_CHECKING:
    from simplexmcp.listener.limits import Limits
    from simplexmcp.listener.replies import Headers, Request, Settle

__all__ = ["Calls", "Closing", "OpenCall", "Session"]

Session: TypeAlias = "bytes | None"
"""The session id that a client sends along; None for a client that sends none."""

_COMMENT = b": waiting\n\n"
_COMES_BACK = b"2025-11-25"
"""The version whose clients come back to a stream that broke; older ones may stumble over an event without data."""


@final
class OpenCall:
    """One call from its request to its last byte; what the tool gets as its `Call`."""

    __slots__ = ("_calls", "_request", "_stream", "_value", "due", "ended", "id", "scope", "session", "text", "token")

    def __init__(
        self,
        calls: Calls,
        request: Request,
        session: Session,
        request_id: jsonrpc.RequestId,
        token: jsonrpc.RequestId | None,
    ) -> None:
        self._calls = calls
        self._request = request
        self._stream: EventStream | None = None
        self._value = 0
        self.session = session
        self.id = request_id
        self.token = token
        self.text = ""
        self.scope = trio.CancelScope()
        self.ended = ""
        self.due = 0.0

    def say(self, text: str) -> None:
        """Sets the progress text; sent at once when the client asked for progress."""
        self.text = jsonrpc.whole(text)
        if self.token is not None and self.due < inf:
            self.beat()

    def beat(self) -> None:
        """Gives the client a sign of life: the progress, or a comment when it asked for none."""
        self._value += 1
        self.due = trio.current_time() + self._calls.limits.pulse
        if self._stream is None:
            comes_back = self._request.headers.get(b"mcp-protocol-version") == _COMES_BACK
            self._stream = EventStream(self._request, self._calls.nursery, priming(self.id) if comes_back else b"")
        if self.token is None:
            self._stream.offer(_COMMENT)
        else:
            self._stream.offer(event(jsonrpc.progress_body(self.token, self._value, self.text)))

    def end(self, why: str) -> None:
        """Ends the wait of the call: the tool is cancelled, the client reads `why`."""
        if not self.ended:
            self.ended = why
            self.scope.cancel(reason=why)

    async def answer(
        self, body: bytes, settle: Settle = None, *, status: int = 200, headers: Headers | None = None
    ) -> None:
        """Sends the JSON-RPC response, as JSON or as the last event; then `settle`, if it was delivered. An event has
        no status and headers of its own."""
        self.rest()
        if self._stream is None:
            await respond(self._request, status, body, headers, settle)
        else:
            await self._stream.finish(event(body), settle)

    def rest(self) -> None:
        """No sign of life any more: the answer is on its way, or nobody waits for it."""
        self.due = inf


@final
class Calls:
    """All open calls."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: set[OpenCall] = set()
        self._over = ""
        self._none: trio.Event | None = None
        self._due: list[tuple[float, int, OpenCall]] = []
        self._order = count()
        self._nap = trio.CancelScope()
        self._nursery: trio.Nursery | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def full(self) -> str:
        """Why no more calls are opened, for the agent."""
        return f"{self.limits.calls} calls are open already; end some, or wait for them, before you make more."

    @property
    def nursery(self) -> trio.Nursery:
        """Where the writers of held calls run; there while `run` runs."""
        assert self._nursery is not None, "calls are served only while Calls.run runs"
        return self._nursery

    def open(
        self,
        request: Request,
        session: Session,
        request_id: jsonrpc.RequestId,
        token: jsonrpc.RequestId | None,
    ) -> OpenCall | None:
        """A new call, to be closed by who opened it; None when as many are open as may be."""
        if len(self._open) >= self.limits.calls:
            return None
        call = OpenCall(self, request, session, request_id, token)
        self._open.add(call)
        if self._over:
            call.end(self._over)
        call.due = trio.current_time() + self.limits.first_byte
        self._expect(call)
        return call

    def close(self, call: OpenCall) -> None:
        """The call has got its answer, or its client has gone."""
        call.rest()
        self._open.discard(call)
        if self._none is not None and not self._open:
            self._none.set()

    def cancel(self, session: Session, request_id: object) -> None:
        """`notifications/cancelled`: ends the calls of that session with that id.

        Every client counts its ids from 0, so without a session the id alone must be unique among such calls.
        """
        found = [
            call
            for call in self._open
            if call.session == session and type(call.id) is type(request_id) and call.id == request_id
        ]
        if session is not None or len(found) == 1:
            for call in found:
                call.end("cancelled by the client")

    def end_all(self, why: str) -> None:
        """Ends every open call, and each that is still to come; each client reads `why`."""
        self._over = why
        for call in list(self._open):
            call.end(why)

    async def emptied(self) -> None:
        """Returns when no call is open."""
        while self._open:
            self._none = self._none if self._none is not None and not self._none.is_set() else trio.Event()
            await self._none.wait()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keeps the calls alive until it is cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while True:
                with self._nap:
                    await trio.sleep_forever()
                now = trio.current_time()
                while self._due and self._due[0][0] <= now:
                    self._attend(heapq.heappop(self._due)[2], now)
                self._nap = trio.CancelScope(deadline=self._due[0][0] if self._due else inf)

    def _attend(self, call: OpenCall, now: float) -> None:
        """A time has come that once was noted for `call`: it may be over, or have been heard since."""
        if call.due == inf:
            return
        if call.due <= now:
            call.beat()
        heapq.heappush(self._due, (call.due, next(self._order), call))

    def _expect(self, call: OpenCall) -> None:
        heapq.heappush(self._due, (call.due, next(self._order), call))
        if call.due < self._nap.deadline:
            self._nap.deadline = call.due


@final
class Closing:
    """The end of a listener, in the hands of who runs it: `refuse`, end the tools, `drained`, `finish`."""

    def __init__(self) -> None:
        self.refusing = ""
        self.finished = trio.Event()
        self._why = ""
        self._calls: Calls | None = None

    def attach(self, calls: Calls) -> None:
        """The calls of the listener that this closing ends."""
        self._calls = calls
        if self.finished.is_set():
            calls.end_all(self._why)

    def refuse(self, why: str) -> None:
        """From now on new calls are answered 503; `why` is a sentence for the agent."""
        self.refusing = why

    async def drained(self, seconds: float) -> bool:
        """Waits until every open call has got its result, at most `seconds`; False when some are still open."""
        if self._calls is not None:
            with trio.move_on_after(seconds):
                await self._calls.emptied()
        return self._calls is None or not len(self._calls)

    def finish(self, why: str) -> None:
        """Calls that are still open get a JSON-RPC error with `why` as their last event; then `serve` returns."""
        self._why = why
        self.refusing = self.refusing or why
        if self._calls is not None:
            self._calls.end_all(why)
        self.finished.set()
