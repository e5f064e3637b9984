"""The way to the core over a loss: commands pass while the core behind the link is prepared, events go on in order.

When the link is lost, the gate closes: what is asked of the core meanwhile fails at once, undone. When it is there
again, the core is prepared as at the start, tried again for ever while that fails; only then the gate opens, and what
came meanwhile follows the news that chats have to be read again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

import trio

from simplexmcp.core.link import LINK_DOWN, LINK_SHARED, LINK_UP
from simplexmcp.errors import CoreError, LinkLost
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.audit import Audit
    from simplexmcp.core.link import Event, Link

__all__ = ["Gate", "Uplink"]

_log = logging.getLogger(__name__)

# Seconds between two tries of getting the core ready, doubled from one to the next.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


@final
class Gate:
    """A link (`core.link.Link`) whose commands pass only while it is open, as it is at first."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._closed_since: float | None = None

    async def send(self, command: str) -> Event:
        """The core's response. `link/down` while the gate is closed: nothing was done."""
        if self._closed_since is not None:
            await trio.lowlevel.checkpoint()
            raise LinkLost("link/down", "The link to the SimpleX core is down; nothing was done.")
        return await self._link.send(command)

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        """The link's events; `Uplink` reads them."""
        return self._link.events

    @property
    def down_since(self) -> float | None:
        """Since when no command passes, in seconds since the epoch."""
        return self._closed_since if self._link.down_since is None else self._link.down_since

    def close(self, now: float) -> None:
        """Let no command pass."""
        if self._closed_since is None:
            self._closed_since = now

    def open(self) -> None:
        """Let commands pass."""
        self._closed_since = None


@final
class Uplink:
    """Reads the events of a link. `hand_on` gets them in order, and after each return of the link one LINK_UP first;
    `prepare` gets the core ready and raises CoreError while it is not."""

    def __init__(
        self, link: Link, gate: Gate, audit: Audit, out: Callable[[str], None], *,
        prepare: Callable[[], Awaitable[None]], hand_on: Callable[[Event], None], now: Callable[[], float],
    ) -> None:  # fmt: skip
        self._link, self._gate, self._audit, self._out = link, gate, audit, out
        self._prepare, self._hand_on, self._now = prepare, hand_on, now
        self._held: list[Event] | None = None
        self._preparing = trio.CancelScope()
        self.returned = trio.Event()
        """Set at the next return of the link; another event takes its place then."""

    async def run(self) -> None:
        """Work until cancelled."""
        async with trio.open_nursery() as nursery:
            async for event in self._link.events:
                match event.get("type"):
                    case tag if tag == LINK_DOWN:
                        self._is_lost(event)
                    case tag if tag == LINK_UP:
                        self._preparing.cancel()
                        self._preparing = trio.CancelScope()
                        nursery.start_soon(self._prepare_again, self._preparing)
                    case tag if tag == LINK_SHARED:
                        self._is_shared(event)
                    case _:
                        self._take(event)
        raise CoreError("link/closed", "The SimpleX core gives no events any more.")

    def _is_lost(self, event: Event) -> None:
        self._preparing.cancel()
        self._gate.close(self._now())
        if self._held is None:
            self._held = []
            self._audit.write("link-lost", reason=event.get("reason"))
            self._out("The link to the SimpleX core was lost; trying again until it is back.")

    async def _prepare_again(self, scope: trio.CancelScope) -> None:
        """One return of the link: over when the core is ready, or when the link is lost again."""
        said, pause = "", _FIRST_PAUSE
        with scope:
            # A link that opened again without a word of its loss is prepared all the same.
            self._gate.close(self._now())
            self._held = self._held or []
            while True:
                try:
                    await self._prepare()
                    break
                except CoreError as error:
                    if not isinstance(error, LinkLost) and said != (said := printable(str(error))):
                        self._out(f"The SimpleX core is there again but refuses ({said}); trying again.")
                await trio.sleep(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)
            self._is_back()

    def _is_back(self) -> None:
        self._gate.open()
        self._audit.write("link-back")
        self._out("The link to the SimpleX core is back.")
        held, self._held = self._held or [], None
        for event in ({"type": LINK_UP}, *held):
            self._take(event)
        self.returned.set()
        self.returned = trio.Event()

    def _is_shared(self, event: Event) -> None:
        others = event.get("clients") or 0
        self._audit.write("core-shared", clients=others)
        if others:
            what = "Another program is" if others == 1 else f"{others} other programs are"
            self._out(
                f"Warning: {what} connected to the port of the SimpleX core: messages can be missing here, and it can "
                "send as the agent without approval. End it if you do not know it."
            )
        else:
            self._out("No other program is connected to the SimpleX core any more.")
            self._take({"type": LINK_UP})

    def _take(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        try:
            self._hand_on(event)
        except Exception as error:  # noqa: BLE001 - an event in a shape that no core had must not end the server
            _log.error("An event %s was not understood: %r", str(event.get("type"))[:60], error)
            _log.debug("The event that was not understood", exc_info=error)
