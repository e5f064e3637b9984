"""What a watcher waits for: a write to the database, the end of its owner, a signal, or a moment."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, final

from simplexmcp.rooms.lock import alive
from simplexmcp.rooms.wake import POLL, Wake

if TYPE_CHECKING:
    from types import FrameType, TracebackType

__all__ = ["Bell"]

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_OWNER_SLICE = 5.0  # seconds between two looks at an owner that the kernel cannot report on
_GAP = 0.01  # seconds at least between two writes that are told: many writers are no reason to read as often


@final
class Bell:
    """A context manager: inside, signals are noted, not raised. `instant` False: writes are not told."""

    def __init__(self, path: str, owner: int | None, *, instant: bool) -> None:
        self.signal: int | None = None
        self.written = True
        self._path = path
        self._instant = instant
        self._wake: Wake | None = None
        self._owner = owner
        self._owner_fd: int | None = None
        self._ends = select.poll()
        self._all = select.poll()
        self._pipe = (-1, -1)
        self._handlers: dict[signal.Signals, object] = {}
        self._wakeup = -1

    @property
    def polls(self) -> bool:
        """Whether writes should be told but the kernel cannot: then `wait` returns every `POLL` seconds."""
        return self._wake is not None and self._wake.fileno() is None

    def __enter__(self) -> Bell:
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._note)
        self._register(self._pipe[0])
        if self._owner is not None and (fd := _process(self._owner)) is not None:
            self._owner_fd = fd
            self._register(fd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        signal.set_wakeup_fd(self._wakeup)
        for fd in (*self._pipe, self._owner_fd):
            if fd is not None:
                os.close(fd)
        if self._wake is not None:
            self._wake.close()

    def owner_lives(self) -> bool:
        """Whether the owner, if there is one, still runs."""
        if self._owner is None:
            return True
        if self._owner_fd is None:
            return alive(self._owner)
        return not select.select([self._owner_fd], [], [], 0)[0]

    def wait(self, until: float) -> None:
        """Returns at a write (then `written` is True), a signal, the owner's end, or the moment (time.monotonic)."""
        if self._instant and self._wake is None:
            self._listen()
            return
        if self.written and self._instant:
            self.written = False
            if self._poll(self._ends, min(until, time.monotonic() + _GAP)):
                return
        while self.signal is None and self.owner_lives():
            if self._wake is not None and self._wake.drain():
                self.written = True
                return
            now = time.monotonic()
            if now >= until:
                return
            if self.polls:
                self._poll(self._ends, min(until, now + POLL))
                return
            again = self._wake.again() if self._wake is not None else None
            self._poll(self._all, min(until, now + _OWNER_SLICE, until if again is None else again))

    def _listen(self) -> None:
        """Asks the kernel to tell of writes. To open and close that takes it a while: who has news need not wait."""
        self._wake = Wake(self._path)
        if (fd := self._wake.fileno()) is not None:
            self._all.register(fd, select.POLLIN)
        self.written = True  # what was written before

    def _register(self, fd: int) -> None:
        self._ends.register(fd, select.POLLIN)
        self._all.register(fd, select.POLLIN)

    def _poll(self, poll: select.poll, until: float) -> bool:
        return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number


def _process(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the kernel has none, or it has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
