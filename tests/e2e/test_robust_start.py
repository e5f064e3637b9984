"""A server that starts: in the order of flow 1, or not at all, with one clear line and nothing left behind."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.sandbox import users
from tests.e2e.robust import failure, nothing_left, open_files, taken_port, tasks, told
from tests.e2e.world import Lines, free_port, open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.world import World

KEY = "d6y7jNf2QVk0nH351ZQuLFI11aTOxVJ-qENs9L_0Rpc"
RELAYS: dict[str, Any] = {
    "smp_servers": (f"smp://{KEY}=@127.0.0.1:7001",),
    "xftp_servers": (f"xftp://{KEY}=@127.0.0.1:7002",),
}
REFUSAL = {"type": "error", "errorType": {"type": "commandError", "message": "not \x1b[31mtoday"}}
FIRST_START = [
    "/version",
    "/user",
    "/_create user",
    "/network socks=off smp-proxy=always smp-proxy-fallback=protected",
    "/_temp_folder FOLDER/data/tmp",
    "/_start",
    "/_servers 1",
    f"/smp {RELAYS['smp_servers'][0]}",
    f"/xftp {RELAYS['xftp_servers'][0]}",
    "/_groups 1",
    "/_group 1",
    "/_set custom #1",
    "/_members #1",
    "/_delete link #1",
    "/_create link #1 member",
]
STEPS = ["/_group 1 " if step == "/_group 1" else step.replace("FOLDER/data/tmp", "") for step in FIRST_START]


def without_json(commands: list[str], folder: Path) -> list[str]:
    return [text.split(" {")[0].replace(str(folder), "FOLDER") for text in commands]


def groups(world: World) -> list[str]:
    """The agent's groups."""
    core = world.network.core("agent")
    return [core.group_json(group)["groupProfile"]["displayName"] for group in core.state.groups.values()]


async def test_the_core_is_told_what_flow_1_says_in_its_order_and_less_at_the_next_start(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        commands = told(world)
        sent = tmp_path / "data" / "files" / "sent"
        await (await world.serve(**RELAYS)).end()
        made = [text for text in commands if text.startswith(("/_create user", "/_group ", "/_set custom"))]
        assert made[0].startswith('/_create user {"profile":{"displayName":"My Agent","fullName":"","peerType":"bot"}')
        assert made[1].startswith('/_group 1 {"displayName":"My Agent","fullName":"","groupPreferences":{"history"')
        assert made[2] == '/_set custom #1 {"simplexMcp":{"control":true,"nextAction":1}}'
        assert without_json(commands, tmp_path)[: len(FIRST_START)] == FIRST_START
        commands.clear()
        sent.mkdir(parents=True)
        (sent / "7.pdf").write_text("a copy")
        (tmp_path / "elsewhere").mkdir()
        (sent / "link").symlink_to(tmp_path / "elsewhere")
        server = await world.serve(display_name="Another Name", **RELAYS)
        async with world.person("Alice") as alice:
            await world.owner(server, alice)
            await server.end()
            assert without_json(commands, tmp_path)[:10] == [
                *("/version", "/user", FIRST_START[3], FIRST_START[4], "/_start", "/_servers 1"),
                *("/_groups 1", "/_members #1", "/_delete link #1", "/_create link #1 member"),
            ]
            assert list(sent.iterdir()) == []
            assert (tmp_path / "elsewhere").is_dir()
            commands.clear()
            server = await world.serve()
            await server.end()
        known = ["/version", "/user", *FIRST_START[3:6], "/_groups 1", "/_members #1", "/_delete link #1"]
        assert without_json(commands, tmp_path)[:8] == known
        assert not any(text.startswith(("/_create", "/_profile", "/_group ")) for text in commands)
        assert groups(world) == ["My Agent"]


async def test_a_folder_of_copies_that_is_a_link_is_taken_away_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "file").write_text("x")
        (tmp_path / "data" / "files").mkdir(parents=True, mode=0o700)
        (tmp_path / "data").chmod(0o700)
        (tmp_path / "data" / "files" / "sent").symlink_to(precious)
        await (await world.serve()).end()
        assert (precious / "file").exists()
        assert not os.path.lexists(tmp_path / "data" / "files" / "sent")


