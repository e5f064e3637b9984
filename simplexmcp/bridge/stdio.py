"""Lines on stdin and stdout, of which each is a message."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["open_stdio", "read_lines", "write_lines"]

_READ = 1 << 16  # bytes


@asynccontextmanager
async def open_stdio() -> AsyncGenerator[tuple[trio.abc.ReceiveStream, trio.abc.SendStream]]:
    """Stdin and stdout as streams. Whatever else the process prints goes to stderr meanwhile."""
    # In the order that gives a terminal, which both may be, its mode back at the end.
    async with trio.lowlevel.FdStream(os.dup(1)) as out, trio.lowlevel.FdStream(os.dup(0)) as given:
        stdout = os.dup(1)
        os.dup2(2, 1)
        try:
            yield given, out
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)


async def read_lines(stream: trio.abc.ReceiveStream, limit: int) -> AsyncGenerator[bytes | None]:
    """The lines without their ends, None for one of more than `limit` bytes; empty ones are skipped. What has no end
    when the stream ends is a line, too."""
    rest = bytearray()
    skipping = False
    while part := await _receive(stream):
        *lines, begun = part.split(b"\n")
        for line in lines:
            rest += line
            if skipping or len(rest) > limit:
                yield None
            elif rest.strip():
                yield bytes(rest.strip())
            rest.clear()
            skipping = False
        rest += begun
        if len(rest) > limit:
            rest.clear()
            skipping = True
    if skipping:
        yield None
    elif rest.strip():
        yield bytes(rest.strip())


async def write_lines(stream: trio.abc.SendStream, lines: trio.MemoryReceiveChannel[bytes]) -> None:
    """Writes lines until there are no more. Raises trio.BrokenResourceError when the reader is gone."""
    async for line in lines:
        await stream.send_all(line + b"\n")


async def _receive(stream: trio.abc.ReceiveStream) -> bytes:
    try:
        return bytes(await stream.receive_some(_READ))
    except trio.BrokenResourceError:
        return b""  # the other end is gone: nothing more comes
