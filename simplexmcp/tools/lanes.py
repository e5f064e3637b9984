"""One send at a time in each chat, in the order of the actions' numbers.

An owner's `/approve CHAT all` starts several performs at once, and tasks that start together run in any
order: the messages would come out of order, and the core wants the first one taken before the next.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Lanes"]


@final
class Lanes:
    """The lanes of all chats; a lane lives while somebody is in it."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[int, trio.Event]] = {}
        self._taken: set[str] = set()

    @asynccontextmanager
    async def turn(self, ref: str, number: int) -> AsyncGenerator[None]:
        """Wait until no other action sends to chat `ref` and none with a lower number waits for it."""
        lane = self._waiting.setdefault(ref, {})
        mine = lane[number] = trio.Event()
        try:
            # Whatever starts together is in the lane before the first one goes.
            await trio.lowlevel.checkpoint()
            while ref in self._taken or min(lane) != number:
                await mine.wait()
                mine = lane[number] = trio.Event()
            self._taken.add(ref)
        finally:
            del lane[number]
            self._wake(ref)
        try:
            yield
        finally:
            self._taken.discard(ref)
            self._wake(ref)

    def _wake(self, ref: str) -> None:
        lane = self._waiting.get(ref)
        if lane:
            lane[min(lane)].set()
        elif ref not in self._taken:
            self._waiting.pop(ref, None)
