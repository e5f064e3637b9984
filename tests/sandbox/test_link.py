"""The network as a link inside the process: refusals, lost links, delays, and the state file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from simplexmcp.errors import CoreError, LinkLost, UserError
from simplexmcp.sandbox import persistence
from simplexmcp.sandbox.faults import Faults
from simplexmcp.sandbox.link import SandboxLink, open_sandbox

if TYPE_CHECKING:
    from pathlib import Path

USER = '/_create user {"profile":{"displayName":"My Agent","fullName":""},"pastTimestamp":false}'
GROUP = '/_group 1 {"displayName":"Team","fullName":""}'


async def _ready(link: SandboxLink) -> None:
    await link.send(USER)
    await link.send("/_start")


async def _next(link: SandboxLink, tag: str) -> dict[str, Any]:
    with trio.fail_after(60):
        while (event := await link.events.receive())["type"] != tag:
            pass
    return event


async def test_a_refusal_is_an_error_with_the_cores_tag() -> None:
    async with open_sandbox(None, "agent", population=False) as link:
        with pytest.raises(CoreError, match="noActiveUser"):
            await link.send("/_groups 1")


async def test_time_passes_by_trios_clock(autojump_clock: trio.testing.MockClock) -> None:
    del autojump_clock
    async with open_sandbox(None, "agent") as link:
        await _ready(link)
        began = trio.current_time()
        found = link.network.directory()["trail"]
        plan = await link.send(f"/_connect plan 1 {found['short']}")
        data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
        await link.send(f"/_prepare group 1 {found['full']} {found['short']} direct=on {json.dumps(data)}")
        await link.send("/_connect group #1")
        await _next(link, "userJoinedGroup")
        assert 0 < trio.current_time() - began < 10


@pytest.mark.parametrize("done", [False, True])
async def test_a_lost_link_says_so_comes_back_and_left_the_command_done_or_not(
    done: bool, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    async with open_sandbox(None, "agent", population=False) as link:
        await _ready(link)
        link.network.faults.drop("agent", "/_group", done=done)
        with pytest.raises(LinkLost):
            await link.send(GROUP)
        assert link.down_since is not None
        with pytest.raises(LinkLost):
            await link.send("/_groups 1")
        await _next(link, "linkDown")
        await _next(link, "linkUp")
        assert link.down_since is None
        assert len((await link.send("/_groups 1"))["groups"]) == int(done)


async def test_events_that_came_while_the_link_was_down_follow_its_return(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    async with open_sandbox(None, "agent", population=False) as link:
        await _ready(link)
        bob = link.network.core("bob")
        bob.command(USER)
        bob.command("/_start")
        invitation = (await link.send("/_connect 1"))["connLinkInvitation"]
        bob.command(f"/_connect 1 {invitation['connFullLink']} {invitation['connShortLink']}")
        await _next(link, "contactConnected")
        link.network.faults.drop("agent", "/_get chats")
        with pytest.raises(LinkLost):
            await link.send("/_get chats 1 count=1")
        bob.command('/_send @4 json [{"msgContent":{"type":"text","text":"hello?"}}]')
        await _next(link, "linkDown")
        with trio.fail_after(20):
            assert (await link.events.receive())["type"] == "linkUp"
        event = await _next(link, "newChatItems")
        assert event["chatItems"][0]["chatItem"]["meta"]["itemText"] == "hello?"


async def test_a_slow_core_answers_late(autojump_clock: trio.testing.MockClock) -> None:
    del autojump_clock
    async with open_sandbox(None, "agent", population=False, faults=Faults(response_delay=7.0)) as link:
        began = trio.current_time()
        await link.send("/users")
        assert trio.current_time() - began >= 7.0


async def test_the_state_survives_a_restart_and_is_written_while_the_network_runs(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    async with open_sandbox(path, "agent", population=False) as link:
        await _ready(link)
        await link.send(GROUP)
    async with open_sandbox(path, "agent") as link:
        assert (await link.send("/user"))["user"]["localDisplayName"] == "My Agent"
        await link.send("/_start")
        assert len((await link.send("/_groups 1"))["groups"]) == 1


async def test_the_state_is_written_a_moment_after_a_change(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock
    path = tmp_path / "net.json"
    written = trio.Event()
    write = persistence.write

    def observed(to: Path, text: str) -> None:
        write(to, text)
        trio.from_thread.run_sync(written.set)

    async with open_sandbox(path, "agent", population=False) as link:
        with monkeypatch.context() as patch:
            patch.setattr(persistence, "write", observed)
            await _ready(link)
            await written.wait()
        stored = json.loads(await trio.Path(path).read_text())
        assert [core["name"] for core in stored["cores"]] == ["agent"]


async def test_an_error_in_the_program_does_not_keep_the_state_from_being_written(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    with pytest.RaisesGroup(ZeroDivisionError):
        async with open_sandbox(path, "agent", population=False) as link:
            await _ready(link)
            raise ZeroDivisionError
    assert json.loads(await trio.Path(path).read_text())["cores"][0]["active_user"] == 1


async def test_a_state_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing.net\.json cannot be written"):
        async with open_sandbox(tmp_path / "missing" / "net.json", "agent"):
            pass


async def test_a_bad_state_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text("{")
    with pytest.raises(UserError, match=r"net\.json"):
        async with open_sandbox(path, "agent"):
            pass
    assert path.read_text() == "{"
