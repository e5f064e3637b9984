"""Standing approvals: an owner's word that messages to one chat, or files from it, need no card, until it ends or is
revoked (flow 6).

They live in the chat's custom data, next to other keys: `{"simplexMcp": {"approvedBy", "approvedById", "approvedAt",
"memberId", "until"?, "left"?}}`; those of files under `simplexMcpFiles`, so that neither is ever the other. An approval
holds while the member that gave it is an approver, known by `memberId`: the numbers of members are used again, that
one is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import trio

from simplexmcp.clock import iso
from simplexmcp.core.api import count
from simplexmcp.errors import CoreError, LinkLost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simplexmcp.clock import Clock
    from simplexmcp.commands import Bound
    from simplexmcp.core.api import ChatApi

__all__ = ["FILES_KEY", "KEY", "Approver", "Grant", "StandingApprovals", "grant_in", "without_grant"]

KEY = "simplexMcp"
FILES_KEY = "simplexMcpFiles"
"""Keys of the approvals of messages, and of files."""

_SOONEST = 1.0  # seconds; an end that cannot be stored yet is tried again
_FIELDS = ("approvedBy", "approvedById", "approvedAt", "memberId", "until", "left")


@dataclass(frozen=True)
class Approver:
    """A member that may decide: `member` is its number here (used again after it is gone), `member_id` its identity."""

    member: int
    member_id: str
    name: str


@dataclass(frozen=True)
class Grant:
    """A standing approval as stored: who gave it, and where it ends."""

    by: Approver
    at: str
    until: datetime | None = None
    left: int | None = None

    def spent(self, now: datetime) -> bool:
        """Whether its time or its number of messages is over."""
        return (self.until is not None and now >= self.until) or (self.left is not None and self.left <= 0)


class ApproverBook(Protocol):
    """Who approves now."""

    def approver(self, member_id: str) -> Approver | None:
        """The approver with this identity."""
        ...


def grant_in(custom: Mapping[str, Any], key: str = KEY) -> Grant | None:
    """The approval in a chat's custom data; None when there is none, or when it is not of our making."""
    data = custom.get(key)
    if not isinstance(data, dict):
        return None
    name, number, member_id = data.get("approvedBy"), data.get("approvedById"), data.get("memberId")
    if not (isinstance(name, str) and isinstance(number, int) and isinstance(member_id, str) and member_id):
        return None
    until, left = data.get("until"), data.get("left")
    try:
        ends = datetime.fromisoformat(until) if isinstance(until, str) else None
    except ValueError:
        return None
    if (until is not None and (ends is None or ends.tzinfo is None)) or not (left is None or isinstance(left, int)):
        return None
    return Grant(Approver(number, member_id, name), str(data.get("approvedAt", "")), ends, left)


def with_grant(custom: Mapping[str, Any], grant: Grant, key: str = KEY) -> dict[str, Any]:
    """The custom data with this approval; other keys stay."""
    data = dict(without_grant(custom, key))
    ours: dict[str, Any] = dict(data.get(key) or {})
    ours |= {
        "approvedBy": grant.by.name,
        "approvedById": grant.by.member,
        "approvedAt": grant.at,
        "memberId": grant.by.member_id,
    }
    if grant.until is not None:
        ours["until"] = iso(grant.until)
    if grant.left is not None:
        ours["left"] = grant.left
    data[key] = ours
    return data


def without_grant(custom: Mapping[str, Any], key: str = KEY) -> dict[str, Any]:
    """The custom data without an approval; other keys stay."""
    data = dict(custom)
    ours = data.get(key)
    if isinstance(ours, dict):
        rest = {field: value for field, value in ours.items() if field not in _FIELDS}
        if rest:
            data[key] = rest
        else:
            del data[key]
    return data


