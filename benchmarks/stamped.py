"""`python -m benchmarks.stamped FILE ARGUMENT…`: `simplexmcp ARGUMENT…`, unchanged but for a note of each message that
passes its WebSocket: a line `SECONDS in|out MESSAGE` in FILE, with the moment at the socket, by `perf_counter`. A line
`SECONDS disk SECONDS` says when the disk was told to keep a file, and how long that took."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import trio
from trio_websocket import WebSocketConnection

from simplexmcp.cli import main

if TYPE_CHECKING:
    from wsproto.events import BytesMessage, TextMessage


def stamp(path: str) -> None:
    """Begin to take notes."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    last_read = 0.0
    last_write: dict[trio.abc.Stream, float] = {}
    complete: deque[float] = deque()
    write = trio.SocketStream.send_all
    receive, handle = trio.SocketStream.receive_some, WebSocketConnection._handle_message_event  # noqa: SLF001
    sync = os.fsync
    get, send = WebSocketConnection.get_message, WebSocketConnection.send_message

    def note(at: float, way: str, message: str | bytes) -> None:
        text = message if isinstance(message, str) else message.decode()
        os.write(log, f"{at:.6f} {way} {text}\n".encode())

    async def receive_some(self: trio.SocketStream, max_bytes: int | None = None) -> bytes | bytearray:
        nonlocal last_read
        data = await receive(self, max_bytes)
        last_read = time.perf_counter()
        return data

    async def send_all(self: trio.SocketStream, data: bytes | bytearray | memoryview) -> None:
        # Not after it: the other side may be done before this process goes on.
        last_write[self] = time.perf_counter()
        await write(self, data)

    async def handle_message_event(self: WebSocketConnection, event: BytesMessage | TextMessage) -> None:
        if event.message_finished:
            complete.append(last_read)
        await handle(self, event)

    async def get_message(self: WebSocketConnection) -> Any:
        message = await get(self)
        note(complete.popleft(), "in", message)
        return message

    async def send_message(self: WebSocketConnection, message: str | bytes) -> None:
        await send(self, message)
        note(last_write[self._stream], "out", message)

    def fsync(fd: int) -> None:
        began = time.perf_counter()
        sync(fd)
        note(began, "disk", f"{time.perf_counter() - began:.6f}")

    os.fsync = fsync  # type: ignore[assignment]
    for owner, replacement in (
        (trio.SocketStream, receive_some),
        (trio.SocketStream, send_all),
        (WebSocketConnection, get_message),
        (WebSocketConnection, send_message),
    ):
        setattr(owner, replacement.__name__, replacement)
    WebSocketConnection._handle_message_event = handle_message_event  # type: ignore[method-assign]  # noqa: SLF001


if __name__ == "__main__":
    stamp(sys.argv.pop(1))
    main()
