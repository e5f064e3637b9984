"""The proxy against a server of a few lines that answers as a test says."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio

from simplexmcp.bridge import proxy as proxying
from simplexmcp.bridge.proxy import Place, Proxy
from simplexmcp.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}


class Server:
    """Keeps what it was asked; `answer` gets the stream of each request and its message."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.closed = trio.Event()
        self.answer: Callable[[trio.SocketStream, dict[str, Any]], Any] = echo

    async def serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        body, headers = b"", {}
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Request):
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.ConnectionClosed):
                return
        message = json.loads(body)
        self.asked.append((headers, message))
        try:
            await self.answer(stream, message)
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()


async def reply(stream: trio.SocketStream, status: int, headers: dict[str, str], body: bytes) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    await stream.send_all(f"HTTP/1.1 {status} X\r\n{head}connection: close\r\n\r\n".encode() + body)


async def echo(stream: trio.SocketStream, message: dict[str, Any]) -> None:
    result = {"jsonrpc": "2.0", "id": message.get("id"), "result": message.get("params", {})}
    await reply(stream, 200, JSON, json.dumps(result).encode())


class Client:
    """What a client wrote and read."""

    def __init__(self, lines: trio.MemorySendChannel[bytes | None], out: trio.MemoryReceiveChannel[bytes]) -> None:
        self._lines, self._out = lines, out
        self.said: list[str] = []
        self.place: Place | UserError = UserError("")

    async def write(self, line: bytes | None) -> None:
        await self._lines.send(line)

    async def send(self, method: str, params: dict[str, Any] | None = None, number: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        await self.write(json.dumps(message if number is None else {**message, "id": number}).encode())

    async def read(self) -> dict[str, Any]:
        with trio.fail_after(10):
            line = await self._out.receive()
        assert b"\n" not in line
        return json.loads(line)

    async def ask(self, method: str, params: dict[str, Any] | None = None, number: Any = 1) -> dict[str, Any]:
        await self.send(method, params, number)
        return await self.read()

    def end(self) -> None:
        self._lines.close()

    def nothing_more(self) -> None:
        with pytest.raises(trio.WouldBlock):
            self._out.receive_nowait()


@asynccontextmanager
async def bridged() -> AsyncIterator[tuple[Client, Server]]:
    """A client, and a server that the proxy finds."""
    to_proxy, lines = trio.open_memory_channel[bytes | None](0)
    out, from_proxy = trio.open_memory_channel[bytes](10)
    client, server = Client(to_proxy, from_proxy), Server()

    def find() -> Place:
        if isinstance(client.place, UserError):
            raise client.place
        return client.place

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, server.serve, 0)
        port = listeners[0].socket.getsockname()[1]
        client.place = Place(port, "secret")

        async def run() -> None:
            await Proxy(find, out, client.said.append).run(lines)
            server.closed.set()

        nursery.start_soon(run)
        yield client, server
        client.end()
        with trio.fail_after(10):
            await server.closed.wait()
        nursery.cancel_scope.cancel()


async def test_a_request_is_posted_as_it_is_and_its_answer_given():
    async with bridged() as (client, server):
        assert await client.ask("ping", {"ü": "\u2028"}, number="a") == {
            "jsonrpc": "2.0", "id": "a", "result": {"ü": "\u2028"},
        }  # fmt: skip
        [(headers, message)] = server.asked
    assert message == {"jsonrpc": "2.0", "method": "ping", "params": {"ü": "\u2028"}, "id": "a"}
    assert headers["authorization"] == "Bearer secret"
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["content-type"] == "application/json"
    assert "mcp-protocol-version" not in headers


