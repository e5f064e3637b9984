"""Calls that wait: first byte, progress, keep-alive, cancellation, clients that leave or do not read."""

from __future__ import annotations

import json
import socket
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.listener import Limits, ToolResult
from tests.listener.helpers import (
    MODERN,
    NEVER,
    Client,
    FakeTools,
    Listening,
    forever,
    listening,
    living,
    modern_call,
    rpc,
    tools_call,
    until_living,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.testing import MockClock

    from simplexmcp.listener import Call

GENERATIONS = ["handshake", "modern"]


async def begin(client: Client, generation: str, tool: str = "send", *, number: Any = 1, token: Any = None) -> None:
    """Sends a call in the words of that generation of the protocol."""
    if generation == "modern":
        body, headers = modern_call(tool, number=number, token=token)
        await client.send(body, **headers)
    else:
        await client.call(tool, number=number, token=token)


def messages(chunk: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in chunk.split(b"\n") if line.startswith(b"data: ")]


def saying(*texts: str, then: float = 0) -> Callable[[dict[str, Any], Call], Awaitable[ToolResult]]:
    """A tool that says its texts, waits, and answers."""

    async def tool(_arguments: dict[str, Any], call: Call) -> ToolResult:
        for text in texts:
            call.say(text)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(then)
        return ToolResult({"done": True})

    return tool


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_quick_call_is_answered_with_plain_json(generation: str) -> None:
    async with listening() as server, server.client() as client:
        await begin(client, generation, "list", token="t")
        reply = await client.reply()
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.json["result"]["structuredContent"] == {"ok": True}
        await server.tools.until(lambda: server.tools.settled == ["list"])


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("token", [None, "t", 7])
async def test_a_held_call_has_its_first_byte_within_a_quarter_second(
    generation: str, token: Any, autojump_clock: MockClock
) -> None:
    async with listening(FakeTools({"send": forever})) as server, server.client() as client:
        start = trio.current_time()
        await begin(client, generation, token=token)
        status, headers = await client.begin()
        chunk = await client.chunk()
        assert trio.current_time() - start <= 0.25
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert headers["x-accel-buffering"] == "no"
        if token is None:
            assert chunk.endswith(b": waiting\n\n")
            assert messages(chunk) == []
        else:
            assert {"progressToken": token, "progress": 1} == messages(chunk)[0]["params"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_what_a_tool_says_reaches_the_client_at_once_and_again_every_twenty_seconds(
    generation: str, autojump_clock: MockClock
) -> None:
    async with listening(FakeTools({"send": saying("One", "Two", then=65)})) as server, server.client() as client:
        start = trio.current_time()
        await begin(client, generation, token="t")
        await client.begin()
        seen: list[tuple[float, int, str]] = []
        result: Any = None
        while chunk := await client.chunk():
            for message in messages(chunk):
                if message.get("method") == "notifications/progress":
                    params = message["params"]
                    seen.append((trio.current_time() - start, params["progress"], params["message"]))
                else:
                    result = message["result"]
        times = [time for time, _, _ in seen]
        assert [value for _, value, _ in seen] == [1, 2, 3, 4, 5]
        assert [text for _, _, text in seen] == ["One", "Two", "Two", "Two", "Two"]
        assert pytest.approx(times, abs=0.5) == [0, 0, 20, 40, 60]
        assert result["structuredContent"] == {"done": True}


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_call_without_a_token_gets_comments_and_no_progress(generation: str, autojump_clock: MockClock) -> None:
    async with listening(FakeTools({"send": saying("One", then=50)})) as server, server.client() as client:
        await begin(client, generation)
        await client.begin()
        body = b""
        times: list[float] = [trio.current_time()]
        while chunk := await client.chunk():
            body += chunk
            times.append(trio.current_time())
        assert max(b - a for a, b in pairwise(times)) <= 25
        assert body.count(b": waiting\n\n") == 3
        assert [key for message in messages(body) for key in message if key in ("result", "method")] == ["result"]


async def test_a_call_of_two_days_lives_and_ends_with_its_result(autojump_clock: MockClock) -> None:
    tools = FakeTools({"send": saying("Waiting", then=48 * 3600)})
    async with listening(tools, limits=Limits(pulse=600)) as server, server.client() as client:
        await client.call("send", token="t")
        await client.begin()
        values: list[int] = []
        last: Any = None
        while chunk := await client.chunk():
            for last in messages(chunk):
                if "method" in last:
                    values.append(last["params"]["progress"])
        assert values == sorted(set(values))
        assert len(values) == 48 * 6
        assert last["result"]["structuredContent"] == {"done": True}
        assert (await client.ask(rpc("ping"))).status == 200


async def test_a_call_of_twenty_minutes_never_falls_silent(autojump_clock: MockClock) -> None:
    async with listening(FakeTools({"send": saying("Waiting", then=1200)})) as server, server.client() as client:
        times = [trio.current_time()]
        await client.call("send", token="t")
        await client.begin()
        while await client.chunk():
            times.append(trio.current_time())
        assert times[-1] - times[0] >= 1200
        assert max(later - earlier for earlier, later in pairwise(times)) <= 25


async def test_a_tool_that_talks_on_after_its_result_is_not_heard(autojump_clock: MockClock) -> None:
    async def tool(_arguments: dict[str, Any], call: Call) -> ToolResult:
        kept.append(call)
        call.say("One")
        return ToolResult({})

    kept: list[Call] = []
    async with listening(FakeTools({"send": tool})) as server, server.client() as client:
        reply = await client.ask(tools_call("send", token="t"))
        kept[0].say("Two")
        await trio.sleep(60)
        assert reply.message["result"]["isError"] is False
        assert (await client.ask(rpc("ping"))).json["result"] == {}


async def test_what_is_over_is_not_kept(autojump_clock: MockClock) -> None:
    from simplexmcp.listener.calls import Calls

    class Nobody:
        pass

    calls = Calls(Limits())
    async with trio.open_nursery() as nursery:
        await nursery.start(calls.run)
        for number in range(100):
            call = calls.open(Nobody(), None, number, None)  # type: ignore[arg-type]
            assert call is not None
            calls.close(call)
        await trio.sleep(60)
        assert len(calls) == len(calls._due) == 0
        nursery.cancel_scope.cancel()


async def test_half_a_character_in_a_progress_text_is_replaced() -> None:
    async with listening(FakeTools({"send": saying("a\ud83d")})) as server, server.client() as client:
        await client.call("send", token="t")
        assert (await client.reply()).events[0]["params"]["message"] == "a?"


async def test_what_is_no_text_fails_in_the_tool_that_says_it(caplog: pytest.LogCaptureFixture) -> None:
    tools = FakeTools({"send": saying(None)})  # type: ignore[arg-type]
    async with listening(tools) as server, server.client() as client:
        assert (await client.ask(tools_call("send", token="t"))).message["result"]["isError"] is True
        assert (await client.ask(rpc("ping"))).status == 200
    assert "The tool send failed" in caplog.text


async def leave_by_closing(client: Client) -> None:
    await client.stream.aclose()


async def leave_by_reset(client: Client) -> None:
    client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.stream.socket.close()


async def leave_by_half(client: Client) -> None:
    await client.stream.send_eof()


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("leave", [leave_by_closing, leave_by_reset, leave_by_half])
async def test_a_client_that_leaves_cancels_its_tool_at_once(
    generation: str, leave: Callable[[Client], Awaitable[None]]
) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server:
        tasks = living()
        client = await server.connect()
        await begin(client, generation, token="t")
        await tools.until(lambda: tools.started == ["send"])
        await leave(client)
        with trio.fail_after(20):
            await tools.until(lambda: tools.cancelled == ["send"])
        await until_living(tasks)
        assert tools.settled == []
        await trio.aclose_forcefully(client.stream)


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_client_that_leaves_in_the_middle_of_the_stream_cancels_its_tool(generation: str) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=Limits(first_byte=0.01)) as server:
        client = await server.connect()
        await begin(client, generation)
        await client.begin()
        await client.chunk()
        await trio.aclose_forcefully(client.stream)
        with trio.fail_after(20):
            await tools.until(lambda: tools.cancelled == ["send"])


async def test_an_idle_client_that_leaves_leaves_nothing_behind() -> None:
    async with listening() as server:
        tasks = living()
        async with server.client() as client:
            await client.ask(tools_call("list"))
        await until_living(tasks)


async def cancel(server: Listening, number: Any, **changes: str | None) -> None:
    """`notifications/cancelled` on a connection of its own."""
    async with server.client() as client:
        notification = rpc("notifications/cancelled", {"requestId": number}, number=None)
        assert (await client.ask(notification, **changes)).status == 202


async def test_a_cancelled_notification_ends_that_call_of_that_session() -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server, server.client() as one, server.client() as two:
        await one.call("send", number=1, mcp_session_id="a")
        await two.call("send", number=1, mcp_session_id="b")
        await tools.until(lambda: len(tools.started) == 2)
        await cancel(server, 1, mcp_session_id="b")
        assert (await two.reply()).message["error"] == {"code": -32800, "message": "cancelled by the client"}
        assert tools.cancelled == ["send"]
        assert tools.settled == []
        assert (await two.ask(rpc("ping"))).status == 200
        await cancel(server, 1, mcp_session_id="a")
        assert (await one.reply()).message["error"]["code"] == -32800


@pytest.mark.parametrize("number", ["1", 2, None, 1.0, True, [1]])
async def test_a_cancelled_notification_for_another_id_ends_nothing(number: Any) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server, server.client() as client:
        await client.call("send", number=1, mcp_session_id="a")
        await tools.until(lambda: tools.started == ["send"])
        await cancel(server, number, mcp_session_id="a")
        await trio.testing.wait_all_tasks_blocked()
        assert tools.cancelled == []


async def test_without_a_session_only_a_unique_id_is_cancelled() -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server, server.client() as one, server.client() as two:
        await one.call("send", number=5)
        await two.call("send", number=5)
        await tools.until(lambda: len(tools.started) == 2)
        await cancel(server, 5)
        await trio.testing.wait_all_tasks_blocked()
        assert tools.cancelled == []
        await trio.aclose_forcefully(one.stream)
        await tools.until(lambda: len(tools.cancelled) == 1)
        await cancel(server, 5)
        assert (await two.reply()).message["error"]["code"] == -32800


async def test_a_posted_cancel_of_the_modern_protocol_ends_nothing_without_a_session() -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server, server.client() as client:
        await begin(client, "modern", number=1)
        await tools.until(lambda: tools.started == ["send"])
        await cancel(server, 1, **MODERN)
        await trio.testing.wait_all_tasks_blocked()
        assert tools.cancelled == []


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_cancelled_stream_ends_with_an_error_event(generation: str) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=Limits(first_byte=0.01)) as server, server.client() as client:
        await begin(client, generation)
        await client.begin()
        await client.chunk()
        server.closing.finish("the server is stopping")
        body = b""
        with trio.fail_after(20):
            while chunk := await client.chunk():
                body += chunk
        assert messages(body)[-1]["error"] == {"code": -32800, "message": "the server is stopping"}


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_client_that_does_not_read_blocks_neither_tool_nor_others_and_gets_the_result(generation: str) -> None:
    async def talkative(_arguments: dict[str, Any], call: Call) -> ToolResult:
        for number in range(500):
            call.say(f"{number} " + "x" * 100_000)
            await trio.testing.wait_all_tasks_blocked()
        said.set()
        return ToolResult({"done": True}, settle=tools.settle("send"))

    tools = FakeTools({"send": talkative})
    said = trio.Event()
    async with listening(tools) as server, server.client() as client, server.client() as other:
        client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await begin(client, generation, token="t")
        with trio.fail_after(30):
            await said.wait()
        assert (await other.ask(tools_call("list"))).status == 200
        await tools.until(lambda: tools.settled == ["list"])
        reply = await client.reply()
        values = [event["params"]["progress"] for event in reply.events[:-1]]
        assert values == sorted(set(values))
        assert len(values) < 500
        assert reply.message["result"]["structuredContent"] == {"done": True}
        await tools.until(lambda: tools.settled == ["list", "send"])