async def test_what_the_core_refuses_at_the_start_is_one_line_and_the_next_start_goes_on_from_there(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world:
        for step in STEPS:
            world.network.faults.fail(step, REFUSAL, core="agent")
            error = await failure(world.options(**RELAYS))
            assert "not " in str(error), step
            assert error.code == (2 if step.startswith(("/smp", "/xftp")) else 1)
            assert world.network.faults.refusals == [], step
        await (await world.serve(**RELAYS)).end()
        assert groups(world) == ["My Agent"]


@pytest.mark.parametrize("done", [True, False])
async def test_a_link_lost_at_any_step_of_the_start_is_one_line_and_leaves_no_second_control_chat(
    tmp_path: Path, done: bool
) -> None:
    async with open_world(tmp_path) as world:
        for step in STEPS:
            world.network.faults.drop("agent", step, done=done)
            assert str(await failure(world.options(**RELAYS))) == (
                "The link to the SimpleX core was lost during the start. Start again when the core runs."
            )
            assert world.network.faults.drops == {}, step
        server = await world.serve(**RELAYS)
        assert groups(world) == ["My Agent"]
        async with world.person("Alice") as alice, server.agent() as agent:
            await world.owner(server, alice)
            assert (await agent.call("list"))["chats"] == []
        await server.end()


async def test_a_start_that_cannot_be_is_one_clear_line_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        with taken_port() as taken:
            port = taken.getsockname()[1]
            assert str(await failure(world.options(port=port))).startswith(f"Port {port} is in use by another program")
        assert not (tmp_path / "data" / "server.json").exists()
        assert "agent" not in world.network.cores
        error = await failure(world.options(core=f"ws://127.0.0.1:{free_port()}"))
        assert str(error).startswith("No SimpleX core at ws://127.0.0.1:")
        error = await failure(world.options(owners="3:Alice"))
        assert (str(error), error.code) == (
            "--owners with a list needs a control chat: start with --owners alone, and join by its link.", 2
        )  # fmt: skip
        assert groups(world) == []
        error = await failure(world.options(core=world.core_url("new"), display_name="/bad name"))
        assert (error.code, "--display-name" in str(error)) == (2, True)
        async with world.person("Bob"):
            error = await failure(world.options(core=world.core_url("bob")))
            assert str(error).startswith('The core\'s user "Bob" is a person; give the agent a database of its own')
        (tmp_path / "link").symlink_to(tmp_path / "data")
        assert "is a symlink" in str(await failure(world.options(data=tmp_path / "link")))
        (tmp_path / "file").write_text("")
        assert "is not a folder" in str(await failure(world.options(data=tmp_path / "file")))
        monkeypatch.setattr(users, "VERSION", "6.4.1.0")
        error = await failure(world.options())
        assert str(error) == "The core is version 6.4.1.0; simplexmcp needs 7.0 or later: update it."


async def test_a_second_server_on_the_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        server = await world.serve()
        error = await failure(world.options(core=world.core_url("other"), port=free_port()))
        assert str(error) == f"Agent my-agent is already running (process {os.getpid()})."
        assert "other" not in world.network.cores
        async with server.agent() as agent:
            assert (await agent.call("list"))["agent"] == "My Agent"
        await server.end()


@pytest.mark.parametrize("left", ["", "99999999\n", "not a number", "\0"])
async def test_a_lock_file_that_a_killed_server_left_is_no_lock(tmp_path: Path, left: str) -> None:
    async with open_world(tmp_path) as world:
        (tmp_path / "data").mkdir(mode=0o700)
        (tmp_path / "data" / "lock").write_text(left)
        (tmp_path / "data" / "server.json.new").write_text("torn")
        await (await world.serve()).end()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format":99}', "null", '{"format":1,"seed":"x"}', "\udcff\udcfe"]
)
async def test_a_broken_state_of_the_sandbox_is_one_clear_line(tmp_path: Path, text: str) -> None:
    async with open_world(tmp_path) as world:
        (tmp_path / "data").mkdir(mode=0o700)
        state = tmp_path / "data" / "sandbox.json"
        state.write_bytes(text.encode(errors="surrogateescape"))
        error = await failure(world.options(core="sandbox"))
        assert "sandbox.json" in str(error)
        assert "Delete it to start anew" in str(error)
        assert state.read_bytes() == text.encode(errors="surrogateescape")


@pytest.mark.parametrize("name", ["actions.jsonl", "audit.jsonl", "server.json", "tmp"])
async def test_a_file_of_the_folder_that_is_something_else_is_one_clear_line(tmp_path: Path, name: str) -> None:
    async with open_world(tmp_path) as world:
        (tmp_path / "data").mkdir(mode=0o700)
        (tmp_path / "data" / name).symlink_to("/etc/hostname")
        error = await failure(world.options())
        assert "is a symlink" in str(error)


async def test_no_task_and_no_open_file_is_left_after_a_stop(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.network.core("agent")
        files, running = open_files(), tasks()
        server = await world.serve()
        async with server.agent() as agent:
            await agent.call("list")
        await server.end()
        await nothing_left(running, files)


async def test_a_new_control_chat_goes_on_counting_where_the_lost_one_ended(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        (tmp_path / "data").mkdir(mode=0o700)
        entries = [{"event": "created", "action": 41}, {"event": "link-lost"}, {"event": "refused", "action": "odd"}]
        audit = "".join(json.dumps({"at": "2026-11-30T12:00:00Z", **entry}) + "\n" for entry in entries)
        (tmp_path / "data" / "audit.jsonl").write_text(audit)
        async with world.flow() as flow, world.person("Bob") as bob, trio.open_nursery() as nursery:
            link = await bob.make_address()
            nursery.start_soon(lambda: flow.agent.call("connect", target=link))
            await flow.card("/'approve 42'")
            nursery.cancel_scope.cancel()


async def test_the_lines_of_a_failed_start_hold_no_secret(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        lines = Lines()
        core = f"wss://user:s3cret@127.0.0.1:{free_port()}"
        error = await failure(world.options(core=core), lines)
        assert "s3cret" not in "\n".join([*lines.all, str(error)])
