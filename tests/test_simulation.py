from __future__ import annotations

import json
import re
import socket
from typing import TYPE_CHECKING

import trio
from trio_websocket import open_websocket_url

from simplexmcp import cli
from simplexmcp.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Screen:
    """The lines that were printed, and the wait for one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changed = trio.Event()

    def out(self, line: str) -> None:
        self.lines.append(line)
        self.changed.set()
        self.changed = trio.Event()

    async def line(self, pattern: str) -> re.Match[str]:
        with trio.fail_after(30):
            while True:
                for line in self.lines:
                    if found := re.search(pattern, line):
                        return found
                await self.changed.wait()


async def ask(port: str, profile: str, command: str) -> dict:
    async with open_websocket_url(f"ws://127.0.0.1:{port}/{profile}") as ws:
        await ws.send_message(json.dumps({"corrId": "1", "cmd": command}))
        with trio.fail_after(30):
            while True:
                frame = json.loads(await ws.get_message())
                if frame.get("corrId") == "1":
                    return frame["resp"]


async def test_the_network_is_served_and_says_where_and_that_it_is_a_simulation():
    screen = Screen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(simulate, 0, None, screen.out)
        port = (await screen.line(r"ws://127\.0\.0\.1:(\d+)/PROFILE"))[1]
        assert screen.lines[0] == "This is a simulation: no phones, no internet and no real people."
        assert (await ask(port, "alice", "/user"))["type"] == "chatCmdError"  # no user yet
        await screen.line(r"@directory\.simplex")
        assert await screen.line(r"^Phone \(a simulation.*\): http://127\.0\.0\.1:\d+/\?token=\S{43}$")
        assert (await screen.line("Ctrl-C"))[0]
        nursery.cancel_scope.cancel()


async def test_a_state_file_keeps_the_network(tmp_path: Path):
    state = tmp_path / "network.json"
    create = '/_create user {"profile":{"displayName":"Alice","fullName":""},"pastTimestamp":false}'
    for command in (create, "/user"):
        screen = Screen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(simulate, 0, state, screen.out)
            port = (await screen.line(r"ws://127\.0\.0\.1:(\d+)/PROFILE"))[1]
            assert (await ask(port, "alice", command))["user"]["profile"]["displayName"] == "Alice"
            nursery.cancel_scope.cancel()
    assert state.stat().st_mode & 0o777 == 0o600


def test_a_port_in_use_gets_one_line(capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.run(["sandbox", "--port", str(port)]) == 1
    assert capsys.readouterr().err == f"Port {port} on 127.0.0.1: Address already in use. Give another with --port.\n"


def test_a_taken_port_of_the_phone_gets_one_line(capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.run(["sandbox", "--port", "0", "--phone-port", str(port)]) == 1
        assert cli.run(["sandbox", "--port", "0", "--phone-port", "65536"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert (
        said[0]
        == f"Port {port} is in use by another program: end that program, or choose another port with --phone-port."
    )
    assert "--phone-port" in said[1]
    assert len(said) == 2


def test_a_file_that_is_no_network_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    state = tmp_path / "network.json"
    state.write_text("{}")
    assert cli.run(["sandbox", "--port", "0", "--state", str(state)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{state} is not a state file of the sandbox")
    assert said.count("\n") == 1
