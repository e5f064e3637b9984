"""The grammar of the owner's commands in the control chat (product rule: strict, one command a message).

A command is the whole text of a message: ASCII digits without leading zeros, one blank between words. `/'approve 7'`,
as the core shows a tappable command, is accepted as typed. What starts with `/` and is nothing of this is answered
with `USAGE`; any other text is no command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

__all__ = [
    "USAGE",
    "Approve",
    "ApproveAll",
    "Bound",
    "Command",
    "DeleteFiles",
    "Forward",
    "Leave",
    "Receive",
    "ReceiveOff",
    "Reject",
    "Revoke",
    "Show",
    "Simple",
    "parse",
]

USAGE = (
    "I know `/approve N`, `/approve CHAT N`, `/approve CHAT all` (or `all 2h`, `all 20`), `/reject N`, `/revoke CHAT`, "
    "`/show N`, `/receive CHAT N`, `/receive CHAT N all`, `/receive CHAT off`, `/forward CHAT N`, `/leave CHAT`, "
    "`/delete CHAT files`, `/pending`, `/list` and `/help`; CHAT is like `@4` or `#15`."
)


@dataclass(frozen=True)
class Bound:
    """How long a standing approval lasts: a time, or a number of messages."""

    time: timedelta | None = None
    messages: int | None = None


@dataclass(frozen=True)
class Approve:
    """`/approve N`, `/approve CHAT N`."""

    number: int
    chat: str | None = None


@dataclass(frozen=True)
class ApproveAll:
    """`/approve CHAT all`, bounded by `2h` or `20` when given."""

    chat: str
    bound: Bound = Bound()


@dataclass(frozen=True)
class Reject:
    """`/reject N`, `/reject CHAT N`."""

    number: int
    chat: str | None = None


@dataclass(frozen=True)
class Revoke:
    """`/revoke CHAT`."""

    chat: str


@dataclass(frozen=True)
class Show:
    """`/show N`: the whole text of a card that was cut."""

    number: int


@dataclass(frozen=True)
class Leave:
    """`/leave CHAT`: at once."""

    chat: str


@dataclass(frozen=True)
class Receive:
    """`/receive CHAT N`: download the file of action N; `every`, `/receive CHAT N all`: later ones of CHAT too."""

    chat: str
    number: int
    every: bool = False


@dataclass(frozen=True)
class ReceiveOff:
    """`/receive CHAT off`: files of CHAT need approval again."""

    chat: str


@dataclass(frozen=True)
class Forward:
    """`/forward CHAT N`: the file of action N, to the owners only."""

    chat: str
    number: int


@dataclass(frozen=True)
class DeleteFiles:
    """`/delete CHAT files`: everything that was received from CHAT, also when it was left."""

    chat: str


@dataclass(frozen=True)
class Simple:
    """`/pending`, `/list`, `/help`."""

    word: Literal["pending", "list", "help"]


Command: TypeAlias = (
    Approve | ApproveAll | Reject | Revoke | Show | Receive | ReceiveOff | Forward | Leave | DeleteFiles | Simple
)

_NUMBER = r"([1-9][0-9]{0,8})"
_CHAT = r"([@#][1-9][0-9]{0,8})"
# A card of a message to a group's admins, or to one member: only its own number can be decided there.
_TALK = r"([@#][1-9][0-9]{0,8}(?:\(_support(?::[1-9][0-9]{0,8})?\))?)"
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_FORMS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(rf"approve {_NUMBER}", re.ASCII), "approve"),
    (re.compile(rf"approve {_TALK} {_NUMBER}", re.ASCII), "approve-in"),
    (re.compile(rf"approve {_CHAT} all(?: ([1-9][0-9]{{0,3}})([mhd])?)?", re.ASCII), "approve-all"),
    (re.compile(rf"reject {_NUMBER}", re.ASCII), "reject"),
    (re.compile(rf"reject {_TALK} {_NUMBER}", re.ASCII), "reject-in"),
    (re.compile(rf"revoke {_CHAT}", re.ASCII), "revoke"),
    (re.compile(rf"show {_NUMBER}", re.ASCII), "show"),
    (re.compile(rf"receive {_TALK} {_NUMBER}( all)?", re.ASCII), "receive"),
    (re.compile(rf"receive {_CHAT} off", re.ASCII), "receive-off"),
    (re.compile(rf"forward {_TALK} {_NUMBER}", re.ASCII), "forward"),
    (re.compile(rf"leave {_CHAT}", re.ASCII), "leave"),
    (re.compile(rf"delete {_CHAT} files", re.ASCII), "delete-files"),
    (re.compile(r"(pending|list|help)", re.ASCII), "simple"),
]


def parse(text: str) -> Command | Literal["usage"] | None:
    """The command that a message is; `usage` when it starts like one and is none; None for any other text."""
    text = text.strip(" \n")
    if not text.startswith("/"):
        return None
    body = text[1:]
    if len(body) >= 2 and body[0] == body[-1] == "'":
        body = body[1:-1]
    for pattern, form in _FORMS:
        if found := pattern.fullmatch(body):
            return _build(form, found.groups())
    return "usage"


def _build(form: str, words: tuple[str, ...]) -> Command:
    match form:
        case "approve":
            return Approve(int(words[0]))
        case "approve-in":
            return Approve(int(words[1]), words[0])
        case "approve-all":
            return ApproveAll(words[0], _bound(words[1], words[2]))
        case "reject":
            return Reject(int(words[0]))
        case "reject-in":
            return Reject(int(words[1]), words[0])
        case "revoke":
            return Revoke(words[0])
        case "show":
            return Show(int(words[0]))
        case "receive":
            return Receive(words[0], int(words[1]), every=bool(words[2]))
        case "receive-off":
            return ReceiveOff(words[0])
        case "forward":
            return Forward(words[0], int(words[1]))
        case "leave":
            return Leave(words[0])
        case "delete-files":
            return DeleteFiles(words[0])
        case _:
            return Simple("pending" if words[0] == "pending" else "list" if words[0] == "list" else "help")


def _bound(count: str | None, unit: str | None) -> Bound:
    if not count:
        return Bound()
    if unit:
        return Bound(time=timedelta(**{_UNITS[unit]: int(count)}))
    return Bound(messages=int(count))
