"""libsimplex inside this process as the core: no port, so nobody else can drive it.

Commands run in worker threads beside each other; one loop takes the events. A thread that is in the library cannot be
called back, so the store is closed only when none is left in it, or not at all.
"""

from __future__ import annotations

import logging
import math
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, final

import trio

from simplexmcp.core.decode import UnreadableError, event_text, result_text
from simplexmcp.core.grammar import checked_command
from simplexmcp.core.libsimplex import load_library
from simplexmcp.core.pending import background
from simplexmcp.errors import CoreError, LinkLost, UserError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from simplexmcp.core.libsimplex import Store
    from simplexmcp.core.link import Event, Link

__all__ = ["open_native"]

_THREADS = 16
# Seconds.
_RECEIVE_WAIT = 0.5
_STOP_WAIT = 5.0
_CLOSE_WAIT = 5.0

_log = logging.getLogger(__name__)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@asynccontextmanager
async def open_native(
    prefix: Path, key: str = "", *, say: Callable[[str], None] = _to_stderr
) -> AsyncGenerator[Link, None]:
    """A link to the databases PREFIX_chat.db and PREFIX_agent.db, made when missing, encrypted with `key` unless it
    is empty. UserError when there is no library or they do not open. At the end the core is stopped and closed."""
    if "\0" in key or "\0" in str(prefix):
        raise UserError("The key and the folder of a database cannot hold a NUL character.")
    # A download is abandoned by Ctrl-C.
    library = await trio.to_thread.run_sync(load_library, say, abandon_on_cancel=True)
    try:
        store = await trio.to_thread.run_sync(library.open_store, prefix, key)
    except UnreadableError as error:
        raise UserError(f"libsimplex answered with {error}: it is not of a version that works here.") from None
    link = _NativeLink(store)
    try:
        async with background(link.receive, link.stop_receiving, _RECEIVE_WAIT * 4):
            yield link
    finally:
        await link.close()


@final
class _NativeLink:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_open = True
        self._ending = trio.Event()
        self._threads = trio.CapacityLimiter(_THREADS)
        self._receiver = trio.CapacityLimiter(1)
        self._to_reader, self._events = trio.open_memory_channel["Event"](math.inf)

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        return self._events

    @property
    def down_since(self) -> float | None:
        return None

    async def send(self, command: str) -> Event:
        checked_command(command)
        if not self._is_open:
            await trio.lowlevel.checkpoint()
            raise LinkLost("link/down", "SimpleX is stopped; nothing was done.")
        return await self._command(command)

    async def _command(self, command: str) -> Event:
        try:
            answer = await trio.to_thread.run_sync(
                self._store.command, command.encode(), limiter=self._threads, abandon_on_cancel=True
            )
            outcome = result_text(answer)
        except UnreadableError as error:
            raise CoreError("unexpected/unreadable", f"SimpleX answered with {error}.") from None
        if isinstance(outcome, CoreError):
            raise outcome
        return outcome

    async def receive(self, task_status: trio.TaskStatus[None]) -> None:
        """Takes events until `stop_receiving`."""
        task_status.started()
        wait = int(_RECEIVE_WAIT * 1_000_000)
        with self._to_reader:
            while not self._ending.is_set():
                try:
                    text = await trio.to_thread.run_sync(self._store.receive, wait, limiter=self._receiver)
                    if text:
                        self._to_reader.send_nowait(event_text(text))
                except UnreadableError as error:
                    _log.warning("SimpleX sent %s; ignored.", error)
                    # A library that fails at once each time must not take the processor.
                    await trio.sleep(_RECEIVE_WAIT)

    def stop_receiving(self) -> None:
        """Ends `receive` after the wait it is in."""
        self._ending.set()

    async def close(self) -> None:
        """Stops the core and closes its databases, in bounded time, also when cancelled."""
        self._is_open = False
        with trio.move_on_after(_STOP_WAIT, shield=True):
            try:
                await self._command("/_stop")
            except CoreError as error:
                _log.warning("SimpleX did not stop in order: %s", error)
        with trio.move_on_after(_CLOSE_WAIT, shield=True) as closing:
            for limiter in (self._threads, self._receiver):
                await _drained(limiter)
            failure = await trio.to_thread.run_sync(self._store.close, abandon_on_cancel=True)
            if failure:
                _log.warning("The databases of SimpleX did not close in order: %s", failure)
        if closing.cancelled_caught:
            _log.warning("SimpleX is still at work; its databases are left to the end of the process.")


async def _drained(limiter: trio.CapacityLimiter) -> None:
    """Waits until no thread holds a token, and lets no other take one."""
    for _ in range(int(limiter.total_tokens)):
        await limiter.acquire_on_behalf_of(object())
