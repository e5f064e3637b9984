"""One action as data: what was asked, its state, and the doors to the control chat and the call that it uses."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, final

import trio

from simplexmcp import cards
from simplexmcp.clock import hhmm
from simplexmcp.states import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from simplexmcp.chats import Chat
    from simplexmcp.standing import Approver, Grant

__all__ = ["Action", "Board", "Mode", "Progress", "Request"]

Mode = Literal["requests", "host"]
"""Who approves: an owner in the control chat, or the MCP host's user."""


class Board(Protocol):
    """The control chat, as actions use it."""

    def refusal(self) -> str | None:
        """Why no action can be asked now; None when somebody approves."""
        ...

    def approver(self, member_id: str) -> Approver | None:
        """The approver with this identity; None when it is none (any more)."""
        ...

    def take_number(self) -> int:
        """The next number; never given twice once `save_counter` returned."""
        ...

    async def save_counter(self) -> None:
        """Store that every number taken so far is used. Raises CoreError."""
        ...

    async def post(self, card: cards.Card) -> int:
        """Post a card; its item ID. Raises CoreError, and Refused when the core finds another command in it."""
        ...

    async def find(self, text: str) -> int | None:
        """The newest own post with exactly this text, when there is one. Raises CoreError."""
        ...

    async def edit(self, item: int, card: cards.Card) -> None:
        """Replace a card's text; as a new message when the card cannot be edited. Raises CoreError."""
        ...


class Progress(Protocol):
    """A call that waits."""

    def say(self, text: str) -> None:
        """What the call waits for, now."""
        ...


@dataclass(frozen=True)
class Request:
    """What a tool asks for. `key` is the tool and its action fields: equal keys are one action. `perform` gets the
    action, calls `confirm` before its first outgoing command, and gives the fields of the result; it raises Refused or
    CoreError. `standing`: a standing approval of messages to `chat` may carry it; `files`: one of files from it."""

    tool: str
    key: tuple[Any, ...]
    input: dict[str, Any]
    subject: cards.Subject
    chat: Chat | None
    perform: Callable[[Action], Awaitable[dict[str, Any]]]
    standing: bool = False
    files: bool = False


@final
class Action:
    """One action, from its request to its outcome."""

    def __init__(self, number: int, request: Request, created: datetime, expires: datetime) -> None:
        self.number, self.request, self.created, self.expires = number, request, created, expires
        # The computer's clock may be set back; the time that a card can be edited is not.
        self._dies = trio.current_time() + (expires - created).total_seconds()
        self.state = State.PENDING
        self.by: Approver | None = None
        self.grant: Grant | None = None
        self.host = False
        self.started: datetime | None = None
        self.error: str | None = None
        self.result: dict[str, Any] = {}
        self.shown = False  # its card is on its way, so that somebody may have read it
        self.card: int | None = None
        self.unsure: str | None = None  # the text of a card that may have been posted when the link was lost
        self.open = 0
        self.decided = trio.Event()  # no longer pending
        self.ended = trio.Event()  # has its outcome; what waits for replies goes on from here
        self.kept = ExitStack()  # closed when the action is forgotten: the inbox of its replies
        self.posted = trio.Event()
        self.scope = trio.CancelScope()
        self.reminded = False

    def is_due(self, now: datetime) -> bool:
        """Whether its time is over, by the clock or by the time that went by."""
        return now >= self.expires or trio.current_time() >= self._dies

    @property
    def tool(self) -> str:
        """connect, send, download, leave."""
        return self.request.tool

    @property
    def ref(self) -> str | None:
        """The chat it is bound to; None for a connect."""
        return self.request.chat.ref if self.request.chat else None

    @property
    def base(self) -> str | None:
        """The same without a scope: the chat with whose end it ends."""
        return self.request.chat.base if self.request.chat else None

    @property
    def decided_by(self) -> str | None:
        """The name of the approver whose word carries it."""
        return self.by.name if self.by else None

    @property
    def direct(self) -> bool:
        """Performed without a card: in mode host, or under a standing approval."""
        return self.host or self.grant is not None

    def reply(self, now: datetime) -> str:
        """The answer to a command that would decide it, and comes too late or too early."""
        n, by = self.number, cards.shown_name(self.decided_by)
        match self.state:
            case State.EXPIRED:
                return f"Action {n} expired at {hhmm(self.expires, now)}."
            case State.REJECTED:
                return f"Action {n} was already rejected by {by}."
            case State.CANCELLED | State.PENDING:
                return f"Action {n} is not pending."
            case _ if self.host:
                return f"Action {n} was performed without approval (mode host)."
            case _ if by:
                return f"Action {n} was already approved by {by}."
            case _:
                return f"Action {n} is not pending."

    @property
    def outcome(self) -> cards.Outcome:
        """How it ended, for its card."""
        return cards.Outcome(
            state=self.state, by=self.decided_by, standing=self.grant is not None, host=self.host, error=self.error,
            connected=bool(self.result.get("connected", True)),
        )  # fmt: skip
