"""Standing approvals: what is stored beside other data, when they hold, and how they end (flow 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from simplexmcp.clock import iso
from simplexmcp.commands import Bound
from simplexmcp.errors import CoreError, LinkLost
from simplexmcp.standing import KEY, StandingApprovals, grant_in, with_grant, without_grant
from tests.fakes import ALICE, BOB, FakeBoard, FakeChats, TrioClock

OTHER = {"theirs": 1, KEY: {"control": True, "nextAction": 9}}


class Chats(FakeChats):
    """The core's chats; `fail` is raised by the next write, before or after it."""

    def __init__(self) -> None:
        super().__init__("#9")
        self.fail: Exception | None = None
        self.hold: trio.Event | None = None

    async def set_custom(self, ref: str, data: dict[str, Any] | None) -> None:
        if self.hold is not None:
            await self.hold.wait()
        error, self.fail = self.fail, None
        if error is not None and not (isinstance(error, LinkLost) and error.tag == "link/lost"):
            raise error
        await super().set_custom(ref, data)
        if error is not None:
            raise error


class Desk:
    def __init__(self, *, enabled: bool = True) -> None:
        self.board, self.chats = FakeBoard(), Chats()
        self.standing = StandingApprovals(self.chats, self.board, TrioClock(), enabled=enabled)  # type: ignore[arg-type]

    @property
    def custom(self) -> dict[str, Any]:
        return self.chats.custom["#9"]

    def holds(self) -> bool:
        return self.standing.holds("#9", self.custom) is not None


async def test_an_approval_is_stored_beside_other_data_and_taken_out_without_a_trace(mock_clock: MockClock) -> None:
    desk = Desk()
    desk.chats.custom["#9"] = dict(OTHER)
    now = TrioClock().now()
    await desk.standing.grant("#9", ALICE, Bound(timedelta(hours=2), None))
    assert desk.custom["theirs"] == 1
    assert desk.custom[KEY] == {
        "control": True, "nextAction": 9, "approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id",
        "approvedAt": iso(now), "until": iso(now + timedelta(hours=2)),
    }  # fmt: skip
    assert await desk.standing.revoke("#9")
    assert desk.custom == OTHER
    assert not await desk.standing.revoke("#9")
    desk.chats.custom["#9"] = {}
    await desk.standing.grant("#9", ALICE, Bound())
    await desk.standing.revoke("#9")
    assert desk.custom == {}


@pytest.mark.parametrize(
    "bad",
    [
        None, [], "x", {}, {"approvedBy": "Alice"}, {"approvedBy": "Alice", "approvedById": 3},
        {"approvedBy": "Alice", "approvedById": "3", "memberId": "alice-id"},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": ""},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "until": "tomorrow"},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "until": "2026-12-24T20:00:00"},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "until": 5},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "left": "many"},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "left": 0},
        {"approvedBy": "Alice", "approvedById": 3, "memberId": "alice-id", "left": -4},
    ],
)  # fmt: skip
async def test_what_is_damaged_or_of_another_making_approves_nothing(bad: Any) -> None:
    desk = Desk()
    assert desk.standing.holds("#9", {KEY: bad}) is None
    assert await desk.standing.use("#9", {KEY: bad}) is None


async def test_an_approval_holds_only_while_its_giver_approves_whoever_has_the_number_now() -> None:
    desk = Desk()
    await desk.standing.grant("#9", BOB, Bound())
    assert desk.holds()
    del desk.board.known[BOB.member_id]
    assert not desk.holds()
    desk.board.known["another-id"] = type(BOB)(BOB.member, "another-id", BOB.name)
    assert not desk.holds()


async def test_in_mode_host_no_approval_holds() -> None:
    desk = Desk(enabled=False)
    await desk.standing.grant("#9", ALICE, Bound())
    assert not desk.holds()


