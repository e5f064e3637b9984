"""What is fuzzed, and how it is run: `run(NAME, budget)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock

from tests.fuzz.bridge import bridge
from tests.fuzz.budget import memory, replayable
from tests.fuzz.http import http, page
from tests.fuzz.link import link
from tests.fuzz.readers import readers
from tests.fuzz.rooms import lines
from tests.fuzz.server import answers, events
from tests.fuzz.viewer import viewer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.fuzz.budget import Budget

__all__ = ["TARGETS", "run"]

TARGETS: dict[str, Callable[[Budget], Awaitable[None]]] = {
    "readers": readers, "link": link, "events": events, "answers": answers, "http": http, "page": page, "lines": lines,
    "viewer": viewer, "bridge": bridge,
}  # fmt: skip

_CLOCKS: dict[str, Callable[[], MockClock]] = {
    "link": lambda: MockClock(autojump_threshold=0), "events": MockClock, "answers": MockClock,
}  # fmt: skip


def run(name: str, budget: Budget) -> int:
    """Tries the inputs of a budget; by how many bytes the process has grown. A failure names its input."""
    before = memory()
    clock = _CLOCKS[name]() if name in _CLOCKS else None
    with replayable(name, budget):
        trio.run(TARGETS[name], budget, clock=clock)
    return memory() - before
