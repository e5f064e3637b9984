"""Who approves: the people in the control chat that are owners, cut to the list of `--owners` when it has one (flow
12).

Pure: members come as the core's objects, and the answers are values and sentences. A member is known by its
`memberId`; its number and its name are for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.errors import UserError
from simplexmcp.standing import Approver
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "Entry",
    "Member",
    "OwnerRule",
    "Roster",
    "entries_of",
    "is_person",
    "listed_members",
    "member_of",
    "parse_owners",
]

_CURRENT = ("introduced", "intro-inv", "accepted", "announced", "connected", "complete", "creator")
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


@final
class OwnerRule:
    """Who of the people in the chat approves: every owner (`listed` None), nobody yet (empty: `--owners` alone), or the
    owners among these member IDs."""

    def __init__(self, listed: frozenset[str] | None = None) -> None:
        self.listed = listed

    def approves(self, member: Member) -> bool:
        """Whether this member may decide."""
        mine = self.listed is None or member.member_id in self.listed
        return mine and member.person and member.current and member.role == "owner"


@final
class Roster:
    """The members of the control chat as they were read last, and who of them may decide.

    Whoever an event makes doubtful decides nothing until the members were read again: the queue of events can be long.
    """

    def __init__(self, rule: OwnerRule) -> None:
        self.rule = rule
        self._members: dict[str, Member] = {}
        self._doubted: set[str] = set()

    def member(self, member_id: str) -> Member | None:
        """The member with this identity."""
        return self._members.get(member_id)

    def approver(self, member_id: str) -> Approver | None:
        """The approver with this identity; None when it is none (any more)."""
        member = self._members.get(member_id)
        return member.approver if member and self._approves(member) else None

    def approvers(self) -> list[Member]:
        """Everybody who decides now."""
        return [member for member in self._members.values() if self._approves(member)]

    def people(self) -> list[Member]:
        """The people in the chat."""
        return [member for member in self._members.values() if member.person and member.current]

    def owners(self) -> dict[str, Member]:
        """The people with the role owner, by identity."""
        return {member.member_id: member for member in self.people() if member.role == "owner"}

    def refusal(self) -> str | None:
        """Why nothing can be asked: nobody would approve it."""
        if self.approvers():
            return None
        if self._doubted & self._members.keys():
            return "The owners are read again just now; nothing was asked. Ask once more in a moment."
        if self.rule.listed is None:
            how = "ask the person who runs the server to join the agent control chat by the link that it printed."
        else:
            how = "ask the person who runs the server to restart it with the --owners list that it printed."
        return f"The agent has no approving owner. Nothing was asked; {how}"

    def doubted(self) -> frozenset[str]:
        """Who is doubted now; to be passed to `replace` with what is read after this."""
        return frozenset(self._doubted)

    def replace(self, wires: Iterable[Any], settled: frozenset[str]) -> None:
        """The members as just read, which settles the doubts that were there before."""
        self._doubted -= settled
        found = [member for wire in wires if (member := member_of(wire))]
        self._members = {member.member_id: member for member in found}

    def doubt(self, event: Mapping[str, Any]) -> None:
        """An event about members: those who may be no approvers any more decide nothing for now."""
        if event["type"] in ("deletedMemberUser", "groupDeleted"):
            self.doubt_all()
        for key in ("member", "deletedMember", "toMember"):
            member = member_of(event.get(key))
            if member and (event.get("toRole", "owner") != "owner" or not self.rule.approves(member)):
                self._doubted.add(member.member_id)

    def doubt_all(self) -> None:
        """Nobody decides until the members were read again."""
        self._doubted |= self._members.keys()

    def clear(self) -> None:
        """The chat is gone: there is nobody."""
        self._members = {}

    def _approves(self, member: Member) -> bool:
        return self.rule.approves(member) and member.member_id not in self._doubted
