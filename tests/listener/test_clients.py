"""The SDK's Python client against the listener, with and without a handshake, and what a person sees of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import pytest
import trio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from simplexmcp.listener import Limits, ToolResult
from tests.listener.helpers import TOKEN, FakeTools, Listening, forever, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from simplexmcp.listener import Call

pytestmark = pytest.mark.parametrize("mode", ["auto", "legacy"])
Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def connected(server: Listening, mode: Mode, token: str = TOKEN) -> AsyncIterator[Client]:
    """The SDK's client, connected."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def test_it_connects_in_the_newest_version_of_its_mode_and_reads_the_instructions(mode: Mode) -> None:
    async with listening() as server, connected(server, mode) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        assert "data from other people" in (client.instructions or "")
        assert client.server_info is not None
        assert client.server_info.name == "simplexmcp"


async def test_it_lists_and_calls_tools(mode: Mode) -> None:
    async with listening() as server, connected(server, mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["list", "send"]
        assert tools[0].meta == {"anthropic/requiresUserInteraction": True}
        result = await client.call_tool("list", {"n": 3})
        assert (result.is_error, result.structured_content) == (False, {"ok": True, "n": 3})
        await server.tools.until(lambda: server.tools.settled == ["list"])


async def test_it_sees_the_progress_of_a_held_call_and_then_its_result(mode: Mode) -> None:
    async def held(_arguments: dict[str, Any], call: Call) -> ToolResult:
        for text in ("Waiting for an approval", "Approved"):
            call.say(text)
            await seen[text].wait()
        return ToolResult({"status": "done"})

    seen = {text: trio.Event() for text in ("Waiting for an approval", "Approved")}
    progress: list[tuple[float, str | None]] = []

    async def on_progress(value: float, _total: float | None, message: str | None) -> None:
        progress.append((value, message))
        seen[message or ""].set()

    async with listening(FakeTools({"send": held})) as server, connected(server, mode) as client:
        with trio.fail_after(20):
            result = await client.call_tool("send", {}, progress_callback=on_progress)
        assert result.structured_content == {"status": "done"}
        assert progress == [(1, "Waiting for an approval"), (2, "Approved")]


async def test_a_call_that_it_cancels_is_cancelled_in_the_tool(mode: Mode) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server, connected(server, mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "send", {})
            await tools.until(lambda: tools.started == ["send"])
            nursery.cancel_scope.cancel()
        with trio.fail_after(20):
            await tools.until(lambda: tools.cancelled == ["send"])
        assert (await client.call_tool("list", {})).is_error is False


async def test_a_call_that_times_out_is_cancelled_in_the_tool(mode: Mode) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=Limits(first_byte=0.01)) as server, connected(server, mode) as client:
        with pytest.raises(MCPError):
            await client.call_tool("send", {}, read_timeout_seconds=0.1)
        await tools.until(lambda: tools.cancelled == ["send"])


async def test_a_refusal_and_a_defect_reach_it_as_errors_with_their_sentence(mode: Mode) -> None:
    async def tool(arguments: dict[str, Any], _call: Call) -> ToolResult:
        if arguments:
            raise RuntimeError("a defect")
        return ToolResult({"error": "There is no chat @9."}, is_error=True)

    async with listening(FakeTools({"send": tool})) as server, connected(server, mode) as client:
        for arguments, text in (({}, "There is no chat @9."), ({"n": 1}, "Internal error")):
            result = await client.call_tool("send", arguments)
            assert result.is_error is True
            assert result.content[0].type == "text"
            assert result.content[0].text.startswith(text)


async def test_an_unknown_tool_is_an_error_of_the_protocol(mode: Mode) -> None:
    async with listening() as server, connected(server, mode) as client:
        with pytest.raises(MCPError, match="no tool of this name"):
            await client.call_tool("nothing", {})


async def test_at_the_end_of_the_server_its_open_call_fails_with_the_reason(mode: Mode) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=Limits(first_byte=0.01)) as server, connected(server, mode) as client:

        async def call() -> None:
            with pytest.raises(MCPError, match="The server is stopping"):
                await client.call_tool("send", {})

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await tools.until(lambda: tools.started == ["send"])
                server.closing.finish("The server is stopping.")


async def test_it_goes_on_with_another_server_on_the_same_port(mode: Mode) -> None:
    from functools import partial

    from simplexmcp.listener import Closing, serve

    async with listening() as server, connected(server, mode) as client:
        await client.call_tool("list", {})
        server.closing.finish("restarting")
        await server.ended.wait()
        again = FakeTools()
        async with trio.open_nursery() as nursery:
            start = partial(serve, again, port=server.port, token=TOKEN, ready=lambda: True, closing=Closing())
            await nursery.start(start)
            assert (await client.call_tool("list", {})).is_error is False
            assert again.started == ["list"]
            nursery.cancel_scope.cancel()


async def test_with_a_wrong_token_it_does_not_connect(mode: Mode) -> None:
    async with listening() as server:
        with pytest.raises(BaseExceptionGroup) as caught:
            async with connected(server, mode, token="wrong"):
                raise AssertionError("connected")
        assert not caught.group_contains(AssertionError)
        assert server.tools.started == []
