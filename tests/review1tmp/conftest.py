"""Time in these tests runs ten times faster than on the wall, and skips what everybody only waits for."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import trio
from trio.testing import MockClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# Seconds on the wall. All that talk are tasks of one process: what one sends is there for the other at once.
_IDLE = 0.001


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A clock fixture would have to be named by each test: pytest-trio looks at a test's own arguments only.
    for item in items:
        ours = "/e2e/" in str(item.path) and inspect.iscoroutinefunction(getattr(item, "obj", None))
        if ours and not any("run" in marker.kwargs for marker in item.iter_markers("trio")):
            item.add_marker(pytest.mark.trio(run=_fast), append=False)


def _fast(*args: Any, clock: trio.abc.Clock | None = None, **options: Any) -> Any:
    if clock is not None:
        return trio.run(*args, clock=clock, **options)
    skipping = MockClock(rate=10.0, autojump_threshold=_IDLE)
    busy = 0

    def not_skipped(do: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """What a thread or another process takes is not skipped."""

        async def done(*args: Any, **options: Any) -> Any:
            nonlocal busy
            busy += 1
            skipping.autojump_threshold = math.inf
            try:
                return await do(*args, **options)
            finally:
                busy -= 1
                if not busy:
                    skipping.autojump_threshold = _IDLE

        return done

    with (
        patch.object(trio.to_thread, "run_sync", not_skipped(trio.to_thread.run_sync)),
        patch.object(trio, "run_process", not_skipped(trio.run_process)),
    ):
        return trio.run(*args, clock=skipping, **options)
