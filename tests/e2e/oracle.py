"""What an honest observer at the agent's core knows: who decided what, and whether each command was allowed.

It reads the messages that the core took in and the commands that the server gave to it, and keeps its own books: it
shares no code with the program but the texts' alphabet. `Violation` says which promise was broken.
"""

from __future__ import annotations

import json
import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from simplexmcp.action import Action
    from simplexmcp.sandbox.core import SimulatedCore
    from tests.e2e.stack import Sent, Stack

Wire = dict[str, Any]

HOURS = 3600.0
EXPIRE = 23 * HOURS
CURRENT = ("introduced", "intro-inv", "accepted", "announced", "connected", "complete", "creator")
FINAL = ("performed", "failed", "rejected", "expired", "cancelled", "interrupted")

performing: ContextVar[Action | None] = ContextVar("performing", default=None)
"""The action in whose perform a command is given; None elsewhere."""

_ONE = re.compile(r"/(?:'(.*)'|(.*))", re.DOTALL)
_WORDS = re.compile(
    r"(?P<verb>approve|reject)(?: (?P<ref>[@#][1-9]\d*(?:\(_support\))?))? (?P<number>[1-9]\d{0,8})"
    r"|approve (?P<all>[@#][1-9]\d*) all(?: (?P<count>[1-9]\d{0,3})(?P<unit>[mhd])?)?"
    r"|revoke (?P<revoke>[@#][1-9]\d*)|leave (?P<leave>[@#][1-9]\d*)"
)


class Violation(AssertionError):  # noqa: N818 - it is one, not an error of the test
    """A promise of the product was broken."""


@dataclass
class Asked:
    """A card that was posted: what it asked for and when."""

    ref: str | None
    tool: str
    at: float
    index: int
    run: int
    text: str


@dataclass
class Word:
    """An approver's word on one action."""

    verb: str
    index: int
    at: float
    run: int


@dataclass
class Grant:
    """A standing approval as the owner gave it."""

    row: object
    member_id: str
    index: int
    at: float
    seconds: float | None
    messages: int | None
    revoked: int | None = None
    used: int = 0


@dataclass
class Performed:
    """What left for one action."""

    action: Action
    commands: list[str] = field(default_factory=list)


