from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_one_way_pair

from simplexmcp.bridge.stdio import read_lines, write_lines


async def lines(*parts: bytes, limit: int = 10) -> list[bytes | None]:
    send, receive = memory_stream_one_way_pair()
    found: list[bytes | None] = []

    async def write() -> None:
        for part in parts:
            await send.send_all(part)
            await trio.testing.wait_all_tasks_blocked()
        await send.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        found += [line async for line in read_lines(receive, limit)]
    return found


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([b"one\ntwo\r\n\n  \nthr", b"ee\n"], [b"one", b"two", b"three"]),
        ([b"no end"], [b"no end"]),
        ([b"0123456789\n"], [b"0123456789"]),
        ([b"0123456789a\nb\n"], [None, b"b"]),
        ([b"0123", b"456789a", b"bc", b"d\ne\n"], [None, b"e"]),
        ([b"0123456789abc"], [None]),
        ([b"x" * 10_000, b"y" * 10_000], [None]),
        ([], []),
    ],
)
async def test_lines_are_given_one_by_one_and_too_long_ones_as_such(parts: list[bytes], found: list[bytes | None]):
    assert await lines(*parts) == found


async def test_lines_are_written_whole_in_their_order():
    send, receive = memory_stream_one_way_pair()
    to, out = trio.open_memory_channel[bytes](0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_lines, send, out)
        async with to:
            for line in (b"a", b"b"):
                await to.send(line)
    assert bytes(await receive.receive_some()) == b"a\nb\n"
