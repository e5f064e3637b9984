"""The server's start and end: ports, socket options, closing in its steps, and that nothing is left."""

from __future__ import annotations

import gc
import json
import socket
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.errors import UserError
from simplexmcp.listener import Closing, Limits, ToolResult, serve
from simplexmcp.listener.connection import Connection
from simplexmcp.listener.server import _allow_files
from simplexmcp.web.serving import listen, no_port
from tests.listener.helpers import (
    NEVER,
    TOKEN,
    Client,
    FakeTools,
    forever,
    listening,
    living,
    modern_call,
    rpc,
    tools_call,
    until_living,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from trio.testing import MockClock

    from simplexmcp.listener import Call


def server(tools: FakeTools, closing: Closing, port: int = 0) -> Callable[..., Awaitable[None]]:
    return partial(serve, tools, port=port, token=TOKEN, ready=lambda: True, closing=closing)


async def test_a_port_in_use_is_one_line_that_says_which_and_what_to_do() -> None:
    async with listening() as other:
        with pytest.raises(UserError) as caught:
            await serve(FakeTools(), port=other.port, token=TOKEN, ready=lambda: True, closing=Closing())
        line = str(caught.value)
        assert f"Port {other.port} is in use" in line
        assert "--port" in line
        assert "\n" not in line


async def test_a_port_that_cannot_be_had_is_one_line_too() -> None:
    assert "needs root" in str(no_port(80, PermissionError(13, "Permission denied")))
    assert "--port" in str(no_port(5226, OSError(99, "Cannot assign requested address")))


async def test_only_loopback_is_bound() -> None:
    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_the_limit_of_open_files_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.setrlimit", lambda _which, pair: asked.append(pair))
    monkeypatch.setattr("resource.getrlimit", lambda _which: (1024, 2000))
    _allow_files(4000)
    _allow_files(1000)
    _allow_files(100)
    assert asked == [(2000, 2000), (1256, 2000)]


async def test_finished_without_calls_it_returns_at_once_and_the_port_is_free() -> None:
    closing = Closing()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(server(FakeTools(), closing))
        client = Client(await trio.open_tcp_stream("127.0.0.1", port), port)
        await client.ask(tools_call("list"))
        closing.refuse("The agent is stopping.")
        assert True is await closing.drained(1)
        closing.finish("stopped")
        with trio.fail_after(20):
            assert await client.closed()
    await trio.aclose_forcefully(client.stream)
    closing = Closing()
    async with trio.open_nursery() as nursery:
        assert port == await nursery.start(server(FakeTools(), closing, port))
        closing.finish("stopped")


async def test_while_closing_open_calls_end_with_their_result_and_new_ones_are_refused() -> None:
    stop = trio.Event()

    async def until_stop(_arguments: dict[str, Any], _call: Call) -> ToolResult:
        await stop.wait()
        return ToolResult({"status": "cancelled"}, settle=tools.settle("send"))

    tools = FakeTools({"send": until_stop})
    async with listening(tools) as running, running.client() as held, running.client() as late:
        await held.call("send")
        await tools.until(lambda: tools.started == ["send"])
        running.closing.refuse("The agent is stopping.")
        reply = await late.ask(tools_call("list"))
        assert (reply.status, reply.json["error"]["message"]) == (503, "The agent is stopping.")
        stop.set()
        assert True is await running.closing.drained(5)
        running.closing.finish("stopped")
        reply = await held.reply()
        assert reply.message["result"]["structuredContent"] == {"status": "cancelled"}
        assert tools.settled == ["send"]
        with trio.fail_after(20):
            await running.ended.wait()


async def test_draining_ends_at_its_deadline_when_a_tool_does_not(autojump_clock: MockClock) -> None:
    async with listening(FakeTools({"send": forever})) as running, running.client() as held:
        await held.call("send")
        await running.tools.until(lambda: running.tools.started == ["send"])
        start = trio.current_time()
        assert False is await running.closing.drained(10)
        assert pytest.approx(trio.current_time() - start) == 10


@pytest.mark.parametrize("limits", [NEVER, Limits(first_byte=0.01)])
@pytest.mark.parametrize("generation", ["handshake", "modern"])
async def test_finished_each_call_that_is_still_open_reads_why(generation: str, limits: Limits) -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools, limits=limits) as running, running.client() as held:
        if generation == "modern":
            body, headers = modern_call("send", number=4)
            await held.send(body, **headers)
        else:
            await held.call("send", number=4)
        await tools.until(lambda: tools.started == ["send"])
        if limits is not NEVER:
            await held.begin()
            assert await held.chunk()
        running.closing.finish("The server is stopping.")
        if limits is NEVER:
            message = (await held.reply()).message
        else:
            message = json.loads((await held.chunk()).partition(b"data: ")[2])
        assert message == {"jsonrpc": "2.0", "id": 4, "error": {"code": -32800, "message": "The server is stopping."}}
        assert tools.cancelled == ["send"]
        with trio.fail_after(20):
            await running.ended.wait()


