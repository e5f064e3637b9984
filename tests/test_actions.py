"""Actions: one outcome each, performed only when decided (flows 3 to 11)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.commands import Bound
from simplexmcp.errors import CoreError, Refused
from simplexmcp.journal import Journal
from simplexmcp.states import FINAL, TABLE, Move, State, move
from tests.fakes import ALICE, BOB, Call, Desk

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_final_state_is_never_left() -> None:
    assert {State.DONE, State.FAILED, State.REJECTED, State.EXPIRED, State.CANCELLED, State.INTERRUPTED} == FINAL
    assert all(move(state, what) is None for state in FINAL for what in Move)
    assert set(TABLE.values()) <= set(State)


async def test_an_approved_action_is_performed_once_and_its_card_tells_it(desk: Desk) -> None:
    async with desk.running():
        action = desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.sent == []
        assert desk.board.cards[101] == (
            "I want to send a message to group Trail (#15): `hello`\n"
            "Tap /'approve #15 1', /'approve #15 all' or /'reject #15 1'"
        )
        assert desk.actions.approve(1, None, ALICE) is None
        assert desk.actions.approve(1, None, BOB) == "Action 1 was already approved by Alice."
        assert desk.actions.reject(1, None, BOB) == "Action 1 was already approved by Alice."
        await wait_all_tasks_blocked()
        assert desk.sent == [(1, "hello")]
        assert (action.state, action.result, action.decided_by) == (State.DONE, {"item": 500}, "Alice")
        assert desk.board.cards[101] == "I sent a message to group Trail (#15): `hello`\nApproved by Alice."


async def test_a_tap_that_overtakes_the_answer_of_the_post_is_not_lost(desk: Desk) -> None:
    async with desk.running():
        desk.board.hold = trio.Event()
        desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.actions.approve(1, "#15", ALICE) is None
        await wait_all_tasks_blocked()
        assert desk.sent == []
        desk.board.hold.set()
        await wait_all_tasks_blocked()
        assert desk.sent == [(1, "hello")]


async def test_a_rejected_action_sends_nothing(desk: Desk) -> None:
    async with desk.running():
        action = desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.actions.reject(1, "#15", ALICE) is None
        await wait_all_tasks_blocked()
        assert (desk.sent, action.state) == ([], State.REJECTED)
        assert desk.board.cards[101].endswith("\nRejected by Alice.")
        assert desk.actions.approve(1, None, ALICE) == "Action 1 was already rejected by Alice."


async def test_a_number_of_another_chat_decides_nothing(desk: Desk) -> None:
    async with desk.running():
        desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.actions.approve(1, "#9", ALICE) == "Action 1 is not for chat (#9)."
        assert desk.actions.approve(2, None, ALICE) == "Action 2 is not pending."
        await wait_all_tasks_blocked()
        assert desk.sent == []


async def test_equal_calls_are_one_action_until_its_result_was_delivered(desk: Desk) -> None:
    async with desk.running():
        first = desk.actions.ask(desk.request())
        assert desk.actions.ask(desk.request()) is first
        await wait_all_tasks_blocked()
        desk.actions.approve(1, None, ALICE)
        await wait_all_tasks_blocked()
        assert desk.actions.ask(desk.request()) is first
        desk.actions.settle(first)
        assert desk.actions.ask(desk.request()) is not first


async def test_an_action_expires_after_its_hours_and_says_so(tmp_path: Path, autojump_clock: MockClock) -> None:
    desk = Desk(tmp_path, expire=timedelta(hours=1))
    async with desk.running():
        action = desk.actions.ask(desk.request())
        call = Call()
        await desk.actions.finished(action, call)
        assert action.state is State.EXPIRED
        assert call.said == [f"Action 1 waits for an approver until {hhmm_of(action.expires)}."]
        await trio.sleep(1)
        assert desk.board.cards[101].endswith("\nExpired.")
        assert desk.board.posts[1] == f"Action 1 expires at {hhmm_of(action.expires)}."
        assert desk.actions.approve(1, None, ALICE) == f"Action 1 expired at {hhmm_of(action.expires)}."
        await trio.sleep(120)
        assert desk.actions.listed() == []
        assert desk.actions.approve(1, None, ALICE) == f"Action 1 expired at {hhmm_of(action.expires)}."
        assert desk.sent == []


async def test_the_fifty_first_pending_action_is_refused(desk: Desk) -> None:
    async with desk.running():
        for n in range(50):
            desk.actions.ask(desk.request(f"text {n}"))
        with pytest.raises(Refused, match=r"50 actions wait for an approver; wait for them or ask your owner\."):
            desk.actions.ask(desk.request("one more"))
        await wait_all_tasks_blocked()
        assert len(desk.board.posts) == 50


async def test_without_an_approver_nothing_is_asked(desk: Desk) -> None:
    desk.board.no_approver = "The agent has no approving owner."
    async with desk.running():
        with pytest.raises(Refused, match="no approving owner"):
            desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.board.number == 0


async def test_a_card_that_cannot_be_posted_fails_the_action_and_sends_nothing(desk: Desk) -> None:
    desk.board.fail = CoreError("link/down", "the core is not reachable")
    async with desk.running():
        action = desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert action.state is State.FAILED
        assert action.error == "The action could not be asked: the core is not reachable"
        assert desk.actions.approve(1, None, ALICE) == "Action 1 is not pending."
        await wait_all_tasks_blocked()
        assert desk.sent == []


async def test_a_standing_approval_carries_a_send_and_no_other_action(desk: Desk) -> None:
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound())
        sent = desk.actions.ask(desk.request("one"))
        other = desk.actions.ask(desk.request("two", standing=False))
        await wait_all_tasks_blocked()
        assert (sent.state, other.state) == (State.DONE, State.PENDING)
        assert desk.sent == [(1, "one")]
        assert "I sent a message to group Trail (#15): `one`\nApproved for this chat by Alice. /'revoke #15'" in (
            desk.board.posts
        )


async def test_a_standing_approval_ends_with_its_number_of_messages(desk: Desk) -> None:
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound(messages=2))
        for n in range(3):
            desk.actions.ask(desk.request(f"text {n}"))
            await wait_all_tasks_blocked()
        assert desk.sent == [(1, "text 0"), (2, "text 1")]
        assert desk.actions.pending()[0].number == 3
        assert any("was used up: they need approval again." in post for post in desk.board.posts)


async def test_two_sends_at_once_do_not_use_one_approval_twice(desk: Desk) -> None:
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound(messages=1))
        one, two = desk.actions.ask(desk.request("one")), desk.actions.ask(desk.request("two"))
        await wait_all_tasks_blocked()
        assert len(desk.sent) == 1
        assert {one.state, two.state} == {State.DONE, State.FAILED}


async def test_a_standing_approval_ends_with_its_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    desk = Desk(tmp_path)
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound(time=timedelta(hours=2)))
        await trio.sleep(2 * 3600 + 61)
        assert desk.chats.custom["#15"] == {}
        assert any("is over: they need approval again." in post for post in desk.board.posts)
        desk.actions.ask(desk.request())
        await trio.sleep(1)
        assert desk.sent == []


async def test_an_approval_of_a_minute_ends_after_a_minute(tmp_path: Path, autojump_clock: MockClock) -> None:
    desk = Desk(tmp_path)
    async with desk.running():
        await trio.sleep(30)
        await desk.standing.grant("#15", ALICE, Bound(time=timedelta(minutes=1)))
        await trio.sleep(62)
        assert any("is over: they need approval again." in post for post in desk.board.posts)


async def test_fifty_pending_actions_do_not_stop_what_needs_no_card(desk: Desk) -> None:
    async with desk.running():
        for n in range(50):
            desk.actions.ask(desk.request(f"text {n}", ref="#9"))
        await desk.standing.grant("#15", ALICE, Bound())
        desk.actions.ask(desk.request("approved already"))
        await wait_all_tasks_blocked()
        assert [text for _, text in desk.sent] == ["approved already"]


async def test_a_revoked_approval_stops_a_send_that_was_already_asked(desk: Desk) -> None:
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound())
        action = desk.actions.ask(desk.request())
        await desk.standing.revoke("#15")
        await wait_all_tasks_blocked()
        assert (desk.sent, action.state) == ([], State.FAILED)


async def test_an_approval_of_somebody_who_is_no_owner_any_more_does_not_hold(desk: Desk) -> None:
    async with desk.running():
        await desk.standing.grant("#15", BOB, Bound())
        del desk.board.known[BOB.member_id]
        action = desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert (desk.sent, action.state) == ([], State.PENDING)


async def test_a_target_that_changed_since_the_card_gets_nothing(desk: Desk) -> None:
    async with desk.running():
        request = desk.request()
        action = desk.actions.ask(request)
        await wait_all_tasks_blocked()
        desk.chat = lambda ref="#15", role="observer": Desk.chat(desk, ref, role)  # type: ignore[method-assign]
        desk.actions.approve(1, None, ALICE)
        await wait_all_tasks_blocked()
        assert (desk.sent, action.state) == ([], State.FAILED)
        assert action.error == "group Trail (#15) changed after the request."
        assert desk.board.cards[101].endswith(
            "Approved by Alice; failed: `group Trail (#15) changed after the request.`"
        )


async def test_mode_host_performs_at_once_and_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, mode="host")
    async with desk.running():
        await desk.standing.grant("#15", ALICE, Bound())
        desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        assert desk.sent == [(1, "hello")]
        assert desk.said == ["Action 1: performed without approval (mode host)."]
        assert desk.board.posts == [
            "I sent a message to group Trail (#15): `hello`\nPerformed without approval (mode host)."
        ]


async def test_a_chat_that_goes_takes_its_pending_actions_with_it(desk: Desk) -> None:
    async with desk.running():
        mine, other = desk.actions.ask(desk.request()), desk.actions.ask(desk.request(ref="#9"))
        await wait_all_tasks_blocked()
        desk.actions.chat_gone(desk.chat("#15"))
        await wait_all_tasks_blocked()
        assert (mine.state, other.state) == (State.FAILED, State.PENDING)
        assert mine.error == "group Trail (#15) is gone."


async def test_a_stop_cancels_what_waits_and_interrupts_what_runs(desk: Desk) -> None:
    async with desk.running():
        desk.slow = trio.Event()
        running = desk.actions.ask(desk.request("one"))
        await wait_all_tasks_blocked()
        desk.actions.approve(1, None, ALICE)
        waiting = desk.actions.ask(desk.request("two"))
        await wait_all_tasks_blocked()
        assert await desk.actions.stop() == 2
        assert (running.state, waiting.state) == (State.INTERRUPTED, State.CANCELLED)
        assert desk.board.cards[101].endswith("\nApproved by Alice; interrupted: the server stopped.")
        assert desk.board.cards[102].endswith("\nCancelled: the server stopped.")
        assert desk.actions.cards_at_stop == 2
        with pytest.raises(Refused, match="stopping"):
            desk.actions.ask(desk.request("three"))


async def test_a_stop_while_the_counter_is_written_performs_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, mode="host")
    async with desk.running():
        action = desk.actions.ask(desk.request())
        await desk.actions.stop()
        await wait_all_tasks_blocked()
        assert (desk.sent, action.state) == ([], State.CANCELLED)


async def test_a_defect_in_a_perform_is_an_outcome_and_not_the_end(desk: Desk) -> None:
    async with desk.running():
        desk.error = ZeroDivisionError("secret detail")
        action = desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        desk.actions.approve(1, None, ALICE)
        await wait_all_tasks_blocked()
        assert action.state is State.FAILED
        assert "Internal error" in (action.error or "")
        assert "secret" not in (action.error or "")


async def test_the_journal_knows_the_action_before_its_card_is_posted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.running():
        desk.board.hold = trio.Event()
        desk.actions.ask(desk.request())
        await wait_all_tasks_blocked()
        lines = (tmp_path / "actions.jsonl").read_text().splitlines()
        assert json.loads(lines[0])["text"] == "I want to send a message to group Trail (#15): `hello`"
        assert desk.board.posts == []


async def test_what_a_crashed_run_left_is_in_the_journal_and_what_ended_is_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.running():
        for text in ("one", "two", "three"):
            desk.actions.ask(desk.request(text))
            await wait_all_tasks_blocked()
        desk.slow = trio.Event()
        desk.actions.approve(1, None, ALICE)
        desk.actions.reject(2, None, ALICE)
        await wait_all_tasks_blocked()
    left = {entry["n"]: entry for entry in Journal(tmp_path / "actions.jsonl").left}
    assert set(left) == {1, 3}
    assert (left[1]["state"], left[1]["by"]) == ("performing", "Alice")
    assert (left[3]["state"], left[3]["card"]) == ("pending", 103)


def hhmm_of(moment: object) -> str:
    from simplexmcp.clock import hhmm
    from tests.fakes import START

    return hhmm(moment, START)  # type: ignore[arg-type]
