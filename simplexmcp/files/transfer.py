"""One file on its way from the core, and those who wait for it: the agent's download and its owner's `/forward`.

`Receiving` is the side of `downloads`, `Transfer` the side of one who waits.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import trio

from simplexmcp.errors import CoreError, Refused

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from simplexmcp.chats import Chat
    from simplexmcp.files.folders import Place
    from simplexmcp.files.relays import Relay
    from simplexmcp.messages import ChatFile

__all__ = ["Receiving", "Transfer"]


@final
class Receiving:
    """What is known of a file that is being received."""

    def __init__(self, chat: Chat, file: ChatFile, place: Place, approved: frozenset[Relay]) -> None:
        self.chat, self.file, self.approved = chat, file, approved
        self.place: Place = place
        """Where the core is asked to put it."""
        self.target: Path | None = None
        """The file that the core was asked to make."""
        self.percent = 0
        self.received = 0
        self.risen_at = trio.current_time()
        """When more of it came the last time, by trio's clock."""
        self.complete: Path | None = None
        """Where the core put the whole file."""
        self.arrived: Path | None = None
        """Where the whole file is now, safe to read."""
        self.error: Refused | CoreError | None = None
        self.to_cancel = False
        """The core is to be told that nobody wants it any more."""
        self.unsure = False
        """The item has to be read before its time."""
        self.ended = trio.Event()
        """Nothing is done with it any more, and after a failure nothing of it is left."""
        self._takers: dict[Place, int] = {"received": 0, "forwarded": 0}
        self._changed = trio.Event()
        self._woken = trio.Event()

    @property
    def in_place(self) -> bool:
        """True when the agent may have it."""
        return self.arrived is not None and self.place == "received"

    def takers(self, place: Place | None = None) -> int:
        """How many wait for it, or work with it."""
        return sum(self._takers.values()) if place is None else self._takers[place]

    @contextmanager
    def taken(self, place: Place) -> Generator[None]:
        """Somebody waits for it in `place`: it stays where it is for one who forwards it."""
        self._takers[place] += 1
        self.wake()
        try:
            yield
        finally:
            self._takers[place] -= 1
            self.wake()

    def rise(self, received: int, total: int) -> None:
        """So many bytes came, of all."""
        if received > self.received:
            self.received, self.risen_at = received, trio.current_time()
        percent = min(99, 100 * received // total) if total > 0 else 0
        if percent > self.percent:
            self.percent = percent
            self.tell()

    def fail(self, error: Refused | CoreError, *, cancel: bool = False) -> None:
        """It will not come. The first reason stays."""
        if self.error is None:
            self.error, self.to_cancel = error, cancel
        self.wake()

    def check(self) -> None:
        """Something happened that only the item tells."""
        self.unsure = True
        self.wake()

    def wake(self) -> None:
        """Let the one who receives it look again, and those who wait."""
        event, self._woken = self._woken, trio.Event()
        event.set()
        self.tell()

    async def woken(self) -> None:
        """Return at the next `wake`."""
        await self._woken.wait()

    def tell(self) -> None:
        """Let those who wait look again."""
        event, self._changed = self._changed, trio.Event()
        event.set()

    async def changed(self) -> None:
        """Return at the next change."""
        await self._changed.wait()


@final
class Transfer:
    """A file on its way, for one who wants it in `place`."""

    def __init__(self, receiving: Receiving, place: Place) -> None:
        self._receiving, self._place = receiving, place

    @property
    def percent(self) -> int:
        """How much of it came; 100 when all is here."""
        return 100 if self._receiving.arrived is not None else self._receiving.percent

    async def changed(self) -> None:
        """Return at the next change of `percent` or outcome. What is looked at before, without an await between, misses
        none."""
        await self._receiving.changed()

    async def done(self) -> Path:
        """The path of the whole file, mode 0600. Raises Refused, CoreError: why it did not come, when nothing of it is
        left. Cancellation ends the wait, not the transfer."""
        receiving = self._receiving
        while True:
            if receiving.error is not None:
                await receiving.ended.wait()
                raise _again(receiving.error)
            if receiving.arrived is not None and (self._place == "forwarded" or receiving.in_place):
                await trio.lowlevel.checkpoint()
                return receiving.arrived
            await receiving.changed()


def _again(error: Refused | CoreError) -> Refused | CoreError:
    """The same error for one more who waits: a raised one collects where it was raised."""
    return Refused(str(error)) if isinstance(error, Refused) else type(error)(error.tag, str(error), error.error)
