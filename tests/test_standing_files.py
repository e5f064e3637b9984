"""Standing approvals of files: beside those of messages, and never in their place (flow 6, case S33)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.action import Action, Request
from simplexmcp.cards import DownloadSubject
from simplexmcp.commands import Bound
from simplexmcp.standing import FILES_KEY, KEY
from simplexmcp.states import State
from tests.fakes import ALICE, BOB, Call, Desk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def download(desk: Desk, item: int = 30, ref: str = "#15", *, files: bool = True) -> Request:
    chat = desk.chat(ref)

    async def perform(action: Action) -> dict[str, Any]:
        await desk.actions.confirm(action, desk.chat(ref))
        desk.sent.append((action.number, f"item {item}"))
        return {"path": f"/{item}"}

    subject = DownloadSubject(chat, item, "Bob", "a.pdf", 10)
    fields = {"chat": ref, "item": item}
    return Request("download", ("download", ref, item), fields, subject, chat, perform, files=files)


async def state_of(desk: Desk, request: Request) -> State:
    action = desk.actions.ask(request)
    with trio.move_on_after(1):
        await desk.actions.finished(action, Call())
    return action.state


async def test_both_approvals_are_stored_side_by_side_and_end_alone(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.standing.grant("#15", ALICE, Bound())
        await desk.actions.files.grant("#15", BOB, Bound())
        custom = desk.chats.custom["#15"]
        assert (custom[KEY]["approvedBy"], custom[FILES_KEY]["approvedBy"]) == ("Alice", "Bob")
        assert await desk.actions.files.revoke("#15")
        assert set(desk.chats.custom["#15"]) == {KEY}
        assert desk.standing.holds("#15", desk.chats.custom["#15"]) is not None


async def test_both_approvals_given_at_once_are_both_stored(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk, trio.open_nursery() as nursery:
        nursery.start_soon(desk.standing.grant, "#15", ALICE, Bound())
        nursery.start_soon(desk.actions.files.grant, "#15", BOB, Bound())
        await trio.sleep(1)
        assert set(desk.chats.custom["#15"]) == {KEY, FILES_KEY}


async def test_an_approval_of_files_carries_downloads_and_no_message(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        assert await state_of(desk, download(desk)) is State.DONE
        assert await state_of(desk, desk.request()) is State.PENDING
        assert desk.board.posts[0].endswith("\nFiles approved for this chat by Alice. /'receive #15 off'")


async def test_an_approval_of_messages_carries_no_download(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.standing.grant("#15", ALICE, Bound())
        assert await state_of(desk, download(desk)) is State.PENDING
        assert await state_of(desk, desk.request()) is State.DONE


async def test_approve_all_leaves_a_pending_download_and_a_pending_file(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        asked = [desk.actions.ask(download(desk)), desk.actions.ask(desk.request("with a file", standing=False))]
        await trio.sleep(1)
        desk.actions.approve_sends("#15", ALICE)
        assert [action.state for action in asked] == [State.PENDING, State.PENDING]


async def test_an_approval_of_files_covers_the_groups_support_chats(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        custom = desk.chats.custom["#15"]
        desk.chats.custom["#15(_support:4)"] = custom
        assert await state_of(desk, download(desk, ref="#15(_support:4)")) is State.DONE


async def test_a_file_on_unknown_servers_is_not_carried(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        assert await state_of(desk, download(desk, files=False)) is State.PENDING


async def test_the_approval_of_an_owner_who_is_none_any_more_does_not_hold(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        del desk.board.known[ALICE.member_id]
        assert await state_of(desk, download(desk)) is State.PENDING


async def test_an_approval_that_ends_before_the_perform_receives_nothing(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        action = desk.actions.ask(download(desk))
        desk.actions.files.stop("#15")
        await desk.actions.finished(action, Call())
        assert (action.state, desk.sent) == (State.FAILED, [])
        assert action.error == "The standing approval of this chat ended; send it again to ask your owner."


async def test_no_approval_of_files_holds_in_mode_host(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with Desk(tmp_path, mode="host").running() as desk:
        await desk.actions.files.grant("#15", ALICE, Bound())
        assert desk.actions.files.holds("#15", desk.chats.custom["#15"]) is None
        action = desk.actions.ask(download(desk))
        assert action.host
        assert action.grant is None


async def test_a_rejected_file_is_remembered_by_its_chat_and_item(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with Desk(tmp_path).running() as desk:
        request = download(desk)
        action = desk.actions.ask(request)
        await action.posted.wait()
        assert not desk.actions.was_rejected(desk.chat(), 30)
        assert desk.actions.reject(action.number, "#15", ALICE) is None
        assert desk.actions.was_rejected(desk.chat(), 30)
        assert not desk.actions.was_rejected(desk.chat(), 31)


async def test_an_approval_of_files_ends_with_its_chat(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with Desk(tmp_path).running() as desk:
        desk.actions.files.stop("#15")
        desk.actions.chat_gone(desk.chat())
        await desk.actions.files.grant("#15", ALICE, Bound())
        assert desk.actions.files.holds("#15", desk.chats.custom["#15"]) is not None
    assert not caplog.records
