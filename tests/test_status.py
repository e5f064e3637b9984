from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from simplexmcp import cli
from simplexmcp.audit import Audit
from simplexmcp.clock import SystemClock
from simplexmcp.folder import ServerInfo, open_folder
from simplexmcp.journal import Journal

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
    audit.write("created", action=9, tool="send", name="\x1b[2J")
    audit.close()


def info() -> ServerInfo:
    return ServerInfo("http://127.0.0.1:5226/mcp", 5226, 23, "0.1.0", os.getpid(), STARTED)


def test_a_running_agent_is_one_screen(tmp_path: Path, capsys):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(info())
        work(data)
        before = {path.name: path.stat() for path in data.iterdir()}
        code, out, err = status(capsys, data)
        assert {path.name: path.stat() for path in data.iterdir()} == before
    first, second, third, fourth = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith(f"Agent my-agent is running (process {os.getpid()}) since ")
    assert second == "Version 0.1.0, http://127.0.0.1:5226/mcp"
    assert third == "Open actions: 2 pending, 1 performing"
    assert fourth.startswith("Last event: ")
    assert fourth.endswith("created, action 9, tool send, name <U+001B>[2J")


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
            "url": "http://127.0.0.1:5226/mcp",
            "version": "0.1.0",
            "started": "2026-11-30T12:00:00Z",
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