async def test_three_hundred_open_calls_all_get_the_reason_within_a_second() -> None:
    tools = FakeTools({"send": forever})
    reasons: list[str] = []

    async def one() -> None:
        async with running.client() as client:
            await client.call("send", token=1)
            reasons.append((await client.reply()).message["error"]["message"])

    async with listening(tools) as running:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for _ in range(300):
                    nursery.start_soon(one)
                await tools.until(lambda: len(tools.started) == 300)
                running.closing.finish("bye")
            await running.ended.wait()
    assert reasons == ["bye"] * 300


async def test_a_request_on_its_way_when_it_is_finished_reads_why_too() -> None:
    tools = FakeTools({"send": forever})
    async with listening(tools) as running, running.client() as late:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send"}}'
        head = "".join(f"{name}: {value}\r\n" for name, value in late.head(content_length=str(len(body))))
        await late.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        running.closing.finish("bye")
        await late.stream.send_all(body)
        status, _ = await late.begin_of(b"POST")
        assert status == 200
        assert b'"bye"' in await late.chunk()
        assert tools.started == []


async def blocked(client: Client, tools: FakeTools) -> None:
    """A client whose stream is full: it does not read, and the tool talks on."""
    client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await client.call("send", token="t")
    await tools.until(lambda: tools.started == ["send"])
    await trio.testing.wait_all_tasks_blocked(0.01)


async def talk(_arguments: dict[str, Any], call: Call) -> ToolResult:
    for _ in range(20):
        call.say("x" * 1_000_000)
        await trio.testing.wait_all_tasks_blocked()
    return await forever(_arguments, call)


async def test_a_client_that_does_not_read_delays_the_end_by_the_grace_only() -> None:
    tools = FakeTools({"send": talk})
    async with listening(tools, limits=Limits(grace=0.2)) as running, running.client() as client:
        await blocked(client, tools)
        running.closing.finish("bye")
        with trio.fail_after(20):
            await running.ended.wait()


async def test_cancelled_it_leaves_at_once_even_when_a_client_does_not_read() -> None:
    tools = FakeTools({"send": talk})
    tasks = living()
    with trio.fail_after(20):
        async with listening(tools, limits=Limits(grace=60)) as running, running.client() as client:
            await blocked(client, tools)
    await until_living(tasks)


async def large(_arguments: dict[str, Any], _call: Call) -> ToolResult:
    return ToolResult({"text": "x" * 10_000_000}, settle=lambda: pytest.fail("not delivered"))


async def test_a_result_that_is_not_read_delays_the_end_by_the_grace_only_and_nobody_new_comes_in() -> None:
    async with listening(FakeTools({"send": large}), limits=Limits(grace=0.3)) as running, running.client() as client:
        client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await client.call("send")
        await running.tools.until(lambda: running.tools.started == ["send"])
        await trio.testing.wait_all_tasks_blocked(0.05)
        running.closing.finish("bye")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not running.ended.is_set()
        with pytest.raises(OSError, match="failed"):
            await running.connect()
        with trio.fail_after(20):
            await running.ended.wait()


async def test_cancelled_it_leaves_at_once_even_when_a_result_is_not_read() -> None:
    tasks = living()
    with trio.fail_after(20):
        async with (
            listening(FakeTools({"send": large}), limits=Limits(grace=60)) as running,
            running.client() as client,
        ):
            client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await client.call("send")
            await running.tools.until(lambda: running.tools.started == ["send"])
            await trio.testing.wait_all_tasks_blocked(0.05)
    await until_living(tasks)


async def test_what_it_sets_for_the_whole_process_is_as_before_when_it_has_ended() -> None:
    before = (gc.get_threshold(), gc.get_freeze_count())
    async with listening() as running:
        assert gc.get_freeze_count() > before[1]
        running.closing.finish("bye")
        await running.ended.wait()
    assert before == (gc.get_threshold(), gc.get_freeze_count())