class Oracle:
    """The books of one network; `run` counts the server's starts."""

    def __init__(self, stack: Stack, control: str) -> None:
        self.stack, self.control = stack, control
        self.core: SimulatedCore = stack.network.core("agent")
        self.index = 0
        self.settled = 0
        self.run = 0
        self.host = False
        self.asked: dict[int, Asked] = {}
        self.words: dict[int, list[Word]] = {}
        self.grants: dict[str, list[Grant]] = {}
        self.leaves: list[tuple[str, int]] = []
        self.calls: list[tuple[str, Wire]] = []
        self.performed: dict[tuple[int, int], Performed] = {}
        self.broken: list[str] = []
        self.counts: dict[str, int] = {"send": 0, "connect": 0, "leave": 0, "standing": 0, "host": 0, "own leave": 0}
        self.outcomes: dict[str, set[str]] = {}
        self.core.react(self._saw)
        stack.on_sent = self._sent

    # What the core took in

    def _saw(self, event: Wire) -> None:
        self.index += 1
        if event["type"] != "newChatItems":
            return
        for entry in event["chatItems"]:
            info, item = entry["chatInfo"], entry["chatItem"]
            ours = info["type"] == "group" and f"#{info['groupInfo']['groupId']}" == self.control
            if ours and "groupChatScope" not in info:
                self._heard(item)

    def _heard(self, item: Wire) -> None:
        direction, content, meta = item["chatDir"], item["content"], item["meta"]
        if direction["type"] != "groupRcv" or content["type"] != "rcvMsgContent":
            return
        if item.get("quotedItem") or meta.get("itemForwarded") or meta.get("forwardedByMember"):
            return
        if meta.get("itemLive") or meta.get("itemEdited") or content["msgContent"]["type"] != "text":
            return
        member_id = direction["groupMember"]["memberId"]
        whole = _ONE.fullmatch(content["msgContent"]["text"].strip(" \n"))
        words = _WORDS.fullmatch(whole[1] if whole[1] is not None else whole[2]) if whole else None
        if words is None or not self.approves(member_id):
            return
        self._count(words, member_id)

    def _count(self, words: re.Match[str], member_id: str) -> None:
        at = trio.current_time()
        if words["verb"]:
            number = int(words["number"])
            asked = self.asked.get(number)
            if asked and asked.run == self.run and words["ref"] in (None, asked.ref):
                self.words.setdefault(number, []).append(Word(words["verb"], self.index, at, self.run))
        elif ref := words["all"]:
            if self.host or self.row(ref) is None:
                return
            count, unit = words["count"], words["unit"]
            seconds = int(count) * {"m": 60.0, "h": HOURS, "d": 24 * HOURS}[unit] if count and unit else None
            messages = int(count) if count and not unit else None
            for before in self.grants.get(ref, []):
                before.revoked = before.revoked or self.index  # the new one takes its place
            self.grants.setdefault(ref, []).append(Grant(self.row(ref), member_id, self.index, at, seconds, messages))
            for number, asked in self.asked.items():
                if asked.ref == ref and asked.tool == "send" and asked.run == self.run:
                    self.words.setdefault(number, []).append(Word("approve", self.index, at, self.run))
        elif ref := words["revoke"]:
            for grant in self.grants.get(ref, []):
                grant.revoked = grant.revoked or self.index
        elif ref := words["leave"]:
            self.leaves.append((ref, self.index))

    # Who and what is there now

    def approves(self, member_id: str) -> bool:
        state = self.core.state
        for member in state.members.values():
            if f"#{member.group_id}" == self.control and member.member_id == member_id:
                peer = state.profiles[member.profile_id].data.get("peerType")
                return member.role == "owner" and member.status in CURRENT and peer not in ("bot", "agent")
        return False

    def row(self, ref: str) -> object | None:
        """What is behind a number now: two chats that have it one after the other are two rows."""
        rows: dict[int, Any] = self.core.state.groups if ref[0] == "#" else self.core.state.contacts  # type: ignore[assignment]
        return rows.get(int(ref[1:]))

    # What the server gives to the core

    def _sent(self, sent: Sent) -> None:
        from tests.e2e.stack import is_outward

        self.index += 1
        action = performing.get()
        if action is None:
            self._card(sent.text)
            self._outcome(sent.text)
        if not is_outward(sent.text, self.control):
            return
        try:
            if action is None:
                self._owners_leave(sent.text)
            else:
                self._allowed(action, sent.text)
        except Violation as violation:
            self.broken.append(str(violation))

    def _card(self, command: str) -> None:
        start = f"/_send {self.control} json "
        if not command.startswith(start):
            return
        text = json.loads(command[len(start) :])[0]["msgContent"]["text"]
        found = re.search(r"\nTap /'approve (?:([@#]\S+) )?(\d+)'", text)
        if not text.startswith("I want to ") or not found:
            return
        number = int(found[2])
        if number in self.asked:
            self.broken.append(f"number {number} is on two cards")
        tool = {"send": "send", "leave": "leave", "delete": "leave", "connect": "connect"}[text.split(" ")[3]]
        self.asked[number] = Asked(found[1], tool, trio.current_time(), self.index, self.run, text)

    def _outcome(self, command: str) -> None:
        start = f"/_update item {self.control} "
        if command.startswith(start):
            item, _, text = command[len(start) :].partition(" json ")
            texts = self.outcomes.setdefault(item, set())
            texts.add(text)
            if len(texts) > 1:
                self.broken.append(f"card {item} gets two outcomes: {sorted(texts)}")

    def _owners_leave(self, command: str) -> None:
        ref = command.split(" ")[1]
        if not any(left == ref for left, _ in self.leaves):
            raise Violation(f"{command!r} belongs to no action, and no owner asked for it")
        if command.startswith("/_delete "):
            self.leaves = [(left, index) for left, index in self.leaves if left != ref]
            self.counts["own leave"] += 1
        elif not command.startswith("/_leave "):
            raise Violation(f"{command!r} belongs to no action")

    def _allowed(self, action: Action, command: str) -> None:
        number, asked_for = action.number, (action.tool, action.request.input)
        if asked_for not in self.calls:
            raise Violation(f"action {number} is not what was asked: {asked_for}")
        done = self.performed.setdefault((self.run, number), Performed(action))
        if done.action is not action:
            raise Violation(f"number {number} has two actions")
        if command.partition(" ")[0] in {c.partition(" ")[0] for c in done.commands}:
            raise Violation(f"action {number} goes out twice: {done.commands} {command!r}")
        done.commands.append(command)
        self._as_asked(action, command)
        self._decided(action, command)
        self.counts[action.tool] += 1

    def _as_asked(self, action: Action, command: str) -> None:
        given = action.request.input
        if action.tool == "send":
            head = f"/_send {given['chat']} json "
            expected = [{"msgContent": {"type": "text", "text": given["text"]}}]
            right = command.startswith(head) and json.loads(command[len(head) :]) == expected
        elif action.tool == "leave":
            right = command in (f"/_leave {given['chat']}", f"/_delete {given['chat']} full")
        else:
            entry = self.stack.network.find_link(given["target"])
            mode = f"incognito={'on' if given['incognito'] else 'off'}"
            right = entry is not None and command == f"/_connect 1 {mode} {entry.full} {entry.short}"
        if not right:
            raise Violation(f"action {action.number} asked {given} and sends {command!r}")

    def _decided(self, action: Action, command: str) -> None:
        number = action.number
        if self.host:
            self.counts["host"] += 1
            return
        asked = self.asked.get(number)
        if asked is not None and asked.run == self.run:
            words = [w for w in self.words.get(number, []) if w.index > asked.index and w.run == self.run]
            if self._just_granted(asked, words):
                return
            if not words or words[0].verb != "approve":
                raise Violation(f"action {number} is not approved: {command!r}")
            if words[0].at >= asked.at + EXPIRE:
                raise Violation(f"action {number} was approved after its time: {command!r}")
            return
        if action.tool != "send" or not self._standing(action):
            given = self.grants.get(str(action.request.input.get("chat")))
            raise Violation(f"action {number} has no card and no standing approval: {command!r}, given {given}")
        self.counts["standing"] += 1

    def _just_granted(self, asked: Asked, words: list[Word]) -> bool:
        """A standing approval that is being stored takes along what is asked meanwhile."""
        return asked.tool == "send" and any(
            self.settled < grant.index and all(grant.index < word.index for word in words)
            for grant in self.grants.get(asked.ref or "", [])
        )

    def _standing(self, action: Action) -> bool:
        ref, now = str(action.request.input["chat"]), trio.current_time()
        for grant in self.grants.get(ref, []):
            # A word that is still on its way through the server may come a moment too late.
            over = grant.revoked is not None and grant.revoked <= self.settled
            in_time = grant.seconds is None or now < grant.at + grant.seconds + 1
            counted = grant.messages is None or grant.used < grant.messages
            if not over and in_time and counted and grant.row is self.row(ref) and self.approves(grant.member_id):
                grant.used += 1
                return True
        return False

    # After each step

    def quiet(self) -> None:
        """Everything that was on its way has arrived: what was revoked before is over from here."""
        self.settled = self.index

    def check(self) -> None:
        """Raise what was broken; look at the audit log and the cards."""
        if self.broken:
            raise Violation("; ".join(self.broken))
        created: set[int] = set()
        ended: set[int] = set()
        approved: set[int] = set()
        for entry in self.stack.audit():
            number = entry.get("action")
            if entry["event"] == "created":
                if number in created:
                    raise Violation(f"number {number} was given twice")
                created.add(number)
            elif entry["event"] in FINAL:
                if number in ended:
                    raise Violation(f"action {number} has two outcomes")
                ended.add(number)
            elif entry["event"] == "decided":
                if number in approved:
                    raise Violation(f"action {number} was decided twice")
                approved.add(number)

    def check_cards(self, texts: list[str], pending: set[int]) -> None:
        """Everything is quiet: each card the owner sees shows its outcome, but for those that still wait."""
        for number, asked in self.asked.items():
            editable = trio.current_time() < asked.at + 24 * HOURS  # after a night's sleep of the computer, say
            if asked.text in texts and number not in pending and editable:
                raise Violation(f"the card of action {number} still asks: {asked.text!r}")
