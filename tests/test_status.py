from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp import cli
from simplexmcp.agents import default_data
from simplexmcp.audit import Audit
from simplexmcp.clock import SystemClock, hhmm
from simplexmcp.folder import ServerInfo, open_folder
from simplexmcp.journal import Journal
from simplexmcp.status import Backlog, read_status
from tests.e2e.world import open_world
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from pathlib import Path

STARTED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def status(capsys: pytest.CaptureFixture[str], data: Path, *words: str) -> tuple[int, str, str]:
    code = cli.run(["status", "my-agent", "--data", str(data), *words])
    out, err = capsys.readouterr()
    return code, out, err


def work(data: Path) -> None:
    journal = Journal(data / "actions.jsonl")
    for number in (7, 8):
        journal.write(number, state="pending", text="I want to send \x1b[2J")
    journal.write(9, state="performing")
    journal.close()
    audit = Audit(data / "audit.jsonl", SystemClock())
    audit.write("owners", owners=[{"member": 3, "name": "Old"}])
    audit.write("owners", owners=[{"member": 3, "name": "Al\x1b"}, {"member": 7, "name": "Bob"}])
    audit.write("refused-command", name="\x1b[2J", member=9, reason="no")
    audit.close()


def contents(data: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is in a data folder, but not when it was read."""
    return {path.name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in data.iterdir()}


def info() -> ServerInfo:
    """A server at a port where nothing answers."""
    return ServerInfo("http://127.0.0.1:1/mcp", 1, 23, "0.1.0", os.getpid(), STARTED)


def test_a_running_agent_is_one_screen(tmp_path: Path, capsys):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
        work(data)
        before = contents(data)
        code, out, err = status(capsys, data)
        assert contents(data) == before
    first, second, third, fourth, fifth, sixth = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith(f"Agent my-agent is running (process {os.getpid()}) since ")
    assert second == "Version 0.1.0, http://127.0.0.1:1/mcp"
    assert third == "Owners: Al<U+001B> (member 3), Bob (member 7)"
    assert fourth == "The server does not answer, or is still starting."
    assert fifth == "Open actions: 2 pending, 1 performing"
    assert sixth.startswith("Last event: ")
    assert sixth.endswith('A command of "<U+001B>[2J" (member 9) was not obeyed: no.')


def test_a_stopped_agent_says_how_to_start_it_and_exits_1(tmp_path: Path, capsys):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
    code, out, _ = status(capsys, data)
    assert code == 1
    assert "is not running" in out
    assert f"simplexmcp serve my-agent --data {data}\n" in out
    assert out.endswith("Open actions: none\n")
    work(data)
    assert "2 pending (the next start finishes their cards)" in status(capsys, data)[1].replace(", 1 performing", "")


def test_json_has_stable_keys_and_utc_times(tmp_path: Path, capsys):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
        code, out, _ = status(capsys, data, "--json")
    assert (code, json.loads(out)) == (
        0,
        {
            "agent": "my-agent",
            "running": True,
            "pid": os.getpid(),
            "url": "http://127.0.0.1:1/mcp",
            "version": "0.1.0",
            "started": "2026-11-30T12:00:00Z",
            "owners": None,
            "linkDownSince": None,
            "othersAtCore": 0,
            "backlog": None,
            "actions": {},
            "last": None,
        },
    )


def test_an_agent_that_was_never_started_says_how_to_start_it(tmp_path: Path, capsys):
    assert status(capsys, tmp_path / "data") == (
        1,
        "",
        f'Agent "my-agent" was never started. Start it with: simplexmcp serve my-agent --data {tmp_path}/data\n',
    )


def lost(data: Path, *events: tuple[str, str]) -> None:
    with (data / "audit.jsonl").open("a") as log:
        for at, event in events:
            log.write(json.dumps({"at": at, "event": event}, separators=(",", ":")) + "\n")


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ([("2026-11-30T12:30:00Z", "link-lost")], "2026-11-30T12:30:00Z"),
        ([("2026-11-30T12:30:00Z", "link-lost"), ("2026-11-30T12:31:00Z", "link-back")], None),
        ([("2026-11-30T11:00:00Z", "link-lost")], None),  # of an earlier run
    ],
)
def test_a_lost_link_is_told_with_its_time(tmp_path: Path, capsys, events: list[tuple[str, str]], since: str | None):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
        lost(data, *events, ("2026-11-30T12:40:00Z", "owners-reset"))
        assert json.loads(status(capsys, data, "--json")[1])["linkDownSince"] == since
        text = status(capsys, data)[1]
    assert ("The link to the SimpleX core is down since " in text) == (since is not None)
    assert json.loads(status(capsys, data, "--json")[1])["linkDownSince"] is None  # nobody runs any more


@pytest.mark.parametrize(
    ("events", "others"),
    [
        ([("2026-11-30T12:30:00Z", 1)], 1),
        ([("2026-11-30T12:30:00Z", 1), ("2026-11-30T12:31:00Z", 3)], 3),
        ([("2026-11-30T12:30:00Z", 2), ("2026-11-30T12:31:00Z", 0)], 0),
        ([("2026-11-30T11:00:00Z", 1)], 0),  # of an earlier run
    ],
)
def test_other_programs_at_the_port_of_the_core_are_a_warning(
    tmp_path: Path, capsys, events: list[tuple[str, int]], others: int
):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
        with (data / "audit.jsonl").open("a") as log:
            for at, clients in events:
                log.write(
                    json.dumps({"at": at, "event": "core-shared", "clients": clients}, separators=(",", ":")) + "\n"
                )
        lost(data, ("2026-11-30T12:40:00Z", "owners-reset"))
        assert json.loads(status(capsys, data, "--json")[1])["othersAtCore"] == others
        text = status(capsys, data)[1]
    who = {0: "", 1: "Warning: Another program is connected", 3: "Warning: 3 other programs are connected"}[others]
    assert who in text
    assert ("can send as the agent without approval" in text) == bool(others)
    assert json.loads(status(capsys, data, "--json")[1])["othersAtCore"] == 0  # nobody runs any more


def test_a_torn_last_line_of_the_log_is_passed_over(tmp_path: Path, capsys):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
    work(data)
    with (data / "audit.jsonl").open("a") as log:
        log.write('{"at":"2026')
    assert "was not obeyed: no." in status(capsys, data)[1]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return default_data("x").parent


def all_agents(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(["status", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_a_name_every_agent_is_shown_and_one_that_runs_is_enough(root: Path, capsys):
    for name in ("anna", "bert"):
        with open_folder(name, root / name, pytest.fail) as folder:
            folder.write_server(info())
    assert all_agents(capsys)[0] == 1
    with open_folder("bert", root / "bert", pytest.fail):
        code, out, err = all_agents(capsys)
        assert (code, err) == (0, "")
        anna = f"Agent anna is not running; its last start was {hhmm(STARTED, SystemClock().now())}. Start it with: "
        assert [line.split(" since")[0] for line in out.splitlines() if line.startswith("Agent ")] == [
            f"{anna}simplexmcp serve anna",
            f"Agent bert is running (process {os.getpid()})",
        ]
        agents = json.loads(all_agents(capsys, "--json")[1])["agents"]
        assert [(agent["agent"], agent["running"]) for agent in agents] == [("anna", False), ("bert", True)]


def test_an_agent_that_can_not_be_read_does_not_hide_the_others(root: Path, capsys):
    for name in ("anna", "bert"):
        with open_folder(name, root / name, pytest.fail) as folder:
            folder.write_server(info())
    (root / "anna" / "server.json").write_text("x")
    code, out, _ = all_agents(capsys)
    assert code == 1
    assert "Agent bert is not running" in out
    assert "server.json is damaged. Start the agent again: simplexmcp serve anna" in out
    errors = [agent for agent in json.loads(all_agents(capsys, "--json")[1])["agents"] if "error" in agent]
    assert [(error["agent"], sorted(error)) for error in errors] == [("anna", ["agent", "error"])]


def test_an_agent_that_never_came_up_is_named_once(root: Path, capsys):
    with open_folder("anna", root / "anna", pytest.fail):
        pass
    assert all_agents(capsys)[1] == 'Agent "anna" was never started. Start it with: simplexmcp serve anna\n'


def test_before_the_first_start_it_says_how_to_begin(root: Path, capsys):
    said = "No agent was ever started. Start one with: simplexmcp serve my-agent\n"
    assert all_agents(capsys) == (1, "", said)


async def test_a_running_server_says_what_is_unread_and_who_the_owners_are(tmp_path: Path):
    async with open_world(tmp_path) as world, world.flow() as flow:
        trail, link = await flow.alice.make_group("Trail")
        await flow.result_of("connect", "I want to connect", "approve 1", target=link, wait=1)
        for text in ("one", "two"):
            await flow.alice.say(trail, text)
        while (await flow.agent.call("list"))["chats"][0]["unread"] != 2:
            await trio.lowlevel.checkpoint()
        data = flow.server.options.data
        found = await trio.to_thread.run_sync(partial(read_status, "my-agent", data, TrioClock().now(), given=True))
        assert found.backlog == Backlog(2, 1)
        assert "Unread: 2 messages in 1 chat\n" in found.as_text()
        assert "Owners: Alice (member 2)\n" in found.as_text()
        (data / "token").write_text("A" * 43)
        found = await trio.to_thread.run_sync(partial(read_status, "my-agent", data, TrioClock().now(), given=True))
        assert found.backlog is None
