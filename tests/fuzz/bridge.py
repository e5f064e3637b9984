"""The stdio bridge between a client that writes anything and a server that answers anything."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_one_way_pair

from simplexmcp.bridge.proxy import LINE_LIMIT, Place, Proxy
from simplexmcp.bridge.stdio import read_lines
from simplexmcp.listener import Limits
from tests.fuzz.http import MESSAGES
from tests.fuzz.mutate import as_text, changed, damaged, junk
from tests.listener.helpers import TOKEN, FakeTools, listening, rpc

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.budget import Budget

__all__ = ["bridge"]

_TOGETHER = 25
"""Lines between two looks whether it serves."""
_OWN = 10_000_000
_ANSWERS = (
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
        b'{"jsonrpc":"2.0","id":1,"result":{}}'
    ),
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        b'2b\r\nid: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n\r\n0\r\n\r\n'
    ),
    b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}",
)


async def bridge(budget: Budget) -> None:
    """Mutated lines and mutated answers; after them a ping goes its way."""
    limits = Limits(first_byte=0.05, idle=5, body_seconds=2, grace=0.1)
    async with listening(FakeTools(), limits=limits) as server, trio.open_nursery() as nursery:
        odd = _OddServer()
        listeners = await nursery.start(trio.serve_tcp, odd.serve, 0)
        places = {True: server.port, False: listeners[0].socket.getsockname()[1]}
        honest = True
        into, given = memory_stream_one_way_pair()
        out, lines = trio.open_memory_channel[bytes](100_000)
        proxy = Proxy(lambda: Place(places[honest], TOKEN), out, _printable)
        nursery.start_soon(proxy.run, read_lines(given, LINE_LIMIT))
        for random in budget:
            honest, odd.random = random.random() < 0.7, random
            await into.send_all(_line(random) + b"\n")
            if not honest:
                await trio.sleep(0.002)
            if budget.tried % _TOGETHER == 0:
                honest = True
                await _serves(into, lines)
        honest = True
        await _serves(into, lines)
        nursery.cancel_scope.cancel()


class _OddServer:
    """Reads a little, and answers what was nearly an answer."""

    def __init__(self) -> None:
        self.random: Random | None = None

    async def serve(self, stream: trio.SocketStream) -> None:
        assert self.random is not None
        answer = damaged(self.random, self.random.choice(_ANSWERS))
        with suppress(trio.BrokenResourceError):  # it has left
            await stream.receive_some(65536)
            await stream.send_all(answer)
        await trio.aclose_forcefully(stream)


def _printable(line: str) -> None:
    assert line.isprintable(), line


def _line(random: Random) -> bytes:
    message = {**random.choice(MESSAGES), "id": random.choice((1, 2, "a"))}
    kind = random.randrange(6)
    if kind == 0:
        return as_text(junk(random)).encode()
    if kind == 1:
        return damaged(random, as_text(message).encode()).replace(b"\n", b" ")
    return as_text(changed(random, message, MESSAGES) if kind < 5 else message).encode()


async def _serves(into: Any, lines: trio.MemoryReceiveChannel[bytes]) -> None:
    """A ping is answered; what was said before it were messages."""
    await into.send_all(as_text(rpc("ping", number=_OWN)).encode() + b"\n")
    with trio.fail_after(20):
        async for line in lines:
            assert b"\n" not in line
            said = json.loads(line)
            assert isinstance(said, dict), said
            if said.get("id") == _OWN:
                assert said["result"] == {}
                return
