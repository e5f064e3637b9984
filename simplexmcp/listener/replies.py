"""A request as the listener's rooms pass it on, and how it is answered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final
from uuid import uuid4

import trio

from simplexmcp.listener import jsonrpc

if TYPE_CHECKING:
    from simplexmcp.listener.connection import Connection

__all__ = [
    "EVENT_STREAM", "Headers", "Receive", "Request", "Send", "Settle", "drain", "event", "lost_call", "priming",
    "respond",
]  # fmt: skip

Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
Settle: TypeAlias = "Callable[[], None] | None"
Headers: TypeAlias = "list[tuple[bytes, bytes]]"

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

_LINGER_SECONDS = 1.0
_COME_BACK_SECONDS = 3
_LONGEST_ID = 200


@final
@dataclass(slots=True)
class Request:
    """A POST that passed the guard: its headers (names in lower case, each once), its whole body, and how to answer."""

    scope: dict[str, Any]
    headers: dict[bytes, bytes]
    body: bytes
    receive: Receive
    send: Send
    connection: Connection
    started: bool = False


async def respond(
    request: Request, status: int, body: bytes, headers: Headers | None = None, settle: Settle = None
) -> None:
    """Answers with JSON (or with nothing at all), as one packet; `settle` is called when it was delivered."""
    request.started = True
    fields: Headers = [(b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store"), *(headers or ())]
    if body:
        fields.append((b"content-type", b"application/json"))
    request.connection.cork()
    try:
        await request.send({"type": "http.response.start", "status": status, "headers": fields})
    finally:
        request.connection.uncork()
    request.connection.on_delivery(settle)
    await request.send({"type": "http.response.body", "body": body, "more_body": False})


async def drain(request: Request, status: int, text: str, headers: Headers) -> None:
    """Refuses a request whose body is not read: answers while the rest of the body runs into nothing.

    Without a reader the server's queue of ten events fills, and the connection would hang for ever. The client gets up
    to a second to hear the answer before it meets a closed connection.
    """
    request.started = True
    body = jsonrpc.error_body(None, jsonrpc.REFUSED, text)
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    read = trio.Event()

    async def swallow() -> None:
        while (message := await request.receive())["type"] == "http.request":
            if not message.get("more_body", False):
                read.set()
        read.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(swallow)
        await request.send({"type": "http.response.start", "status": status, "headers": fields})
        await request.send({"type": "http.response.body", "body": body, "more_body": True})
        with trio.move_on_after(_LINGER_SECONDS):
            await read.wait()
        # Inside this send hypercorn reports a disconnect to `swallow`, which must go on until the send is done.
        await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        nursery.cancel_scope.cancel()


def priming(request_id: jsonrpc.RequestId) -> bytes:
    """What a held call's stream begins with: an event that tells the client to come back when the stream breaks, and
    with which words. So a call whose server was killed does not wait for ever. Empty for an id that is no header."""
    word = jsonrpc.dump(request_id)
    if len(word) > _LONGEST_ID:
        return b""
    return f"id: {uuid4().hex}.{word}\nretry: {_COME_BACK_SECONDS * 1000}\ndata:\n\n".encode("ascii")


def lost_call(last_event_id: bytes) -> jsonrpc.RequestId | None:
    """The request whose stream broke, by what `priming` gave its client; None for other words."""
    _, _, word = last_event_id.partition(b".")
    try:
        request_id = json.loads(word)
    except ValueError:
        return None
    return request_id if type(request_id) in (int, str) else None


def event(body: bytes) -> bytes:
    """A message as one server-sent event."""
    return b"event: message\ndata: " + body + b"\n\n"
