"""The MCP SDK's own client against the server, with and without a handshake; how fast it starts, and on what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.rooms.client import MODEL, InProcess, Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Mode = Literal["auto", "legacy"]
modes = pytest.mark.parametrize("mode", ["auto", "legacy"])


@asynccontextmanager
async def connected(path: Path, mode: Mode) -> AsyncIterator[Client]:
    """The SDK's client, connected to a server of its own."""
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "simplexmcp", "rooms", "mcp"],
        env={"AGENT_CHAT_DB": str(path)},
    )
    with Path(os.devnull).open("w") as nowhere:
        async with Client(stdio_client(program, errlog=nowhere), mode=mode) as client:
            yield client


async def use(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is None
    return json.loads(result.content[0].text)


@modes
async def test_the_sdks_client_connects_in_its_newest_version(path: Path, mode: Mode):
    async with connected(path, mode) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        assert client.server_info is not None
        assert client.server_info.name == "agent-chat-mcp"
        assert "create_persona" in (client.instructions or "")
        found = (await client.list_tools()).tools
        assert {"create_persona", "catch_up", "wait_for_messages"} <= {tool.name for tool in found}
        assert all(tool.input_schema["additionalProperties"] is False for tool in found)


@modes
async def test_the_sdks_client_posts_reads_and_is_refused(path: Path, mode: Mode):
    async with connected(path, mode) as client:
        await use(client, "create_persona", **MODEL)
        await use(client, "create_room", name="hall")
        await use(client, "join_room", room="hall")
        assert (await use(client, "post_message", content={"a": 1.0, "ä": None}))["seq"] == 1
        messages = (await use(client, "read_history"))["messages"]
        assert [message["content"] for message in messages] == [{"a": 1, "ä": None}]
        refused = await client.call_tool("join_room", {"room": "attic"})
        assert refused.is_error
        assert "no room" in json.loads(refused.content[0].text)["error"]
        invalid = await client.call_tool("whoami", {"zzz": 1})
        assert invalid.is_error
        assert "Unrecognized key(s) in object: 'zzz'" in invalid.content[0].text


@modes
async def test_a_wait_that_the_sdks_client_gives_up_is_over_in_the_server(path: Path, mode: Mode):
    async with connected(path, mode) as client:
        await use(client, "create_persona", **MODEL)
        await use(client, "create_room", name="hall")
        await use(client, "join_room", room="hall")
        with InProcess(path) as other:
            other.enter_room("hall")

            async def leases(count: int) -> None:
                with trio.fail_after(10):
                    while other.database.value("SELECT count(*) FROM wait_leases") != count:
                        await trio.sleep(0.005)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "catch_up", {"wait_seconds": 20})
                await leases(1)
                nursery.cancel_scope.cancel()
            await leases(0)
            other.call("post_message", content="news")
        assert [message["content"] for message in (await use(client, "catch_up"))["messages"]] == ["news"]


def test_the_server_starts_in_a_fraction_of_a_second(server: Callable[..., Server], path: Path):
    InProcess(path).close()
    times: list[float] = []
    for _ in range(5):
        began = time.monotonic()
        talk = server()
        assert talk.request("tools/list")["result"]["tools"]
        times.append(time.monotonic() - began)
        talk.close()
    assert min(times) < 0.35  # a tenth on a machine with nothing else to do


@pytest.mark.parametrize(
    "command", [["mcp"], ["watch", "--agent", "nobody"], ["check", "--agent", "nobody"]], ids=lambda words: words[0]
)
def test_what_agents_start_imports_neither_trio_nor_the_sdk_nor_a_parser(command: list[str], path: Path):
    InProcess(path).close()
    program = f"import sys; from simplexmcp.cli import run; run({['rooms', *command]}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"AGENT_CHAT_DB": str(path)},
        check=True,
    )
    loaded = set(done.stdout.split())
    assert f"simplexmcp.rooms.{'stdio' if command == ['mcp'] else command[0]}" in loaded
    heavy = {"trio", "anyio", "mcp", "mcp_types", "pydantic", "tap", "argparse", "asyncio", "logging", "inspect"}
    heavy |= {"dataclasses", "socket", "subprocess", "platformdirs", "PIL", "pathlib", "urllib.request"}
    assert not heavy & loaded
