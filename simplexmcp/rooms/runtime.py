"""One server process: the persona that it holds, at which epoch, and its active room.

The binding lives in memory only. What a tool needs of it is read once, at the start of the call; each write checks the
epoch again inside its own transaction (`store.personas.check_epoch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from simplexmcp.rooms.errors import PersonaLost, RoomsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.rooms.fields import Field
    from simplexmcp.rooms.settings import Settings
    from simplexmcp.rooms.store.database import Database

__all__ = ["Binding", "Runtime", "Tool", "Waiting"]

NOT_BOUND = (
    "This session has no persona bound. Call create_persona once to get one, or resume_persona with the id and the "
    "resume word of one that you saved."
)
NO_ROOM = "No room is active: join a room first with join_room (list_rooms shows them)."


class Binding(NamedTuple):
    """A persona as this runtime holds it."""

    agent_id: str
    epoch: int


@final
class Runtime:
    """What the tools of one server share."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.binding: Binding | None = None
        self.room_id: int | None = None
        # When `touch` last refreshed a membership, by room, persona, and whether as the active room or as what a call
        # is about: at most once in 30 s each (time.monotonic).
        self.touched: dict[tuple[int, str, bool], float] = {}
        # When a room's own rule on old messages was last applied, by room: at most once an hour (time.monotonic).
        self.pruned: dict[int, float] = {}
        # How many calls wait right now; the session counts them, whoever opens one asks first.
        self.waits_open = 0
        # What the client calls itself; "" when it did not say.
        self.client = ""
        # Told each time the binding changes: whoever wants to know who sits here.
        self.on_binding: Callable[[Binding | None], None] = _nobody_asks

    def bound(self) -> Binding:
        """The persona. Raises RoomsError without one."""
        if self.binding is None:
            raise RoomsError(NOT_BOUND)
        return self.binding

    def active_room(self) -> int:
        """The ID of the active room; it may be deleted meanwhile. Raises RoomsError without one."""
        if self.room_id is None:
            raise RoomsError(NO_ROOM)
        return self.room_id

    def bind(self, binding: Binding) -> None:
        """Takes a persona, with no room active."""
        self.binding = binding
        self.room_id = None
        self.on_binding(binding)

    def lose(self, error: PersonaLost) -> None:
        """Lets go of a persona that was taken over, unless this runtime holds it anew meanwhile."""
        if self.binding == Binding(error.agent_id, error.mine):
            self.binding = None
            self.room_id = None
            self.on_binding(None)


class Waiting(Protocol):
    """A call that waits for messages: the server asks it again when the database changed, and ends it."""

    deadline: float  # time.monotonic

    def probe(self) -> dict[str, Any] | None:
        """The result, once there is one. Reads only, until there is something to return."""
        ...

    def expire(self) -> dict[str, Any]:
        """The result at the deadline."""
        ...

    def end(self) -> None:
        """Cleans up, whatever ended the wait: result, error, cancellation or stop. Advances nothing."""
        ...


class Tool(NamedTuple):
    """One tool. `call` gets checked arguments (every field, None when not given) and answers with the result object
    or something that waits; it raises RoomsError."""

    name: str
    description: str
    fields: dict[str, Field]
    call: Callable[[Runtime, dict[str, Any]], dict[str, Any] | Waiting]


def _nobody_asks(_binding: Binding | None) -> None:
    return