async def test_a_client_that_does_not_read_and_leaves_cancels_its_tool() -> None:
    async def talkative(arguments: dict[str, Any], call: Call) -> ToolResult:
        for _ in range(200):
            call.say("x" * 100_000)
            await trio.lowlevel.checkpoint()
        said.set()
        return await forever(arguments, call)

    said = trio.Event()
    tools = FakeTools({"send": talkative})
    async with listening(tools) as server:
        tasks = living()
        client = await server.connect()
        await client.call("send", token="t")
        await said.wait()
        await trio.aclose_forcefully(client.stream)
        with trio.fail_after(20):
            await tools.until(lambda: tools.cancelled == ["send"])
        await until_living(tasks)


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_delivered_result_is_settled_once_also_when_the_client_closes_right_after(generation: str) -> None:
    release = trio.Event()

    async def held(_arguments: dict[str, Any], _call: Call) -> ToolResult:
        await release.wait()
        return ToolResult({}, settle=tools.settle("send"))

    tools = FakeTools({"send": held})
    async with listening(tools, limits=Limits(first_byte=0.01)) as server, server.client() as client:
        await begin(client, generation)
        await client.begin()
        await client.chunk()
        assert tools.settled == []
        release.set()
        while b'"result"' not in await client.chunk():
            continue
        await trio.aclose_forcefully(client.stream)
        await tools.until(lambda: tools.settled == ["send"])
        await trio.testing.wait_all_tasks_blocked()
        assert tools.settled == ["send"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_result_for_a_client_that_has_left_is_not_settled(generation: str) -> None:
    async def stubborn(_arguments: dict[str, Any], _call: Call) -> ToolResult:
        with trio.CancelScope(shield=True):
            await left.wait()
        return ToolResult({}, settle=tools.settle("send"))

    tools = FakeTools({"send": stubborn})
    left = trio.Event()
    async with listening(tools, limits=NEVER) as server:
        tasks = living()
        client = await server.connect()
        await begin(client, generation)
        await tools.until(lambda: tools.started == ["send"])
        await trio.aclose_forcefully(client.stream)
        await trio.testing.wait_all_tasks_blocked()
        left.set()
        await until_living(tasks)
        assert tools.settled == []


async def test_a_result_that_the_sdk_turns_into_an_error_is_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import MCPError

    def broken(*_: Any) -> None:
        raise MCPError(code=-32603, message="cannot say it")

    monkeypatch.setattr("mcp_types.methods.serialize_server_result", broken)
    async with listening() as server, server.client() as client:
        await begin(client, "modern", "list")
        assert (await client.reply()).message["error"]["message"] == "cannot say it"
        assert server.tools.started == ["list"]
        await trio.testing.wait_all_tasks_blocked()
        assert server.tools.settled == []


async def test_a_defect_in_settling_is_logged_and_the_connection_lives(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise RuntimeError("cannot forget")

    async def tool(_arguments: dict[str, Any], _call: Call) -> ToolResult:
        return ToolResult({}, settle=broken)

    async with listening(FakeTools({"send": tool})) as server, server.client() as client:
        assert (await client.ask(tools_call("send"))).status == 200
        assert (await client.ask(rpc("ping"))).status == 200
    assert "cannot forget" in caplog.text


async def test_bytes_after_the_body_do_not_hide_that_the_client_has_left(autojump_clock: MockClock) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as server:
        client = await server.connect()
        await client.call("send")
        await client.stream.send_all(b"\r\n")
        await tools.until(lambda: tools.started == ["send"])
        await trio.aclose_forcefully(client.stream)
        with trio.fail_after(45):
            while not tools.cancelled:
                await trio.sleep(1)


async def test_hundreds_of_held_calls_each_get_their_own_result() -> None:
    release = trio.Event()

    async def held(arguments: dict[str, Any], _call: Call) -> ToolResult:
        await release.wait()
        return ToolResult(arguments)

    async def one(number: int) -> None:
        async with server.client() as client:
            await client.call("send", {"n": number}, number=number, token=number)
            reply = await client.reply()
            assert (number, {"n": number}) == (reply.message["id"], reply.message["result"]["structuredContent"])

    tools = FakeTools({"send": held})
    async with listening(tools) as server:
        tasks = living()
        async with trio.open_nursery() as nursery:
            for number in range(300):
                nursery.start_soon(one, number)
            await tools.until(lambda: len(tools.started) == 300)
            release.set()
        await until_living(tasks)
