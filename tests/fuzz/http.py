"""Bytes on real sockets: to the listener of the MCP endpoint, and to the page of the sandbox's phone."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from trio_websocket import ConnectionClosed

from simplexmcp.listener import Limits
from tests.fuzz.mutate import as_text, changed, damaged, junk
from tests.listener.helpers import TOKEN, FakeTools, listening, modern_call, rpc, tools_call
from tests.phone.world import phone

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.budget import Budget
    from tests.listener.helpers import Listening
    from tests.phone.tabs import Tab
    from tests.phone.world import World

__all__ = ["MESSAGES", "http", "page"]

_TOGETHER = 25
"""Inputs between two looks whether others are served."""
_LAST = 1_000_001

MESSAGES: list[Any] = [
    rpc("ping"),
    rpc("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}),
    rpc("tools/list"),
    tools_call("list", {"n": 1}, token="t"),
    tools_call("send", {"n": 2}, number="a"),
    rpc("notifications/cancelled", {"requestId": 1}, number=None),
    rpc("server/discover", {}),
    json.loads(modern_call("list", {"n": 1})[0]),
]  # fmt: skip
_HEADERS: tuple[tuple[str, str], ...] = (
    ("host", "127.0.0.1:PORT"), ("authorization", f"Bearer {TOKEN}"), ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-11-25"),
)  # fmt: skip
_MORE: tuple[tuple[str, str], ...] = (
    ("transfer-encoding", "chunked"), ("content-length", "7"), ("expect", "100-continue"), ("upgrade", "websocket"),
    ("upgrade", "h2c"), ("connection", "upgrade"), ("origin", "null"), ("last-event-id", "0-1"), ("host", "a"),
    ("authorization", "Bearer x"), ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"),
    ("mcp-name", "list"), ("content-encoding", "gzip"), ("x", "y" * 9_000), ("cookie", "\xe9=\xff"), ("", ""),
)  # fmt: skip


async def http(budget: Budget) -> None:
    """Requests with changed bodies, heads and bytes; after them a good one is served."""
    limits = Limits(first_byte=0.05, idle=5, body_seconds=2, grace=0.1)
    async with listening(FakeTools(), limits=limits) as server:
        for random in budget:
            await _send(server.port, _request(random, server.port), random)
            if budget.tried % _TOGETHER == 0:
                await _served(server)
        await _served(server)


async def page(budget: Budget) -> None:
    """Frames of a tab with changed parts and bytes; after them another tab is served."""
    async with phone() as world:
        requests = _tab_requests(world)
        inputs = iter(budget)
        random = next(inputs, None)
        while random is not None:
            async with world.browser.tab("Alice") as tab:
                for _ in range(_TOGETHER):
                    frame = _frame(random, requests)
                    await _handled(tab, frame)
                    random = next(inputs, None)
                    if random is None or tab.closed:
                        break
                assert tab.closed is None or tab.closed[0] in (1000, 1003, 1008), tab.closed
            async with world.browser.tab("Bob") as other:
                assert (await other.ask("people"))["people"]


async def _handled(tab: Tab, frame: str | bytes) -> None:
    """Send a frame, and wait until one after it is answered or the tab was ended for it."""
    with suppress(ConnectionClosed):
        await tab.ws.send_message(frame)
        await tab.ws.send_message(json.dumps({"id": _LAST, "do": "people"}))
    await tab.until(lambda: tab.closed or tab._answers.pop(_LAST, None))


def _request(random: Random, port: int) -> bytes:
    message = random.choice(MESSAGES)
    kind = random.randrange(5)
    body = as_text(message if kind else changed(random, message, MESSAGES)).encode()
    if kind == 1:
        body = damaged(random, body)
    fields = [(name, value.replace("PORT", str(port))) for name, value in _HEADERS]
    if kind == 2:
        fields[random.randrange(len(fields))] = random.choice(_MORE)
    if kind in (2, 3):
        fields += random.sample(_MORE, random.randrange(3))
    if not any(name in ("content-length", "transfer-encoding") for name, _ in fields):
        fields.append(("content-length", str(len(body))))
    method, target = ("POST", "/mcp") if random.random() < 0.8 else (random.choice(_METHODS), random.choice(_TARGETS))
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    data = head.encode("latin-1", "replace") + body
    if kind == 4:
        data = damaged(random, data) or b"\n"
    return data * random.choice((1, 1, 1, 3))


_METHODS = ("GET", "OPTIONS", "DELETE", "CONNECT", "TRACE", "post", "P" * 300, "PRI")
_TARGETS = (
    "/mcp",
    "*",
    "/",
    "//mcp",
    "/mcp?x",
    "/%6dcp",
    "http://evil.example/mcp",
    "/" + "a" * 9_000,
    "/\xff",
    "/../mcp",
)


async def _send(port: int, data: bytes, random: Random) -> None:
    """Send in one or in several pieces, and read until it ends or nothing more comes."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    cut = random.randrange(len(data)) if random.random() < 0.3 else 0
    async with stream:
        with trio.move_on_after(0.02), suppress(trio.BrokenResourceError):
            for part in filter(None, (data[:cut], data[cut:])):
                await stream.send_all(part)
            if random.random() < 0.7:
                await stream.send_eof()
            answer = b""
            while (came := await stream.receive_some()) and len(answer) < 100_000:
                answer += came
            assert not answer or answer.startswith((b"HTTP/1.1 ", b"\x00\x00")), answer[:80]
            assert TOKEN.encode() not in answer


async def _served(server: Listening) -> None:
    async with server.client() as client:
        with trio.fail_after(10):
            assert (await client.ask(rpc("ping"))).json["result"] == {}


def _tab_requests(world: World) -> list[dict[str, Any]]:
    """One request of each kind, as the page makes them."""
    link = world.phone.url()
    fields: dict[str, Any] = {
        "name": "Alice", "link": link, "chat": "@1", "item": 1, "items": [1], "count": 5, "before": 9, "text": "hello",
        "quote": 1, "mentions": {"Bob": "x"}, "live": True, "everyone": True, "member": 1, "role": "member",
    }  # fmt: skip
    words = (
        "people become chats plan join open read send edit delete receive cancel members role remove leave forget "
        "group link address"
    )
    return [{"id": number, "do": word, **fields} for number, word in enumerate(words.split())]


def _frame(random: Random, requests: list[dict[str, Any]]) -> str | bytes:
    kind = random.randrange(8)
    request = random.choice(requests)
    if kind == 0:
        return as_text(junk(random))
    if kind == 1:
        return damaged(random, as_text(request).encode()).decode("utf-8", "replace")
    if kind == 2:
        return damaged(random, as_text(request).encode())
    return as_text({**changed(random, request, requests), "id": 1, "do": request["do"]} if kind > 4 else request)
