"""What the signs of a new connection say about one connect: still waiting, connected, rejected. Pure; flow 3.

A connect is matched by what its command gave: the contact, the group, or the number of a pending connection,
from which a contact or group is born later. A business takes the place of the contact whose address was
asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simplexmcp.chats import chat_of_contact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simplexmcp.chats import Chat
    from simplexmcp.watch import Join

__all__ = ["Goal", "View", "goal_of", "view_of"]

_CONNECTED = frozenset({"contactConnected", "contactSndReady", "userJoinedGroup"})


@dataclass(frozen=True)
class Goal:
    """What a connect waits for: its chat's reference, or a pending connection."""

    ref: str | None = None
    connection: int | None = None


@dataclass(frozen=True)
class View:
    """How far a connect is: its chat when there is one, and whether the other side accepted or rejected."""

    chat: Chat | None = None
    connected: bool = False
    rejected: bool = False


def goal_of(response: dict[str, Any]) -> Goal | Chat:
    """What to wait for after `/_connect` answered; the chat when it was connected already."""
    if response.get("type") == "contactAlreadyExists":
        chat = chat_of_contact(response.get("contact"))
        if chat is not None and chat.state == "connected":
            return chat
        return Goal(chat.ref if chat else None)
    connection = response.get("connection")
    number = connection.get("pccConnId") if isinstance(connection, dict) else None
    return Goal(connection=number if isinstance(number, int) else None)


def view_of(goal: Goal, seen: Iterable[Join]) -> View:
    """The state after these signs, in their order."""
    view = View()
    ref = goal.ref
    for join in seen:
        replaced = join.replaces is not None and ref == f"@{join.replaces}"
        if not (
            join.chat.ref == ref or replaced or (goal.connection is not None and join.connection == goal.connection)
        ):
            continue
        ref = join.chat.ref
        view = replace(view, chat=join.chat, rejected=join.chat.state == "rejected")
        # A group that reviews its newcomers says userJoinedGroup twice: the first time it is only pending.
        if join.tag in _CONNECTED and join.chat.state == "connected":
            return replace(view, connected=True)
    return view