async def test_a_number_of_messages_is_counted_down_before_each_and_the_last_one_is_told() -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(messages=2))
    first = await desk.standing.use("#9", desk.custom)
    assert first is not None
    assert (first[1], desk.custom[KEY]["left"]) == (False, 1)
    last = await desk.standing.use("#9", desk.custom)
    assert last is not None
    assert (last[1], desk.custom) == (True, {})
    assert await desk.standing.use("#9", desk.custom) is None


async def test_a_count_that_cannot_be_stored_lets_nothing_out() -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(messages=2))
    desk.chats.fail = CoreError("errorStore/x", "no")
    with pytest.raises(CoreError):
        await desk.standing.use("#9", desk.custom)


async def test_a_revoke_wins_over_a_use_that_is_being_stored() -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(messages=5))
    desk.chats.hold = trio.Event()
    used: list[Any] = []

    async def use() -> None:
        used.append(await desk.standing.use("#9", desk.custom))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        await wait_all_tasks_blocked()
        nursery.start_soon(desk.standing.revoke, "#9")
        await wait_all_tasks_blocked()
        desk.chats.hold.set()
    assert used == [None]
    assert desk.custom == {}


async def test_a_revoke_that_the_core_did_not_hear_holds_and_is_stored_later() -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound())
    desk.chats.fail = LinkLost("link/down", "down")
    with pytest.raises(LinkLost):
        await desk.standing.revoke("#9")
    assert grant_in(desk.custom) is not None
    assert not desk.holds()
    assert await desk.standing.end_due() == []
    assert desk.custom == {}
    await desk.standing.grant("#9", ALICE, Bound())
    assert desk.holds()


async def test_a_grant_whose_answer_was_lost_does_not_hold_and_is_taken_out() -> None:
    desk = Desk()
    desk.chats.fail = LinkLost("link/lost", "lost")
    with pytest.raises(LinkLost):
        await desk.standing.grant("#9", ALICE, Bound())
    assert grant_in(desk.custom) is not None
    assert not desk.holds()
    await desk.standing.end_due()
    assert desk.custom == {}


async def test_an_approval_ends_with_its_time_also_when_it_was_given_before_the_start(
    autojump_clock: MockClock,
) -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(time=timedelta(minutes=5)))
    later = StandingApprovals(desk.chats, desk.board, TrioClock(), enabled=True)  # type: ignore[arg-type]
    later.remember("#9", desk.custom)
    assert await later.end_due() == []
    await trio.sleep(301)
    assert later.holds("#9", desk.custom) is None
    assert await later.end_due() == ["#9"]
    assert await later.end_due() == []
    assert desk.custom == {}


async def test_an_approval_that_is_given_again_while_the_old_one_ends_stays(autojump_clock: MockClock) -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(time=timedelta(minutes=5)))
    await trio.sleep(301)
    desk.chats.hold = trio.Event()
    ended: list[str] = []

    async def end() -> None:
        ended.extend(await desk.standing.end_due())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.standing.grant, "#9", ALICE, Bound(time=timedelta(hours=2)))
        await wait_all_tasks_blocked()
        nursery.start_soon(end)
        await wait_all_tasks_blocked()
        desk.chats.hold.set()
    assert ended == []
    assert desk.holds()


async def test_the_approval_of_a_chat_that_is_gone_is_forgotten_with_its_number() -> None:
    desk = Desk()
    await desk.standing.grant("#9", ALICE, Bound(time=timedelta(minutes=5)))
    desk.standing.stop("#9")
    del desk.chats.custom["#9"]
    assert await desk.standing.end_due() == []
    desk.chats.custom["#9"] = {}
    await desk.standing.grant("#9", ALICE, Bound())
    assert desk.holds()


def test_with_and_without_are_inverse() -> None:
    grant = grant_in({KEY: {"approvedBy": "A", "approvedById": 1, "memberId": "m", "approvedAt": "x", "left": 3}})
    assert grant is not None
    for custom in ({}, {"a": 1}, dict(OTHER)):
        assert without_grant(with_grant(custom, grant)) == custom
        assert grant_in(with_grant(custom, grant)) == grant