async def test_no_task_is_left_when_it_has_ended() -> None:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    before = tree(root)
    tools = FakeTools({"send": forever})
    closing = Closing()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(server(tools, closing))
        clients = [Client(await trio.open_tcp_stream("127.0.0.1", port), port) for _ in range(6)]
        body, headers = modern_call("send", token=1)
        await clients[0].ask(rpc("ping"))
        await clients[1].send(body, **headers)
        await clients[2].call("send", token=1)
        await clients[3].call("send")
        await trio.aclose_forcefully(clients[4].stream)
        await clients[5].stream.send_all(b"POST /mcp HT")
        await tools.until(lambda: len(tools.started) == 3)
        assert len(tree(root)) > len(before) + 5
        closing.finish("bye")
    assert before == tree(root)
    for client in clients:
        await trio.aclose_forcefully(client.stream)


def tree(task: trio.lowlevel.Task) -> list[str]:
    """The names of all tasks below `task`."""
    children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return sorted(name for child in children for name in (child.name, *tree(child)))


async def test_an_idle_connection_is_closed_after_its_time(autojump_clock: MockClock) -> None:
    async with listening() as running, running.client() as client:
        await client.ask(rpc("ping"))
        start = trio.current_time()
        with trio.fail_after(100):
            assert await client.stream.receive_some() == b""
        assert pytest.approx(trio.current_time() - start, abs=1) == 75


async def test_a_head_that_does_not_come_is_given_up(autojump_clock: MockClock) -> None:
    async with listening() as running, running.client() as client:
        await client.stream.send_all(b"POST /mcp HTTP/1.1\r\n")
        with trio.fail_after(100):
            assert await client.stream.receive_some() == b""


async def test_answers_leave_in_one_packet() -> None:
    """Headers and body together: half the packets, half the wake-ups of the client."""
    async with listening() as running, running.client() as client:
        await client.call("list")
        data = await client.stream.receive_some(65536)
        assert data.endswith(b'"isError":false}}')
        assert data.startswith(b"HTTP/1.1 200")


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Connection, socket.socket]]:
    """A connection and the client's end of it."""
    left, right = socket.socketpair()
    right.settimeout(20)
    with right, trio.fail_after(20):
        async with trio.SocketStream(trio.socket.from_stdlib_socket(left)) as stream:
            yield Connection(stream), right


async def test_an_aborted_connection_ends_a_write_that_waits() -> None:
    async with pair() as (connection, _client), trio.open_nursery() as nursery:

        async def write() -> None:
            with trio.CancelScope(shield=True), pytest.raises(trio.ClosedResourceError):
                await connection.send_all(b"x" * 10_000_000)

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        connection.abort()
    assert connection.scope.cancel_called


async def test_only_the_announced_write_settles_and_only_once() -> None:
    async with pair() as (connection, client):
        settled: list[str] = []
        await connection.send_all(b"a")
        connection.on_delivery(lambda: settled.append("b"))
        assert settled == []
        await connection.send_all(b"b")
        await connection.send_all(b"c")
        assert settled == ["b"]
        assert client.recv(9) == b"abc"


async def test_a_write_that_fails_or_comes_after_the_end_settles_nothing() -> None:
    settled: list[str] = []
    async with pair() as (connection, client):
        client.shutdown(socket.SHUT_WR)
        assert await connection.receive_some() == b""
        connection.on_delivery(lambda: settled.append("after the end"))
        await connection.send_all(b"x")
    async with pair() as (connection, client):
        client.close()
        connection.on_delivery(lambda: settled.append("broken"))
        with pytest.raises(trio.BrokenResourceError):
            await connection.send_all(b"x" * 10_000_000)
        assert connection.scope.cancel_called
    assert settled == []


async def test_a_defect_on_one_connection_is_logged_and_ends_only_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from hypercorn.trio.tcp_server import TCPServer

    async def broken(_self: TCPServer) -> None:
        raise RuntimeError("odd bytes")

    async with listening() as running:
        with monkeypatch.context() as patch:
            patch.setattr(TCPServer, "run", broken)
            async with running.client() as client:
                assert await client.closed()
        async with running.client() as client:
            assert (await client.ask(rpc("ping"))).status == 200
    assert "odd bytes" in caplog.text


async def test_a_closing_finished_before_the_start_ends_the_listener_at_its_start() -> None:
    closing = Closing()
    closing.finish("never mind")
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(server(FakeTools(), closing))
    assert True is await closing.drained(0)