async def test_what_initialize_agreed_on_goes_with_each_later_request():
    async def hello(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2025-11-25"}}
        await reply(stream, 200, {**JSON, "Mcp-Session-Id": "s1"}, json.dumps(body).encode())

    async with bridged() as (client, server):
        server.answer = hello
        await client.ask("initialize")
        await client.ask("tools/list", number=2)
        later = server.asked[1][0]
    assert (later["mcp-protocol-version"], later["mcp-session-id"]) == ("2025-11-25", "s1")


async def test_a_message_that_says_its_version_gets_the_headers_of_it():
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    async with bridged() as (client, server):
        await client.ask("tools/call", {"name": "list", **meta})
        await client.ask("resources/read", {"uri": "é", **meta}, number=2)
        await client.ask("x\r\nEvil: 1", meta, number=3)
        headers = [asked[0] for asked in server.asked]
    assert [h["mcp-protocol-version"] for h in headers] == ["2026-07-28"] * 3
    assert [h["mcp-method"] for h in headers[:2]] == ["tools/call", "resources/read"]
    assert [h.get("mcp-name") for h in headers] == ["list", "=?base64?w6k=?=", None]
    assert "evil" not in headers[2]


async def test_progress_comes_before_the_answer():
    async def stream_of_events(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}}
        end = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        text = f": ping\n\ndata: {json.dumps(progress)}\n\ndata: {json.dumps(end, indent=1)}\n\n"
        text = text.replace("\n  ", "\ndata:  ").replace('\n "', '\ndata: "').replace("\n}", "\ndata: }")
        await reply(stream, 200, STREAM, text.encode())

    async with bridged() as (client, server):
        server.answer = stream_of_events
        assert (await client.ask("tools/call"))["method"] == "notifications/progress"
        assert await client.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_an_event_that_is_no_message_is_passed_over():
    async def odd_events(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        end = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        text = f'data: {{"jsonrpc"\n\ndata: [1]\n\ndata: \n\ndata: {json.dumps(end)}\n\n'
        await reply(stream, 200, STREAM, text.encode())

    async with bridged() as (client, server):
        server.answer = odd_events
        assert await client.ask("tools/call") == {"jsonrpc": "2.0", "id": 1, "result": {}}
        client.nothing_more()


async def test_a_version_that_no_header_can_hold_is_sent_in_the_form_for_it():
    async def hello(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "1\r\nx: y"}}
        await reply(stream, 200, JSON, json.dumps(body).encode())

    async with bridged() as (client, server):
        server.answer = hello
        await client.ask("initialize")
        await client.ask("tools/list", number=2)
        assert server.asked[1][0]["mcp-protocol-version"] == "=?base64?MQ0KeDogeQ==?="


