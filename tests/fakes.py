"""Small stand-ins for the doors of the agent server, used by the tests of its rooms."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.action import Action, Request
from simplexmcp.actions import Actions
from simplexmcp.audit import Audit
from simplexmcp.cards import Card, SendSubject
from simplexmcp.chats import Chat
from simplexmcp.errors import CoreError
from simplexmcp.journal import Journal
from simplexmcp.standing import Approver, StandingApprovals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from simplexmcp.files.folders import Kept

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ALICE = Approver(3, "alice-id", "Alice")
BOB = Approver(7, "bob-id", "Bob")


class TrioClock:
    """Wall time that goes with trio's clock, so that a mock clock moves both."""

    def now(self) -> datetime:
        return START + timedelta(seconds=trio.current_time())


class FakeBoard:
    """A control chat that keeps what was posted; `fail` makes the next post raise."""

    def __init__(self) -> None:
        self.posts: list[str] = []
        self.cards: dict[int, str] = {}
        self.no_approver: str | None = None
        self.number = 0
        self.stored = 1
        self.fail: Exception | None = None
        self.hold: trio.Event | None = None
        self.known: dict[str, Approver] = {ALICE.member_id: ALICE, BOB.member_id: BOB}

    def refusal(self) -> str | None:
        return self.no_approver

    def approver(self, member_id: str) -> Approver | None:
        return self.known.get(member_id)

    def take_number(self) -> int:
        self.number += 1
        return self.number

    async def save_counter(self) -> None:
        await trio.lowlevel.checkpoint()
        self.stored = self.number + 1

    async def post(self, card: Card) -> int:
        if self.hold is not None:
            await self.hold.wait()
        await trio.lowlevel.checkpoint()
        if self.fail is not None:
            raise self.fail
        self.posts.append(card.text)
        item = 100 + len(self.posts)
        self.cards[item] = card.text
        return item

    async def find(self, text: str) -> int | None:
        await trio.lowlevel.checkpoint()
        return next((item for item, shown in self.cards.items() if shown == text), None)

    async def edit(self, item: int, card: Card) -> None:
        await trio.lowlevel.checkpoint()
        self.cards[item] = card.text


class News:
    """What the owners are told of files, kept."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def refused(self, path: str, reason: str, *, last: bool) -> None:
        self.told.append(("refused", path, reason, last))

    def failed(self, line: str) -> None:
        self.told.append(("failed", line))

    def kept(self, chat: Chat, folder: Path, kept: Kept, after: trio.Event) -> None:
        self.told.append(("kept", chat.ref, folder, kept.files, after))

    def link_is_back(self) -> None:
        self.told.append(("back",))


class FakeChats:
    """The core's chats for standing approvals: custom data by reference."""

    def __init__(self, *refs: str) -> None:
        self.custom: dict[str, dict[str, Any]] = {ref: {} for ref in refs}

    async def get_chat(self, ref: str, page: str, search: str | None = None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if ref not in self.custom:
            raise CoreError("errorStore/groupNotFound", "errorStore/groupNotFound")
        return {"chatInfo": {"type": "group", "groupInfo": {"customData": self.custom[ref]}}, "chatItems": []}

    async def set_custom(self, ref: str, data: dict[str, Any] | None) -> None:
        await trio.lowlevel.checkpoint()
        self.custom[ref] = data or {}


class Call:
    """A call that keeps what was said to it."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


class Desk:
    """Actions with fakes around them, and what the performs did."""

    def __init__(self, folder: Path, mode: str = "requests", expire: timedelta = timedelta(hours=23)) -> None:
        self.board, self.chats = FakeBoard(), FakeChats("#9", "#15")
        clock = TrioClock()
        self.audit = Audit(folder / "audit.jsonl", clock)
        self.journal = Journal(folder / "actions.jsonl")
        self.standing = StandingApprovals(self.chats, self.board, clock, enabled=mode == "requests")  # type: ignore[arg-type]
        self.said: list[str] = []
        self.actions = Actions(
            self.board, self.standing, self.journal, self.audit, clock, mode=mode, expire=expire, log=self.said.append
        )  # type: ignore[arg-type]
        self.sent: list[tuple[int, str]] = []
        self.slow: trio.Event | None = None
        self.error: Exception | None = None

    def chat(self, ref: str = "#15", role: str = "member") -> Chat:
        custom = self.chats.custom.get(ref, {})
        return Chat(
            ref=ref, kind="group", name="Trail", state="connected", role=role, identity=("g", role), custom=custom
        )

    def request(self, text: str = "hello", ref: str = "#15", standing: bool = True) -> Request:
        chat = self.chat(ref)

        async def perform(action: Action) -> dict[str, Any]:
            await trio.lowlevel.checkpoint()
            await self.actions.confirm(action, self.chat(ref))
            self.sent.append((action.number, text))
            if self.slow is not None:
                await self.slow.wait()
            if self.error is not None:
                raise self.error
            return {"item": 500}

        subject = SendSubject(chat, text, None, ())
        fields = {"chat": ref, "text": text}
        return Request("send", ("send", ref, text), fields, subject, chat, perform, standing)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Desk]:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.actions.run)
            yield self
            nursery.cancel_scope.cancel()
        self.journal.close()
        self.audit.close()
