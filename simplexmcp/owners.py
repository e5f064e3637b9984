"""Who approves: the people in the control chat that are owners, cut to the list of `--owners` when it has one (flow
12).

Pure: members come as the core's objects, and the answers are values and sentences. A member is known by its
`memberId`; its number and its name are for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import UserError
from simplexmcp.standing import Approver
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Entry", "Member", "entries_of", "is_person", "listed_members", "member_of", "parse_owners"]

_CURRENT = frozenset({"introduced", "intro-inv", "accepted", "announced", "connected", "complete", "creator"})
_ENTRY = re.compile(r"([1-9][0-9]{0,8}):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One `ID:NAME` of `--owners`."""

    member: int
    name: str

    def __str__(self) -> str:
        return f"{self.member}:{self.name}"


@dataclass(frozen=True)
class Member:
    """A current member of the control chat other than the agent."""

    number: int
    member_id: str
    name: str
    role: str
    person: bool
    current: bool

    @property
    def entry(self) -> Entry:
        """As `--owners` names it: the name folded to one line."""
        return Entry(self.number, one_line(self.name))

    @property
    def approver(self) -> Approver:
        """The member as one that decides."""
        return Approver(self.number, self.member_id, self.name)


def one_line(name: str) -> str:
    """A name as the restart line prints it."""
    return printable(" ".join(name.split()))


def is_person(profile: Any) -> bool:
    """Whether a profile is a person's: bots and agents say so themselves."""
    return isinstance(profile, dict) and profile.get("peerType") in (None, "human")


def member_of(wire: Any) -> Member | None:
    """A member from the core's object; None when it is not one."""
    if not isinstance(wire, dict):
        return None
    number, member_id, profile = wire.get("groupMemberId"), wire.get("memberId"), wire.get("memberProfile")
    if not (isinstance(number, int) and isinstance(member_id, str) and isinstance(profile, dict)):
        return None
    return Member(
        number=number,
        member_id=member_id,
        name=str(profile.get("displayName", "")),
        role=str(wire.get("memberRole", "")),
        person=is_person(profile),
        current=wire.get("memberStatus") in _CURRENT,
    )


def parse_owners(text: str) -> tuple[Entry, ...]:
    """The entries of `--owners ID:NAME,…`. Raises UserError (code 2)."""
    entries: list[Entry] = []
    for part in re.split(r",(?=\s*[0-9]+:)", text):
        found = _ENTRY.fullmatch(part.strip())
        if not found:
            raise UserError(f'--owners: "{printable(part)}" is not ID:NAME; copy the list that the server printed.', 2)
        entries.append(Entry(int(found[1]), one_line(found[2])))
    return tuple(entries)


def listed_members(entries: Sequence[Entry], members: Iterable[Member]) -> list[Member]:
    """The people that the entries name. Raises UserError (code 2) for an entry that matches nobody."""
    people = [member for member in members if member.person and member.current]
    chosen: list[Member] = []
    for entry in entries:
        match = next((member for member in people if member.entry == entry), None)
        if match is None:
            there = ", ".join(str(member.entry) for member in people) or "nobody"
            raise UserError(f'--owners: no person "{entry}" is in the control chat; there: {there}.', 2)
        chosen.append(match)
    return chosen


def entries_of(members: Iterable[Member]) -> str:
    """The `--owners` list that names these members."""
    return ",".join(str(member.entry) for member in members)