async def test_a_cancelled_request_closes_its_connection_and_has_no_answer():
    begun, ended = trio.Event(), trio.Event()

    async def hold(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await reply(stream, 200, STREAM, b": held\n\n")
        begun.set()
        with suppress(trio.BrokenResourceError):
            assert await stream.receive_some(1) == b""
        ended.set()

    async with bridged() as (client, server):
        server.answer = hold
        await client.send("tools/call", number=1)
        await begun.wait()
        server.answer = echo
        await client.send("notifications/cancelled", {"requestId": "1"})  # another one
        await client.ask("ping", number=2)
        assert not ended.is_set()
        await client.send("notifications/cancelled", {"requestId": 1})
        with trio.fail_after(10):
            await ended.wait()
        assert (await client.ask("ping", number=3))["id"] == 3
        client.nothing_more()
        assert (await client.ask("ping", number=1))["id"] == 1  # the number is free again


async def test_requests_do_not_wait_for_each_other():
    release = trio.Event()

    async def slow_first(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        if message["id"] == 1:
            await release.wait()
        await echo(stream, message)

    async with bridged() as (client, server):
        server.answer = slow_first
        await client.send("tools/call", number=1)
        assert (await client.ask("ping", number=2))["id"] == 2
        release.set()
        assert (await client.read())["id"] == 1


async def test_a_notification_is_posted_and_has_no_answer():
    async def accept(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await reply(stream, 202, {}, b"")

    async with bridged() as (client, server):
        server.answer = accept
        await client.send("notifications/initialized")
        while not server.asked:
            await trio.lowlevel.checkpoint()
        server.answer = echo
        await client.ask("ping")
        client.nothing_more()
        assert client.said == []


async def test_a_notification_that_is_refused_is_told_to_people():
    async def refuse(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await reply(stream, 401, JSON, b"{}")

    async with bridged() as (client, server):
        server.answer = refuse
        await client.send("notifications/x\x1b")
        while not client.said:
            await trio.lowlevel.checkpoint()
    assert client.said == ["The server refused notifications/x<U+001B> with HTTP status 401."]


async def test_a_server_that_does_not_run_is_an_error_of_each_request_and_one_line():
    async with bridged() as (client, _server):
        place, client.place = client.place, UserError("Agent x is not running. Start it with: …")
        for number in (1, 2):
            answer = await client.ask("ping", number=number)
            assert answer == {
                "jsonrpc": "2.0", "id": number,
                "error": {"code": -32000, "message": "Agent x is not running. Start it with: …"},
            }  # fmt: skip
        assert client.said == ["Agent x is not running. Start it with: …"]
        client.place = place
        assert "result" in await client.ask("ping", number=3)
        assert client.said[1:] == ["The server is there again."]


async def test_a_port_where_nothing_listens_is_a_server_that_is_not_there_yet():
    async with bridged() as (client, _server):
        client.place = Place(1, "secret")
        error = (await client.ask("ping"))["error"]
    assert error["message"] == "The server does not answer: it is starting or stopping. Try again."


LOSSES: list[bytes] = [
    b"",
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {}\n\n",
    b"not HTTP at all\r\n\r\n",
]


@pytest.mark.parametrize("sent", LOSSES)
async def test_a_connection_that_breaks_ends_its_call_and_the_next_one_works(sent: bytes):
    async def lose(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await stream.send_all(sent or b"H")

    async with bridged() as (client, server):
        server.answer = lose
        await client.send("tools/call", number=1)
        answer = await client.read()
        answer = answer if answer.get("id") else await client.read()
        assert answer["error"]["code"] == -32000
        assert answer["error"]["message"].startswith("The connection to the server was lost;")
        server.answer = echo
        assert "result" in await client.ask("ping", number=2)


async def test_a_server_that_falls_silent_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proxying, "_SILENCE", 0.02)

    async def silence(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await reply(stream, 200, STREAM, b": held\n\n")
        await trio.sleep_forever()

    async with bridged() as (client, server):
        server.answer = silence
        assert "was lost" in (await client.ask("tools/call"))["error"]["message"]


@pytest.mark.parametrize(
    ("status", "body", "code", "says"),
    [
        (503, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"The agent is starting."}}', -32000,
         "The agent is starting."),
        (401, b'{"jsonrpc":"2.0","id":null,"error":{"message":"The token is wrong."}}', -32603, "The token is wrong."),
        (500, b"<html>", -32603, "The server answered with HTTP status 500."),
        (200, b'{"jsonrpc":"2.0","id":9,"result":{}}', -32603, "The server answered with HTTP status 200."),
    ],
)  # fmt: skip
async def test_a_refusal_of_the_server_answers_the_request(status: int, body: bytes, code: int, says: str):
    async def refuse(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await reply(stream, status, JSON, body)

    async with bridged() as (client, server):
        server.answer = refuse
        assert await client.ask("ping") == {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": says}}


@pytest.mark.parametrize(
    ("line", "code"),
    [(None, -32600), (b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600)],
)
async def test_what_is_no_message_is_answered_here(line: bytes | None, code: int):
    async with bridged() as (client, server):
        await client.write(line)
        answer = await client.read()
        assert (answer["id"], answer["error"]["code"]) == (None, code)
        assert server.asked == []


async def test_a_number_that_is_in_use_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proxying, "_GRACE", 0)

    async def hold(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await trio.sleep_forever()

    async with bridged() as (client, server):
        server.answer = hold
        await client.send("tools/call", number=1)
        assert (await client.ask("ping", number=1))["error"]["message"] == "A request with this id is open."


async def test_more_requests_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proxying, "_OPEN_LIMIT", 2)
    monkeypatch.setattr(proxying, "_GRACE", 0)

    async def hold(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await trio.sleep_forever()

    async with bridged() as (client, server):
        server.answer = hold
        for number in (1, 2):
            await client.send("tools/call", number=number)
        assert (await client.ask("ping", number=3))["error"]["message"] == "2 requests are open; wait for some of them."


async def test_a_request_that_is_too_long_is_refused_by_its_number_and_not_passed_on():
    async with bridged() as (client, server):
        refused = await client.ask("tools/call", {"text": "x" * proxying.LINE_LIMIT}, number=7)
        assert (refused["id"], refused["error"]["message"]) == (7, "The message is longer than 4 MiB.")
        assert server.asked == []


async def test_the_end_of_the_input_leaves_open_requests_a_moment(autojump_clock: trio.testing.MockClock):
    async def slow(stream: trio.SocketStream, message: dict[str, Any]) -> None:
        await trio.sleep(0.5 if message["id"] == 1 else 30)
        await echo(stream, message)

    async with bridged() as (client, server):
        server.answer = slow
        await client.send("tools/call", number=1)
        await client.send("tools/call", number=2)
        while len(server.asked) < 2:
            await trio.testing.wait_all_tasks_blocked(0.01)
        start = trio.current_time()
        client.end()
        assert (await client.read())["id"] == 1
        await server.closed.wait()
        assert trio.current_time() - start < 2
