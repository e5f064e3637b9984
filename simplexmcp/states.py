"""The states of an action and the one table that moves it.

An action has exactly one outcome: every state but `pending` and `performing` is final, and the table has no row that
leaves it. Whatever is not in the table does not happen: `move` answers None, and the caller tells why nothing was
done.

A perform may be undone by nobody: once `performing`, only its own end or the server's stop moves the action.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["FINAL", "TABLE", "Move", "State", "move", "table_as_markdown"]


class State(StrEnum):
    """Where an action is; the value is the `status` and `state` of the tools' results."""

    PENDING = "pending"
    PERFORMING = "performing"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class Move(StrEnum):
    """What can happen to an action."""

    APPROVE = "approve by an approver"
    REJECT = "reject by an approver"
    DUE = "expiry time reached"
    STOP = "the server stops"
    GONE = "its chat is gone, or its card cannot be posted"
    SUCCEED = "the perform succeeds"
    FAIL = "the perform fails"


TABLE: dict[tuple[State, Move], State] = {
    (State.PENDING, Move.APPROVE): State.PERFORMING,
    (State.PENDING, Move.REJECT): State.REJECTED,
    (State.PENDING, Move.DUE): State.EXPIRED,
    (State.PENDING, Move.STOP): State.CANCELLED,
    (State.PENDING, Move.GONE): State.FAILED,
    (State.PERFORMING, Move.SUCCEED): State.DONE,
    (State.PERFORMING, Move.FAIL): State.FAILED,
    (State.PERFORMING, Move.STOP): State.INTERRUPTED,
}

FINAL = frozenset(State) - {source for source, _ in TABLE}


def move(state: State, what: Move) -> State | None:
    """The state after `what`; None when the table has no such row."""
    return TABLE.get((state, what))


def table_as_markdown() -> str:
    """The table for the documents, row by row as in the code."""
    rows = [f"| {source.value} | {what.value} | {target.value} |" for (source, what), target in TABLE.items()]
    return "\n".join(["| From | On | To |", "|---|---|---|", *rows])
