"""`catch_up`: what is new in a room, once, in order; with `wait_seconds` also what comes while the call is open."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, final

from simplexmcp.rooms.errors import DatabaseError, PersonaLost, RoomsError
from simplexmcp.rooms.fields import Boolean, Integer, Text
from simplexmcp.rooms.pages import DEFAULT_BUDGET
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.settings import DEFAULT_WAIT
from simplexmcp.rooms.store.leases import close_lease, open_lease
from simplexmcp.rooms.store.members import target_room, touch
from simplexmcp.rooms.store.reading import Request, catch_up, has_news
from simplexmcp.rooms.texts import CAPS

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Binding, Runtime, Waiting
    from simplexmcp.rooms.store.database import Database

__all__ = ["LIMIT", "MAX_BYTES", "PREVIEW_CHARS", "ROOM", "TOOLS"]

_MOST_WAITS = 4
_LAST_MOMENT = 0.5  # seconds that a wait goes on after its persona was taken over: the new holder settles in first
LIMIT = Integer("Messages in one answer at most.", 1, 500, default=50)
PREVIEW_CHARS = Integer("Cut each body at so many characters; cut ones say truncated and length.", 1)
MAX_BYTES = Integer("Size of the whole answer at most.", 1000, 400_000, default=DEFAULT_BUDGET)
ROOM = Text("Room id or exact name; without it the active room.", CAPS["room_reference"], shortest=1)


@final
class _Wait:
    """An open `catch_up`. All that it needs was read when it began: a later join changes nothing."""

    def __init__(self, db: Database, binding: Binding, room_id: int, request: Request, seconds: int) -> None:
        self._db = db
        self._binding = binding
        self._room_id = room_id
        self._request = request
        self._started = time.monotonic()
        self.deadline = self._started + seconds
        self._leased = False
        try:
            open_lease(db, binding, room_id, seconds)
            self._leased = True
        except DatabaseError:
            # Others just do not see that somebody waits here; the wait itself needs no lease.
            return

    def probe(self) -> dict[str, Any] | None:
        """The page, once somebody wrote."""
        try:
            news = has_news(self._db, self._binding, self._room_id)
        except PersonaLost:
            self.deadline = min(self.deadline, time.monotonic() + _LAST_MOMENT)
            return None
        if not news:
            return None
        result = self._read(last=False)
        return result if result["messages"] else None

    def expire(self) -> dict[str, Any]:
        """The page, or that nothing came and the other rooms that have something. Raises what ended the wait."""
        has_news(self._db, self._binding, self._room_id)
        return self._read(last=True)

    def end(self) -> None:
        """Takes the lease back."""
        if self._leased:
            self._leased = False
            close_lease(self._db, self._binding, self._room_id)

    def _read(self, *, last: bool) -> dict[str, Any]:
        waited_ms = int((time.monotonic() - self._started) * 1000)
        return catch_up(self._db, self._binding, self._room_id, self._request, waited_ms=waited_ms, last=last)


def _catch_up(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any] | Waiting:
    binding = runtime.bound()
    seconds = arguments["wait_seconds"] or 0
    triage = bool(arguments["priority_only"])
    if seconds and triage:
        raise RoomsError("priority_only and wait_seconds cannot be combined: wait without priority_only.")
    if seconds and runtime.waits_open >= _MOST_WAITS:
        raise RoomsError(f"{_MOST_WAITS} calls wait already. Let one of them end first, or call without wait_seconds.")
    room, _membership = target_room(runtime, binding, arguments["room"], present=False)
    touch(runtime, room["id"])
    request = Request(arguments["limit"], arguments["preview_chars"], arguments["max_bytes"], triage)
    if not seconds:
        return catch_up(runtime.database, binding, room["id"], request)
    result = catch_up(runtime.database, binding, room["id"], request, waited_ms=0, last=False)
    return result if result["messages"] else _Wait(runtime.database, binding, room["id"], request, seconds)


TOOLS = (
    Tool(
        "catch_up",
        "What others wrote in a room since your read marker, oldest first; the marker moves past what is returned. "
        "Nothing is skipped: call again while remaining > 0. Bodies that say truncated: get_message. wait_seconds "
        "keeps the call open until somebody writes. priority_only returns only priority messages and those directed "
        "at you and passes over the rest for good. An empty answer names your other rooms with unread messages.",
        {
            "room": ROOM,
            "wait_seconds": Integer("Wait so long for a message when there is none.", 0, DEFAULT_WAIT),
            "priority_only": Boolean("Lossy: only priority and directed messages; not with wait_seconds."),
            "limit": LIMIT,
            "preview_chars": PREVIEW_CHARS,
            "max_bytes": MAX_BYTES,
        },
        _catch_up,
    ),
)
