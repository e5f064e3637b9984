"""A small site of routes and a socket, and clients that send exactly what a test says."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h11
import trio
from trio_websocket import ConnectionClosed, connect_websocket

from simplexmcp.web.answers import Answer, HttpRefusal, download, json_answer
from simplexmcp.web.serving import listen
from simplexmcp.web.site import Limits, Request, Site, serve_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from simplexmcp.web.socket import Socket

TOKEN = "right-token-of-the-test"
BODY = 1000
HANDSHAKE = {
    "upgrade": "websocket",
    "connection": "upgrade",
    "sec_websocket_version": "13",
    "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
}
STRICT = {
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "cache-control",
}


@dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def one(self, name: str) -> str:
        (value,) = self.all(name)
        return value


@dataclass
class Running:
    """A site that is served."""

    port: int
    end: trio.CancelScope
    got: list[Any]

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        return f"simplexmcp-test-{self.port}={TOKEN}"

    async def ask(
        self, method: str = "GET", target: str = "/", body: bytes | None = None, *,
        extra: Iterable[tuple[str, str]] = (), **changes: str | None,
    ) -> Reply:  # fmt: skip
        """One request on a connection of its own; a keyword changes a header (`_` for `-`), None leaves it out."""
        headers: dict[str, str | None] = {"host": self.host, "cookie": self.cookie}
        if method != "GET":
            headers["origin"] = f"http://{self.host}"
        if body is not None:
            headers["content-length"] = str(len(body))
        headers.update({name.replace("_", "-"): value for name, value in changes.items()})
        fields = [*((name, value) for name, value in headers.items() if value is not None), *extra]
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
        return await self.raw(head.encode() + (body or b""), method)

    async def raw(self, data: bytes, method: str = "GET") -> Reply:
        """The answer to these bytes."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        client.send(h11.EndOfMessage())
        with trio.fail_after(10):
            async with stream:
                with suppress(trio.BrokenResourceError):  # refused before all was sent: the answer is there
                    await stream.send_all(data)
                return await _reply(stream, client)

    @asynccontextmanager
    async def socket(self, path: str = "/stream", **changes: str | None) -> AsyncIterator[Any]:
        """A WebSocket of a tab."""
        headers: dict[str, str | None] = {"Origin": f"http://{self.host}", "Cookie": self.cookie, **changes}
        async with trio.open_nursery() as nursery:
            with trio.fail_after(10):
                ws = await connect_websocket(
                    nursery, "127.0.0.1", self.port, path, use_ssl=False, max_message_size=1 << 26,
                    extra_headers=[(name, value) for name, value in headers.items() if value is not None],
                )  # fmt: skip
            try:
                yield ws
            finally:
                await trio.aclose_forcefully(ws._stream)
                nursery.cancel_scope.cancel()

    async def refused(self, path: str = "/stream", **changes: str | None) -> int:
        """The status with which a handshake is refused."""
        headers = {"origin": f"http://{self.host}", **HANDSHAKE, **changes}
        return (await self.ask(target=path, **headers)).status


async def _reply(stream: trio.SocketStream, client: h11.Connection) -> Reply:
    status, headers, body = 0, [], b""
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = [(name.decode(), value.decode()) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            return Reply(status, headers, body)


async def closing(ws: Any) -> tuple[int, str]:
    """Code and reason with which a WebSocket is closed."""
    with trio.fail_after(10):
        while True:
            try:
                await ws.get_message()
            except ConnectionClosed as end:
                return (end.reason.code, end.reason.reason or "") if end.reason else (1006, "")


@asynccontextmanager
async def running(
    folder: Path | None = None, *, token: str | None = TOKEN, limits: Limits | None = None
) -> AsyncIterator[Running]:
    got: list[Any] = []

    async def take(request: Request) -> Answer:
        parts = [part async for part in request.chunks(BODY)]
        got.append(b"".join(parts))
        return json_answer({"size": len(got[-1]), "query": request.query})

    async def refuse(request: Request) -> Answer:
        raise HttpRefusal(409, "Not now.")

    async def fail(request: Request) -> Answer:
        raise LookupError("a defect")

    async def give(request: Request) -> Answer:
        assert folder is not None
        file = (folder / "file").open("rb")
        got.append(file)
        return download(file, (folder / "file").stat().st_size, 'a "name"\r\nx: y/ü.html')

    async def stream(tab: Socket, request: Request) -> None:
        try:
            await talk(tab, request)
        finally:
            got.append("left")

    async def talk(tab: Socket, request: Request) -> None:
        async for text in tab:
            if text == "flood":
                while True:
                    tab.send("x" * 10_000)
                    await trio.sleep(0)
            elif text == "defect":
                raise LookupError("a defect")
            elif text == "end":
                tab.close(4000, "as you wish")
            else:
                tab.send(f"{request.path}: {text}")

    site = Site(
        name="test", token=token, limits=limits or Limits(),
        assets={
            "index.html": Answer(body=b"<!doctype html>", kind=b"text/html; charset=utf-8"),
            "a.js": Answer(body=b"1", kind=b"text/javascript"),
        },
        pages={"/": "index.html", "/join": "index.html"},
        routes={
            ("POST", "/take"): take, ("GET", "/refuse"): refuse, ("GET", "/fail"): fail, ("GET", "/give"): give,
        },
        sockets={"/stream": stream},
    )  # fmt: skip
    end = trio.CancelScope()

    async def serve(*, task_status: trio.TaskStatus[int]) -> None:
        with end:
            await serve_site(site, listen(0), task_status=task_status)

    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve)
        yield Running(port, end, got)
        end.cancel()


def everything_logged(caplog: Any) -> str:
    return "\n".join(logging.Formatter().format(record) for record in caplog.records)
