"""`simplexmcp bridge` as a client starts it, with the SDK's client and a real server on the simulated network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

import pytest
import trio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from simplexmcp.folder import ServerInfo, open_folder
from tests.e2e.world import Agent, open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass
class Bridged(Agent):
    """An agent whose client speaks over stdio."""

    client: Client
    errors: IO[str]

    def __post_init__(self) -> None:
        super().__init__(self.client)

    def stderr(self) -> list[str]:
        self.errors.flush()
        self.errors.seek(0)
        return self.errors.read().splitlines()


@asynccontextmanager
async def bridged(data: Path, mode: str = "legacy") -> AsyncIterator[Bridged]:
    words = ["-m", "simplexmcp", "bridge", "my-agent", "--data", str(data)]
    with tempfile.TemporaryFile("w+") as errors:
        transport = stdio_client(StdioServerParameters(command=sys.executable, args=words), errlog=errors)
        async with Client(transport, mode=mode, cache=None) as client:
            yield Bridged(client, errors)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_both_generations_of_clients_find_the_tools_and_use_them(tmp_path: Path, mode: str):
    async with open_world(tmp_path) as world:
        server = await world.serve()
        async with bridged(server.options.data, mode) as agent:
            names = {tool.name for tool in (await agent.client.list_tools()).tools}
            assert {"connect", "send", "receive", "list"} < names
            assert (await agent.call("list"))["chats"] == []
            assert "no chat" in (await agent.call("send", chat="#99", text="x"))["error"].lower()
            assert agent.stderr() == []
        await server.end()


async def test_an_approval_is_waited_for_with_progress_and_a_cancelled_call_leaves_it_to_the_next(tmp_path: Path):
    async with open_world(tmp_path) as world, world.flow() as flow:
        _, link = await flow.alice.make_group("Trail")
        async with bridged(flow.server.options.data) as agent:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(lambda: agent.call("connect", target=link, wait=1))
                    await flow.card("I want to connect")
                    while not any("Action 1 waits" in text for text in agent.said):
                        await trio.testing.wait_all_tasks_blocked(0.01)
                    assert (await agent.call("list"))["actions"][0]["open"] is True
                    scope.cancel()
            while (await agent.call("list"))["actions"][0]["open"]:
                await trio.lowlevel.checkpoint()
            found: list[dict[str, Any]] = []

            async def again() -> None:
                found.append(await agent.call("connect", target=link, wait=1))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(again)
                await flow.tap("approve 1")
            assert (found[0]["action"], found[0]["status"]) == (1, "done")


async def test_a_restart_of_the_server_ends_open_calls_and_later_ones_work(tmp_path: Path):
    async with open_world(tmp_path) as world, world.flow() as flow:
        _, link = await flow.alice.make_group("Trail")
        data = flow.server.options.data
        async with bridged(data) as agent:
            ends: list[Any] = []

            async def wait() -> None:
                try:
                    ends.append(await agent.call("connect", target=link, wait=1))
                except MCPError as error:
                    ends.append(error.error.message)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await flow.card("I want to connect")
                flow.server.stop.everything.cancel()  # as the second Ctrl-C: nothing is said to anybody
            await flow.server.ended.wait()
            assert len(ends) == 1
            with pytest.raises(
                MCPError, match=r"Agent my-agent is not running\. Start it with: simplexmcp serve my-agent"
            ):
                await agent.call("list")
            server = await world.serve()
            assert server.port != flow.server.port
            assert (await agent.call("list"))["actions"] == []
            first, second = agent.stderr()
            assert first.startswith("simplexmcp bridge: Agent my-agent is not running. Start it with: ")
            assert second == "simplexmcp bridge: The server is there again."
            await server.end()


def talk(data: Path, text: str, **rest: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simplexmcp", "bridge", "my-agent", "--data", str(data)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False, **rest)


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_without_a_server_each_request_says_so_and_the_end_of_input_ends_it(tmp_path: Path):
    done = talk(tmp_path / "data", f"{PING}\n{PING.replace('1', '2')}")
    said = f"Agent my-agent is not running. Start it with: simplexmcp serve my-agent --data {tmp_path}/data"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {answer["error"]["message"] for answer in answers} == {said}
    assert (done.returncode, len(answers), done.stderr) == (0, 2, f"simplexmcp bridge: {said}\n")


def test_a_port_that_another_process_may_have_now_does_not_see_the_token(tmp_path: Path):
    data = tmp_path / "data"
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(ServerInfo("http://127.0.0.1:1/mcp", 1, 23, "0.1.0", 1, datetime.now(UTC)))
        answer = json.loads(talk(data, PING).stdout)
    assert answer["error"]["message"] == "Agent my-agent is starting. Try again in a few seconds."


def test_a_client_that_reads_no_more_ends_it(tmp_path: Path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "simplexmcp", "bridge", "my-agent", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, input=f"{PING}\n" * 3, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "simplexmcp bridge: The client reads no more."


def test_ctrl_c_ends_it_with_130(tmp_path: Path):
    command = [sys.executable, "-m", "simplexmcp", "bridge", "my-agent", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{PING}\n")
        process.stdin.flush()
        process.stdout.readline()  # it works
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