class StandingApprovals:
    """The approvals in force, read from the chats at each use and written under one lock."""

    def __init__(
        self, api: ChatApi, book: ApproverBook, clock: Clock, *, enabled: bool, key: str = KEY,
        lock: trio.Lock | None = None,
    ) -> None:  # fmt: skip
        self._api, self._book, self._clock, self._key = api, book, clock, key
        self.enabled = enabled
        self._lock = lock or trio.Lock()
        self._ends: dict[str, Grant] = {}
        self._over: dict[str, float] = {}  # when they end by the time that goes by: the clock may be set back
        self._bounded = trio.Event()
        self._revoked: set[str] = set()  # holds no more, also while the core still writes that
        self._unwritten: set[str] = set()  # revoked while the link was down

    def of_files(self) -> StandingApprovals:
        """Those of files: stored in the same custom data, so that one lock keeps both writers apart."""
        return StandingApprovals(
            self._api, self._book, self._clock, enabled=self.enabled, key=FILES_KEY, lock=self._lock
        )

    def holds(self, ref: str, custom: Mapping[str, Any]) -> Grant | None:
        """The approval of a chat that is in force now, from the chat's custom data just read."""
        grant = grant_in(custom, self._key) if self.enabled and ref not in self._revoked else None
        if grant is None or self._spent(ref, grant):
            return None
        approver = self._book.approver(grant.by.member_id)
        return grant if approver else None

    def remember(self, ref: str, custom: Mapping[str, Any]) -> None:
        """Watch the end of an approval that is bounded in time (at start, for each chat)."""
        grant = grant_in(custom, self._key)
        if grant is not None and grant.until is not None:
            self._end_at(ref, grant, grant.until)

    async def grant(self, ref: str, approver: Approver, bound: Bound) -> Grant:
        """Store an approval of `ref`. Raises CoreError when the chat is gone."""
        now = self._clock.now()
        until = now + bound.time if bound.time is not None else None
        grant = Grant(approver, iso(now), until, bound.messages)
        async with self._lock:
            custom = await self._custom(ref)
            try:
                await self._api.set_custom(ref, with_grant(custom, grant, self._key))
            except LinkLost:
                self.stop(ref)  # it may be stored; the owner is told that it was not done
                raise
            self._revoked.discard(ref)
            self._unwritten.discard(ref)
            self._forget_end(ref)
            if until is not None:
                self._end_at(ref, grant, until)
                self._bounded.set()
                self._bounded = trio.Event()
        return grant

    async def next_end(self, most: float) -> None:
        """Return when the time of an approval may be over, when one with an end was given, or after `most` seconds."""
        with trio.move_on_after(min(most, self._until_end())):
            await self._bounded.wait()

    def _until_end(self) -> float:
        now = self._clock.now()
        ends = [(grant.until - now).total_seconds() for grant in self._ends.values() if grant.until is not None]
        ends += [over - trio.current_time() for over in self._over.values()]
        return max(min(ends, default=math.inf), _SOONEST)

    def stop(self, ref: str) -> None:
        """The approval of `ref` holds no more from now on; that is stored by `revoke`, or by the next `end_due`."""
        self._revoked.add(ref)
        self._unwritten.add(ref)

    async def revoke(self, ref: str) -> bool:
        """End the approval of `ref`, at once; whether there was one. Raises CoreError when the chat is gone."""
        self.stop(ref)
        async with self._lock:
            if ref not in self._revoked:  # it was given again meanwhile
                return False
            self._forget_end(ref)
            custom = await self._custom(ref)
            rest = without_grant(custom, self._key)
            if rest != custom:
                await self._api.set_custom(ref, rest or None)
            self._unwritten.discard(ref)
            return rest != custom

    async def use(self, ref: str, custom: Mapping[str, Any]) -> tuple[Grant, bool] | None:
        """Use the approval for one message: the grant and whether this was its last; None when it does not hold.

        A number of messages is counted down, and stored, before the message is sent.
        """
        grant = self.holds(ref, custom)
        if grant is None or grant.left is None:
            return (grant, False) if grant else None
        async with self._lock:
            custom = await self._custom(ref)
            grant = self.holds(ref, custom)
            if grant is None or grant.left is None:
                return (grant, False) if grant else None
            last = grant.left == 1
            less = Grant(grant.by, grant.at, grant.until, grant.left - 1)
            without, key = without_grant(custom, self._key), self._key
            await self._api.set_custom(ref, (without or None) if last else with_grant(custom, less, key))
            if last:
                self._forget_end(ref)
            if ref in self._revoked:  # while that was stored
                return None
            return grant, last

    async def end_due(self) -> list[str]:
        """End the approvals whose time is over; their chats. What a lost link kept from being stored is stored now."""
        over = [ref for ref, grant in self._ends.items() if self._spent(ref, grant)]
        ended: list[str] = []
        for ref in [*over, *(self._unwritten - set(over))]:
            try:
                if await self.revoke(ref) and ref in over:
                    ended.append(ref)
            except CoreError as error:
                if not error.tag.startswith("link/"):
                    self.forget(ref)
        return ended

    def forget(self, ref: str) -> None:
        """The chat is gone; its number may be given to another."""
        self._revoked.discard(ref)
        self._unwritten.discard(ref)
        self._forget_end(ref)

    def _end_at(self, ref: str, grant: Grant, until: datetime) -> None:
        self._ends[ref] = grant
        self._over[ref] = trio.current_time() + (until - self._clock.now()).total_seconds()

    def _forget_end(self, ref: str) -> None:
        self._ends.pop(ref, None)
        self._over.pop(ref, None)

    def _spent(self, ref: str, grant: Grant) -> bool:
        return grant.spent(self._clock.now()) or trio.current_time() >= self._over.get(ref, math.inf)

    async def _custom(self, ref: str) -> dict[str, Any]:
        chat = await self._api.get_chat(ref, count(0))
        info = chat["chatInfo"]
        holder = info.get("groupInfo") or info.get("contact") or {}
        custom = holder.get("customData")
        return dict(custom) if isinstance(custom, dict) else {}
