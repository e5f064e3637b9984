"""Clients whose server was killed, and a server whose client vanished: neither waits for long."""

from __future__ import annotations

import ctypes
import socket
import struct
from functools import partial
from typing import TYPE_CHECKING

import httpx2
import pytest
import trio
from mcp import Client as McpClient
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client

from simplexmcp.listener import Closing, Limits, serve
from simplexmcp.web import serving
from tests.listener.helpers import MODERN, TOKEN, Client, FakeTools, forever, listening

if TYPE_CHECKING:
    from trio.testing import MockClock

SOON = Limits(first_byte=0.01)


async def open_call(client: Client, **changes: str | None) -> bytes:
    """The beginning of a held call's stream."""
    await client.call("send", number=7, **changes)
    assert (await client.begin())[0] == 200
    return await client.chunk()


def come_back_words(chunk: bytes) -> str:
    first, second, third = chunk.split(b"\n")[:3]
    assert (second, third) == (b"retry: 3000", b"data:")
    return first.removeprefix(b"id: ").decode()


async def test_a_client_that_comes_back_to_a_broken_stream_reads_that_its_call_is_lost() -> None:
    async with listening(FakeTools({"send": forever}), limits=SOON) as first, first.client() as client:
        words = come_back_words(await open_call(client))
    async with listening() as second, second.client() as client:
        await client.send(method="GET", last_event_id=words, content_type=None)
        reply = await client.reply()
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
        assert (reply.message["id"], reply.message["error"]["code"]) == (7, -32800)
        assert "Make the same call again" in reply.message["error"]["message"]


@pytest.mark.parametrize("number", [0, "a.b", "ä\n", 'a"b'])
async def test_any_id_of_a_request_is_told_back(number: int | str) -> None:
    async with listening(FakeTools({"send": forever}), limits=SOON) as served, served.client() as client:
        await client.call("send", number=number)
        await client.begin()
        words = come_back_words(await client.chunk())
        async with served.client() as again:
            await again.send(method="GET", last_event_id=words, content_type=None)
            assert (await again.reply()).message["id"] == number


async def test_an_id_that_is_no_header_gets_no_words_to_come_back_with() -> None:
    async with listening(FakeTools({"send": forever}), limits=SOON) as served, served.client() as client:
        await client.call("send", number="x" * 300)
        await client.begin()
        assert await client.chunk() == b": waiting\n\n"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", None])
async def test_an_older_client_gets_no_event_without_data(version: str | None) -> None:
    async with listening(FakeTools({"send": forever}), limits=SOON) as served, served.client() as client:
        assert await open_call(client, mcp_protocol_version=version) == b": waiting\n\n"


@pytest.mark.parametrize("words", ["", "x", "x.", "x.true", "x.1.5", "x.[1]", "x.null", "x.{"])
async def test_words_that_name_no_call_are_refused(words: str) -> None:
    async with listening() as served, served.client() as client:
        await client.send(method="GET", last_event_id=words, content_type=None)
        assert (await client.reply()).status == 400


async def test_whoever_comes_back_passes_the_guard_first() -> None:
    async with listening() as served:
        for changes, status in (
            ({"last_event_id": None}, 405),
            ({"authorization": None}, 401),
            ({"origin": "https://evil.example"}, 403),
            ({"host": "evil.example"}, 421),
            ({**MODERN, "last_event_id": None}, 405),
        ):
            async with served.client() as client:
                headers = {"last_event_id": "x.1", "content_type": None, **changes}
                await client.send(method="GET", **headers)
                assert (await client.reply()).status == status


async def test_the_pending_call_of_a_client_ends_within_seconds_of_a_restart(autojump_clock: MockClock) -> None:
    tools = FakeTools({"send": forever})
    async with trio.open_nursery() as lives:
        start = partial(serve, tools, token=TOKEN, ready=lambda: True, limits=SOON)
        async with trio.open_nursery() as first:
            port: int = await first.start(partial(start, port=0, closing=Closing()))
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=None) as http:
                transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
                async with McpClient(transport, mode="legacy") as client, trio.open_nursery() as nursery:
                    ended = trio.Event()

                    async def call() -> None:
                        with pytest.raises(MCPError, match="Make the same call again"):
                            await client.call_tool("send", {})
                        ended.set()

                    nursery.start_soon(call)
                    await tools.until(lambda: tools.started == ["send"])
                    await trio.sleep(1)
                    first.cancel_scope.cancel()  # killed: no last event
                    await tools.until(lambda: tools.cancelled == ["send"])
                    await trio.sleep(1)
                    await lives.start(partial(start, port=port, closing=Closing()))
                    with trio.fail_after(20):
                        await ended.wait()
                    lives.cancel_scope.cancel()


def vanish(stream: trio.SocketStream) -> None:
    """From now on nothing that is sent to this end arrives, nor is acknowledged: as when its computer is gone."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    stream.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(drop_all)))


@pytest.mark.parametrize("pulse", [0.3, 3600])
async def test_a_client_that_vanished_cancels_its_tool_though_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, pulse: float
) -> None:
    hurried = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_USER_TIMEOUT": 600}
    options = [(level, name, hurried.get(name, value)) for level, name, value in serving._SOCKET_OPTIONS]
    monkeypatch.setattr(serving, "_SOCKET_OPTIONS", options)
    tools = FakeTools({"send": forever})
    async with (
        listening(tools, limits=Limits(first_byte=0.01, pulse=pulse)) as served,
        served.client() as client,
    ):
        await open_call(client)
        vanish(client.stream)
        await tools.until(lambda: tools.cancelled == ["send"])


def test_a_client_that_vanished_is_noticed_within_35_seconds() -> None:
    value = {name: value for _, name, value in serving._SOCKET_OPTIONS}
    assert value["SO_KEEPALIVE"] == 1
    # A held call is written to every `pulse` seconds; a connection without one is asked by the system.
    assert Limits().pulse + value["TCP_USER_TIMEOUT"] / 1000 < 35
    assert value["TCP_KEEPIDLE"] + value["TCP_KEEPINTVL"] < 35
    assert value["TCP_USER_TIMEOUT"] / 1000 <= value["TCP_KEEPIDLE"]


async def test_what_is_set_for_the_listening_socket_holds_for_each_connection() -> None:
    with serving.listen(0) as listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            for level, name, value in serving._SOCKET_OPTIONS:
                assert accepted.getsockopt(level, getattr(socket, name)) == value
