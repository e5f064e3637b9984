"""The server's loop: lines in, lines out, and the calls that wait for a change of the database.

One thread. Handlers start in the order in which requests arrive. Between two of them the loop reads what came
meanwhile, so that a request can be cancelled before its turn. Nothing blocks: what the client does not read waits in a
buffer, and while that is long no handler starts. All is bounded: a line, the requests in hand, the answers.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Any, final

from simplexmcp.rooms.errors import DatabaseError
from simplexmcp.rooms.program import emit_error
from simplexmcp.rooms.protocol import Request, Session, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simplexmcp.rooms.store.database import Database
    from simplexmcp.rooms.wake import Wake

__all__ = ["LINE_LIMIT", "serve"]

LINE_LIMIT = 64 * 1024 * 1024  # bytes, the end of the line not counted
_QUEUE_LIMIT = 32 * 1024 * 1024  # bytes of requests that wait for their turn; beyond it nothing is read
_OUTPUT_LIMIT = 8 * 1024 * 1024  # bytes of answers that the client did not read; beyond it no handler starts
_CHUNK = 256 * 1024
_GRACE = 3.0  # seconds that a stop may take
# How often the database's version is looked at while calls wait: to be sure, or where nothing else tells of a change.
_TICK, _TICK_ALONE = 0.5, 0.2
_UNREAD = "nobody reads the answers any more: stdout is closed"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@final
class _Fatal(Exception):  # noqa: N818 - ends the server
    """What makes going on impossible."""


def serve(session: Session, database: Database) -> int:
    """Serves the client behind stdin and stdout until it closes stdin or a signal comes; the exit code: 0, or 1 when a
    line was too long or nobody reads the answers."""
    loop = _Loop(session, database)
    alarm_out, alarm_in = os.pipe()
    os.set_blocking(alarm_in, False)
    wakeup_before = signal.set_wakeup_fd(alarm_in, warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, loop.stop) for number in _SIGNALS}
    blocking = os.get_blocking(1)
    os.set_blocking(1, False)
    try:
        return loop.run(alarm_out)
    finally:
        os.set_blocking(1, blocking)  # a terminal is shared with the shell
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup_before)
        os.close(alarm_in)
        os.close(alarm_out)


@final
class _Loop:
    def __init__(self, session: Session, database: Database) -> None:
        self._session = session
        self._database = database
        self._input = _Lines()
        self._output = _Output()
        self._queue: deque[tuple[Request | str, int]] = deque()
        self._queued = 0
        self._ended = False  # no more input
        self._stopped = False
        self._limited = False
        self._wake: Wake | None = None
        self._attentive = False  # whether a call waits, so that writes of others matter
        self._version = 0
        self._tick_at = 0.0
        self._news = False  # the parked calls are to be asked

    def stop(self, *_signal: Any) -> None:
        """Ends the loop at its next step; that may be far away while the database is busy."""
        self._stopped = True
        self._limit_the_end()

    def run(self, alarm: int) -> int:
        """The loop, and the orderly end after it; the exit code."""
        code = 0
        try:
            while not self._stopped and not self._is_done():
                self._step(alarm)
        except _Fatal as fatal:
            emit_error(f"simplexmcp rooms: {fatal}")
            code = 1
        self._limit_the_end()
        self._session.end()
        self._close_wake()
        try:
            self._output.flush(_GRACE)
        except BrokenPipeError:
            code = 1
        return code

    def _limit_the_end(self) -> None:
        if not self._limited:
            self._limited = True
            _thread.start_new_thread(_leave_by_force, ())

    def _is_done(self) -> bool:
        """Whether the client closed its side and all its requests are answered, or it does not read the answers."""
        if not self._ended:
            return False
        return not self._queue or (self._is_full() and time.monotonic() > self._output.moved_at + _GRACE)

    def _is_full(self) -> bool:
        return self._output.size > _OUTPUT_LIMIT

    def _step(self, alarm: int) -> None:
        ready = self._poll(alarm)
        if 0 in ready:
            self._read()
        if alarm in ready:
            os.read(alarm, 64)
        if ready.get(1, 0) & ~select.POLLOUT and not self._is_done():
            raise _Fatal(_UNREAD)
        if self._output.size:
            self._write()
        if self._queue and not self._is_full():
            self._take_turn()
        if self._session.waits:
            self._attend()
        else:
            self._attentive = self._news = False

    def _poll(self, alarm: int) -> dict[int, int]:
        poll = select.poll()
        poll.register(alarm, select.POLLIN)
        if not self._ended and self._queued <= _QUEUE_LIMIT:
            poll.register(0, select.POLLIN)
        poll.register(1, select.POLLOUT if self._output.size else 0)
        if self._attentive and self._wake is not None and (descriptor := self._wake.fileno()) is not None:
            poll.register(descriptor, select.POLLIN)
        return dict(poll.poll(self._patience()))

    def _patience(self) -> float | None:
        """How long nothing may happen, in ms; None: for ever."""
        if self._news or (self._queue and not self._is_full()):
            return 0
        until = self._session.next_deadline()
        if until is not None and self._wake is not None:
            until = min(until, self._tick_at, self._wake.again() or until)
        if self._ended:
            until = self._output.moved_at + _GRACE
        return None if until is None else max(0.0, until - time.monotonic()) * 1000

    def _read(self) -> None:
        try:
            data = os.read(0, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._ended = True
            if self._queue:
                self._session.end()  # before anything is marked as read for a client that left
            return
        for line in self._input.feed(data):
            self._arrive(line)

    def _arrive(self, line: bytes) -> None:
        request = decode(line)
        if request is None:
            return
        if isinstance(request, Request) and request.method == "notifications/cancelled":
            self._cancel(request.params.get("requestId"))
            if request.id is None:
                return
        self._queue.append((request, len(line)))
        self._queued += len(line)

    def _cancel(self, key: Any) -> None:
        for entry in [entry for entry in self._queue if isinstance(entry[0], Request) and entry[0].id == key]:
            if key is not None and not isinstance(key, bool):
                self._queue.remove(entry)
                self._queued -= entry[1]
        self._session.cancel(key)

    def _take_turn(self) -> None:
        request, length = self._queue.popleft()
        self._queued -= length
        answer = request if isinstance(request, str) else self._session.start(request)
        if answer is not None:
            self._output.put(answer)
            self._write()
        if self._ended:
            self._session.end()
        self._news = self._session.waits > 0

    def _attend(self) -> None:
        """Asks the parked calls when the database changed, a call was made here, or their time is over."""
        if not self._attentive:
            self._open_wake()
        assert self._wake is not None
        if self._wake.drain():
            self._news = True
        now = time.monotonic()
        if now >= self._tick_at:
            self._tick_at = now + (_TICK_ALONE if self._wake.fileno() is None else _TICK)
            self._news = self._version_changed() or self._news
        deadline = self._session.next_deadline()
        if self._news or (deadline is not None and now >= deadline):
            self._news = False
            for answer in self._session.probe():
                self._output.put(answer)
            self._write()

    def _version_changed(self) -> bool:
        try:
            version = self._database.data_version()
        except DatabaseError:
            return True  # the parked calls tell their clients
        changed, self._version = version != self._version, version
        return changed

    def _open_wake(self) -> None:
        if self._wake is None:
            from simplexmcp.rooms.wake import Wake  # costs start time that only a wait needs

            self._wake = Wake(self._database.path)  # kept, since to close it takes the kernel a while
        self._attentive = True
        self._tick_at = 0.0
        self._news = True  # what was written between the call's first look and now

    def _close_wake(self) -> None:
        if self._wake is not None:
            self._wake.close()
            self._wake = None

    def _write(self) -> None:
        try:
            self._output.write()
        except BrokenPipeError as error:
            raise _Fatal(_UNREAD) from error


@final
class _Lines:
    """Cuts the input into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now. Raises _Fatal for one that is too long."""
        searched = len(self._rest)
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, searched))) >= 0:
            self._check(end - start)
            yield bytes(self._rest[start:end])
            start = end + 1
        del self._rest[:start]
        self._check(len(self._rest))

    def _check(self, length: int) -> None:
        if length > LINE_LIMIT:
            raise _Fatal(f"a line of the client is longer than {LINE_LIMIT} bytes; the server ends")


@final
class _Output:
    """Answers that are not written yet."""

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()
        self.size = 0
        self.moved_at = 0.0  # when the client last read something, at the latest (time.monotonic)

    def put(self, answer: str) -> None:
        """Adds one line."""
        data = answer.encode() + b"\n"
        self._parts.append(memoryview(data))
        self.size += len(data)

    def write(self) -> None:
        """Writes what the client takes now. Raises BrokenPipeError when it takes nothing any more."""
        while self._parts:
            part = self._parts[0]
            try:
                written = os.write(1, part)
            except BlockingIOError:
                return
            except OSError as error:
                raise BrokenPipeError from error
            self.size -= written
            self.moved_at = time.monotonic()
            if written < len(part):
                self._parts[0] = part[written:]
            else:
                self._parts.popleft()

    def flush(self, seconds: float) -> None:
        """Writes the rest, for a while."""
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(1, select.POLLOUT)
        self.write()
        while self._parts and (left := until - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self.write()


def _leave_by_force() -> None:
    """Ends the process when its orderly end takes too long."""
    time.sleep(_GRACE)
    os._exit(1)
