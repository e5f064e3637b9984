"""Runs of trio whose time is not the wall's: it skips what everybody only waits for."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trio
from trio.testing import MockClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__ = ["IDLE", "run_skipping", "within"]

# Seconds on the wall. All that talk are tasks of one process: what one sends is there for the other at once.
IDLE = 0.001


def run_skipping(*args: Any, clock: trio.abc.Clock | None = None, **options: Any) -> Any:
    """Like `trio.run`; its time skips waits, but never what a thread or another process takes: a busy machine
    lets deadlines pass no sooner than a clock on the wall."""
    if clock is not None:
        return trio.run(*args, clock=clock, **options)
    skipping = MockClock(rate=1.0, autojump_threshold=IDLE)
    busy = 0

    def not_skipped(do: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def done(*args: Any, **options: Any) -> Any:
            nonlocal busy
            busy += 1
            skipping.autojump_threshold = math.inf
            try:
                return await do(*args, **options)
            finally:
                busy -= 1
                if not busy:
                    skipping.autojump_threshold = IDLE

        return done

    with (
        patch.object(trio.to_thread, "run_sync", not_skipped(trio.to_thread.run_sync)),
        patch.object(trio, "run_process", not_skipped(trio.run_process)),
    ):
        return trio.run(*args, clock=skipping, **options)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails after so many seconds on the wall, however fast the time of the run is."""
    clock = trio.lowlevel.current_clock()
    rate = clock.rate if isinstance(clock, MockClock) else 1.0
    with trio.fail_after(seconds * max(1.0, rate)):
        yield
