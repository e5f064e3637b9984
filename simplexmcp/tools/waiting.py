"""Waiting for messages: the idle rule, and what a result takes from an inbox (flows 3 and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp import messages
from simplexmcp.clock import hhmm
from simplexmcp.errors import CoreError
from simplexmcp.inbox import CAPACITY
from simplexmcp.tools.trouble import is_link_trouble
from simplexmcp.tools.unread import read_unread

if TYPE_CHECKING:
    from datetime import datetime

    from simplexmcp.action import Progress
    from simplexmcp.inbox import Arrival, Inbox
    from simplexmcp.tools.kit import Kit

__all__ = ["Patience", "Taken", "fill_gap", "until_quiet", "wall_time"]


@dataclass(frozen=True)
class Patience:
    """How long a call waits, in seconds, and for how many messages at most."""

    wait: float
    idle: float
    limit: int


@dataclass(frozen=True)
class Taken:
    """What a result takes: messages, as they are shown and as they came, and how many remain."""

    shown: list[dict[str, Any]]
    arrivals: list[Arrival]
    more: int

    @classmethod
    def of(cls, kit: Kit, arrivals: list[Arrival], limit: int, remaining: int) -> Taken:
        """The first of `arrivals` that fit; `remaining` more are known."""
        pairs = [(a, shown) for a in arrivals if (shown := kit.shown(a.chat, a.item)) is not None]
        kept = messages.fitting([shown for _, shown in pairs], limit)
        return cls(kept, [a for a, _ in pairs[: len(kept)]], len(pairs) - len(kept) + remaining)


def wall_time(now: datetime, at: float) -> str:
    """Local time of a moment of trio's clock, as progress texts show it."""
    return hhmm(now + timedelta(seconds=at - trio.current_time()), now)


async def until_quiet(
    kit: Kit, ref: str, inbox: Inbox, patience: Patience, call: Progress, *, since: float, quiet_from: float | None
) -> None:
    """Wait for messages in chat `ref` until `patience.wait` seconds after `since`, and not longer than
    `patience.idle` seconds after the last one. `quiet_from`: counts as a last one when none came; None waits
    for the first. While somebody types, only the wait ends it. Cancelled, nothing is lost: the messages stay
    in the inbox."""
    deadline = since + patience.wait
    while not inbox.gone:
        await fill_gap(kit, ref, inbox)
        if inbox.ended:
            return
        ready, live = len(inbox.ready()), inbox.live()
        last = inbox.last_at if ready else None
        quiet = max((at for at in (last, quiet_from) if at is not None), default=None)
        end = deadline if live or quiet is None else min(deadline, quiet + patience.idle)
        if ready >= patience.limit or inbox.overflow() or end <= trio.current_time():
            return
        call.say(f"{ready + live} messages in {ref}; waiting until {wall_time(kit.clock.now(), deadline)}.")
        with trio.move_on_at(end):
            await inbox.changed()


async def fill_gap(kit: Kit, ref: str, inbox: Inbox) -> None:
    """Read what arrived unseen, when the inbox says so: each message that nobody was given joins it, once.
    With the link down again, it is tried after the next reconnect."""
    while inbox.gap and not inbox.gone:
        inbox.gap = False
        try:
            unread = await read_unread(kit, ref, CAPACITY + 1)
        except CoreError as error:
            if is_link_trouble(error):
                inbox.unread()
                return
            inbox.gap = True
            raise
        except BaseException:
            inbox.gap = True
            raise
        fresh = [a.item for a in unread.found if not kit.shelf.is_taken(messages.item_id(a.item) or 0)]
        inbox.merge(unread.chat, fresh)
