"""Commands that wait for their answers, and background tasks: what the links share."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.errors import CoreError, LinkLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from simplexmcp.core.link import Event

__all__ = ["Command", "Pending", "background"]


@final
class Command:
    """One command from its sending to its one outcome."""

    def __init__(self, corr_id: str) -> None:
        self.corr_id = corr_id
        self.sent = False
        self._done = trio.Event()
        self._outcome: Event | CoreError | None = None

    def settle(self, outcome: Event | CoreError) -> None:
        """Gives the outcome. Only the first counts."""
        if self._outcome is None:
            self._outcome = outcome
            self._done.set()

    async def answer(self) -> Event:
        """The core's response, or its error raised."""
        await self._done.wait()
        assert self._outcome is not None
        if isinstance(self._outcome, CoreError):
            raise self._outcome
        return self._outcome


@final
class Pending:
    """The commands of one link, by id. An id is used once, over all connections of the link."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[str, Command] = {}
        self._abandoned: set[str] = set()

    @property
    def outstanding(self) -> int:
        """How many commands the core still works on, those that nobody waits for included."""
        return sum(command.sent for command in self._waiting.values()) + len(self._abandoned)

    @contextmanager
    def command(self) -> Generator[Command, None, None]:
        """A new command for as long as somebody waits for it. Its late answer is expected, and dropped."""
        command = Command(str(next(self._ids)))
        self._waiting[command.corr_id] = command
        try:
            yield command
        finally:
            if self._waiting.pop(command.corr_id, None) is not None and command.sent:
                self._abandoned.add(command.corr_id)

    def leaves(self, command: Command) -> bool:
        """Marks a command as sent; False when nobody waits for it any more, and it need not be."""
        if command.corr_id not in self._waiting:
            return False
        command.sent = True
        return True

    def settle(self, corr_id: str, outcome: Event | CoreError) -> bool:
        """Hands an answer to its command; False when no such command is outstanding."""
        if command := self._waiting.pop(corr_id, None):
            command.settle(outcome)
            return True
        if corr_id in self._abandoned:
            self._abandoned.discard(corr_id)
            return True
        return False

    def refuse_only(self, error: CoreError) -> bool:
        """Ends the one outstanding command with an error that names none; False when it could be several."""
        sent = [command for command in self._waiting.values() if command.sent]
        if len(sent) != 1 or self._abandoned:
            return False
        return self.settle(sent[0].corr_id, error)

    def lose_all(self, reason: str) -> None:
        """The connection is gone. What was sent may have been done or not; what was not sent was not done."""
        for command in list(self._waiting.values()):
            if command.sent:
                text = f"The link to SimpleX was lost ({reason}); it is not known whether this was done."
                command.settle(LinkLost("link/lost", text))
            else:
                command.settle(LinkLost("link/down", f"The link to SimpleX is down ({reason}); nothing was done."))
        self._waiting.clear()
        self._abandoned.clear()


@asynccontextmanager
async def background(
    run: Callable[..., Awaitable[Any]], stop: Callable[[], None], grace: float
) -> AsyncGenerator[None, None]:
    """Runs `run` (which reports `started`) beside the body. Then `stop` asks it to end within `grace`
    seconds; a body that fails or is cancelled cancels it. Errors leave bare, not in a group."""
    bare: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(run)
            try:
                yield
            finally:
                stop()
                nursery.cancel_scope.deadline = trio.current_time() + grace
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        bare = group.exceptions[0]
    if bare is not None:
        raise bare
