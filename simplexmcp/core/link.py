"""What every link to a SimpleX core gives: commands with one answer each, and events in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import trio

__all__ = ["LINK_DOWN", "LINK_SHARED", "LINK_UP", "Event", "Link"]

Event: TypeAlias = dict[str, Any]
"""A response or event of the core: `{"type": TAG, …}`. An asynchronous error is
`{"type": "chatError", "chatError": …}` on every link, although the transports wrap it differently."""

LINK_DOWN = "linkDown"
"""Tag of our own event `{"type": "linkDown", "reason": TEXT}`: the link was lost; it is opened again."""

LINK_UP = "linkUp"
"""Tag of our own event `{"type": "linkUp"}`: the link is there again. Events of the time between may be
lost: read the chats again."""


LINK_SHARED = "linkShared"
"""Tag of our own event `{"type": "linkShared", "clients": N}`: so many others are connected to the same core and
take events away; with 0, they are gone: read the chats again."""


class Link(Protocol):
    """An open link, ended by the context manager that made it. It opens itself again if its core vanishes."""

    async def send(self, command: str) -> Event:
        """The core's response to one command.

        Raises CoreError when the core refuses, LinkLost when the link went meanwhile (`link/lost`) or is down
        (`link/down`).
        Cancellation ends the wait; the command may still be done.
        """
        ...

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        """Events in the order of the core, with `linkDown` and `linkUp` at their place. One reader."""
        ...

    @property
    def down_since(self) -> float | None:
        """Seconds since the epoch since when the link is down; None while it is up."""
        ...
