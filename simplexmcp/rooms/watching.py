"""The watcher itself: looks when the database was written to, and tells news until its time is over.

Each look checks, in this order: the persona's epoch, its membership of what is watched, then news. What ends a watcher
for good is `Ended`.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, final

from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.news import News, look, newest, news

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.rooms.bell import Bell
    from simplexmcp.rooms.news import Look, Scope
    from simplexmcp.rooms.store.database import Database

__all__ = ["Ended", "Plan", "Watcher", "check_look", "ended_line", "owner_ended"]

_HEARTBEAT = 120.0  # seconds between two signs of life
_SAFETY = 5.0  # seconds after which it looks though nothing was told
_PACE = 1.0  # seconds at least between two lines that follow
_LINE = 500  # bytes at most of a line that follows, with its end


@final
class Ended(RoomsError):  # noqa: N818 - named after what happened
    """Nothing can come any more: `state` names why."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state


class Plan(NamedTuple):
    """How to watch; times in seconds. `interval` None: at once; `deadline` (time.monotonic) None: without end;
    `owner`: the process that waits for it. With an owner and an epoch it says that the persona listens."""

    scope: Scope
    interval: int | None
    deadline: float | None
    follow: bool
    owner: int | None

    @property
    def beats(self) -> bool:
        """Whether it gives signs of life."""
        return self.owner is not None and self.scope.epoch is not None


def check_look(scope: Scope, seen: Look) -> None:
    """Raises Ended when the scope cannot be watched any more."""
    agent = scope.agent
    if scope.epoch is not None and seen.epoch != scope.epoch:
        if seen.epoch is None:
            raise Ended("persona_gone", f'persona "{agent}" no longer exists in this database. Create one anew.')
        raise Ended(
            "stale_binding",
            f'stale_binding: persona "{agent}" is at epoch {seen.epoch} now, and this watcher was made for epoch '
            f"{scope.epoch}: another runtime resumed it. Only that one's watcher command works now.",
        )
    if not seen.exists:
        raise Ended(
            "deleted_room",
            f"room {scope.room_id} no longer exists: it was deleted. list_rooms shows the others, create_room makes "
            "a new one.",
        )
    if seen.present:
        return
    if scope.room_id is None and seen.joined:
        raise Ended("left_all_rooms", f'left_all_rooms: "{agent}" is not present in any room. Call join_room.')
    if scope.room_id is None:
        raise Ended("no_room_memberships", f'no_room_memberships: "{agent}" is in no room. Call join_room first.')
    if seen.joined:
        raise Ended("left_room", f'left_room: "{agent}" has LEFT room {scope.room_id}. Call join_room to come back.')
    raise Ended("never_joined", f'"{agent}" never joined room {scope.room_id}. Call join_room first.')


@final
class Watcher:
    """Watches until there is news (or goes on, when it follows), the deadline, a signal, or Ended."""

    def __init__(self, database: Database, plan: Plan, bell: Bell, write: Callable[[str], None]) -> None:
        self._database = database
        self._plan = plan
        self._bell = bell
        self._write = write
        self._file = _identity(database.path)
        self._version = -1
        self._told: dict[int, int] = {}
        self._last_room = 0
        self._pending = True
        self._next_look = 0.0
        self._next_beat = 0.0 if plan.beats else float("inf")
        self._next_line = 0.0

    def run(self) -> bool:
        """Whether there was news; False at the deadline or a signal (the bell knows it). Raises Ended and
        DatabaseError."""
        while self._bell.signal is None:
            if not self._bell.owner_lives():
                raise owner_ended(self._plan.owner)
            now = time.monotonic()
            over = self._plan.deadline is not None and now >= self._plan.deadline
            self._beat(now)
            if (over or self._should_look(now)) and self._look(now) and not self._plan.follow:
                return True
            if over:
                return False
            self._bell.wait(self._next_turn())
        return False

    def _should_look(self, now: float) -> bool:
        if self._plan.interval is not None:
            return now >= self._next_look
        if self._bell.polls:
            version = self._database.data_version()
            self._pending = self._pending or version != self._version
            self._version = version
        self._pending = self._pending or self._bell.written or now >= self._next_look
        return self._pending and now >= self._next_line

    def _next_turn(self) -> float:
        turns = [self._next_look, self._next_beat]
        if self._pending and self._plan.interval is None:
            turns.append(self._next_line)
        if self._plan.deadline is not None:
            turns.append(self._plan.deadline)
        return min(turns)

    def _beat(self, now: float) -> None:
        if now < self._next_beat:
            return
        self._next_beat = now + _HEARTBEAT
        scope = self._plan.scope
        with suppress(DatabaseError):  # a sign of life may be missed; the look that follows meets the same database
            self._database.run(
                "UPDATE memberships SET last_seen = datetime('now')"
                " WHERE agent_id = ?1 AND left_at IS NULL AND (?2 IS NULL OR room_id = ?2)"
                " AND (SELECT runtime_epoch FROM agents WHERE id = ?1) = ?3",
                scope.agent,
                scope.room_id,
                scope.epoch,
            )

    def _look(self, now: float) -> bool:
        self._pending = False
        self._next_look = now + (_SAFETY if self._plan.interval is None else self._plan.interval)
        if _identity(self._database.path) != self._file:
            raise Ended("database_gone", f"the database {self._database.path} was removed or replaced.")
        scope = self._plan.scope
        with self._database.snapshot():
            seen = look(self._database, scope, self._told, self._last_room)
            check_look(scope, seen)
            if seen.room_id is None:
                return False
            found = news(self._database, scope.agent, seen.room_id, self._told.get(seen.room_id, 0))
            assert found is not None  # of the same moment
            self._told[seen.room_id] = newest(self._database, seen.room_id)
            self._last_room = seen.room_id
        line = _hit_line(scope, found)
        if self._plan.follow:
            line = _shortened(line, _LINE - 1)
            self._next_line = now + _PACE
            self._pending = True  # another room may have news, too
        self._write(dumps(line))
        return True


def owner_ended(owner: int | None) -> Ended:
    """The end of a watcher whose owner is gone."""
    return Ended("owner_ended", f"owner MCP process {owner} has ended; nobody waits for this watcher any more.")


def ended_line(error: RoomsError) -> str:
    """What a watcher that follows tells on stdout when nothing can come any more."""
    state = error.state if isinstance(error, Ended) else "error"
    line = {"has_updates": False, "ended": state, "reason": str(error)}
    return dumps(_shortened(line, _LINE - 1))


def _hit_line(scope: Scope, found: News) -> dict[str, Any]:
    """What is told of news."""
    return {
        "has_updates": True,
        "agent": scope.agent,
        "room_id": found.room_id,
        "room_name": found.room_name,
        "mentions_only": scope.mentions_only,
        "unread": found.unread,
        "directed": found.directed,
        "previews": found.previews,
    }


def _shortened(line: dict[str, Any], limit: int) -> dict[str, Any]:
    """The line in at most `limit` bytes: previews go first, then ends of its texts."""
    while _bytes(line) > limit and line.get("previews"):
        line = line | {"previews": line["previews"][:-1]}
    while _bytes(line) > limit:
        name = max((key for key in line if isinstance(line[key], str)), key=lambda key: len(line[key].encode()))
        line = line | {name: line[name][: len(line[name]) * 3 // 4]}
    return line


def _bytes(line: dict[str, Any]) -> int:
    return len(dumps(line).encode())


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - pathlib costs start time
    except OSError:
        return None
    return found.st_dev, found.st_ino
