"""The WebSocket link over real sockets: TLS, logins, and servers that are no core."""

from __future__ import annotations

import base64
import json
import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, serve_websocket

from simplexmcp.core import dial as dialing
from simplexmcp.core.websocket import open_websocket
from simplexmcp.errors import UserError
from tests.core.fakes import DATA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


async def _echo(request: WebSocketRequest) -> None:
    connection = await request.accept()
    try:
        while True:
            asked = json.loads(await connection.get_message())
            answer = {"corrId": asked["corrId"], "resp": {"type": "cmdOk", "echo": asked["cmd"]}}
            await connection.send_message(json.dumps(answer))
    except ConnectionClosed:
        return


@asynccontextmanager
async def websocket_server(handler: Any = _echo, certificate: str | None = None) -> AsyncIterator[int]:
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / certificate)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            serve = partial(
                serve_websocket, handler, "127.0.0.1", 0, context, max_message_size=2**30, receive_buffer_size=65536
            )
            server = await nursery.start(serve)
            yield server.port
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def tcp_server(handler: Callable[[trio.SocketStream], Awaitable[None]]) -> AsyncIterator[int]:
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, handler, 0, host="127.0.0.1")
            listeners = await nursery.start(serve)
            yield listeners[0].socket.getsockname()[1]
            nursery.cancel_scope.cancel()


async def _failure(url: str) -> str:
    with pytest.raises(UserError) as caught:
        async with open_websocket(url):
            pass
    assert caught.value.code == 1
    assert str(caught.value).isprintable()
    assert "SECRET" not in str(caught.value)
    return str(caught.value)


async def test_a_command_and_five_megabytes_pass_over_a_real_socket() -> None:
    async with websocket_server() as port, open_websocket(f"ws://127.0.0.1:{port}") as link:
        assert (await link.send("/user"))["echo"] == "/user"
        text = "/x " + "é" * (5 * 1024 * 1024)
        assert (await link.send(text))["echo"] == text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_the_path_is_the_one_of_the_address(host: str) -> None:
    paths: list[str] = []

    async def handler(request: WebSocketRequest) -> None:
        paths.append(request.path)
        assert dict(request.headers).get(b"authorization") is None
        await _echo(request)

    async with websocket_server(handler) as port, open_websocket(f"ws://{host}:{port}/agent?x=1") as link:
        await link.send("/user")
    assert paths == ["/agent?x=1"]


async def test_wss_sends_the_login_over_tls_with_a_verified_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[bytes] = []

    async def handler(request: WebSocketRequest) -> None:
        logins.append(dict(request.headers)[b"authorization"])
        await _echo(request)

    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "localhost.pem"))
    async with (
        websocket_server(handler, "localhost.pem") as port,
        open_websocket(f"wss://me:SECRET%2F@localhost:{port}") as link,
    ):
        assert (await link.send("/user"))["echo"] == "/user"
    assert logins == [b"Basic " + base64.b64encode(b"me:SECRET/")]


@pytest.mark.parametrize("trusted", [None, "elsewhere.pem"])
async def test_a_certificate_that_is_not_valid_is_one_clear_line(
    trusted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(_: WebSocketRequest) -> None:
        raise AssertionError("nothing is sent to it")

    certificate = trusted or "localhost.pem"
    if trusted:
        # Trusted, but made for another name.
        monkeypatch.setenv("SSL_CERT_FILE", str(DATA / trusted))
    async with websocket_server(handler, certificate) as port:
        assert "its certificate is not valid" in await _failure(f"wss://me:SECRET@localhost:{port}")


@pytest.mark.parametrize("status", [401, 403, 404, 502])
async def test_a_server_that_refuses_is_one_clear_line(status: int) -> None:
    async def handler(request: WebSocketRequest) -> None:
        await request.reject(status, body=b"SECRET")

    async with websocket_server(handler) as port:
        text = await _failure(f"ws://me:SECRET@127.0.0.1:{port}")
    assert f"HTTP {status}" in text
    assert ("user and password" in text) is (status in (401, 403))


async def _garbage(stream: trio.SocketStream) -> None:
    await stream.send_all(b"220 mail.example ESMTP\r\n\r\n")
    await trio.sleep_forever()


async def _closes(stream: trio.SocketStream) -> None:
    await stream.receive_some(1)


async def _plain_http(stream: trio.SocketStream) -> None:
    await stream.receive_some(10_000)
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    await trio.sleep_forever()


@pytest.mark.parametrize("handler", [_garbage, _closes, _plain_http], ids=lambda h: h.__name__)
async def test_a_server_that_is_no_websocket_is_one_clear_line(handler: Any) -> None:
    async with tcp_server(handler) as port:
        text = await _failure(f"ws://127.0.0.1:{port}")
    assert "WebSocket" in text
    assert f"simplex-chat -p {port}" in text


async def test_a_server_that_does_not_speak_tls_is_one_clear_line() -> None:
    async with tcp_server(_garbage) as port:
        assert "does not speak TLS" in await _failure(f"wss://me:SECRET@127.0.0.1:{port}")


async def test_a_port_where_nothing_listens_is_one_clear_line() -> None:
    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert f"No SimpleX core at ws://127.0.0.1:{port}: nothing listens there." in await _failure(
            f"ws://127.0.0.1:{port}"
        )


async def test_a_host_that_is_not_known_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown(trio.abc.HostnameResolver):
        async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
            raise trio.socket.gaierror(-2, "Name or service not known")

        async def getnameinfo(self, *_: Any) -> Any:
            raise AssertionError

    trio.socket.set_custom_hostname_resolver(Unknown())
    assert "the host is not known" in await _failure("wss://me:SECRET@core.invalid")


async def test_a_localhost_that_leads_to_another_machine_is_not_spoken_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        assert await stream.receive_some(1) == b"", "nothing is sent to it"

    monkeypatch.setattr(dialing, "is_loopback", lambda _: False)
    async with tcp_server(handler) as port:
        assert "does not lead to this machine" in await _failure(f"ws://localhost:{port}")


async def test_a_core_that_restarts_is_found_again() -> None:
    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def core(scope: trio.CancelScope, task_status: trio.TaskStatus[None]) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve_websocket, _echo, "127.0.0.1", port, None))
                task_status.started()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            first, second = trio.CancelScope(), trio.CancelScope()
            await nursery.start(core, first)
            async with open_websocket(f"ws://127.0.0.1:{port}") as link:
                assert (await link.send("/user"))["echo"] == "/user"
                first.cancel()
                assert (await link.events.receive())["type"] == "linkDown"
                await nursery.start(core, second)
                assert (await link.events.receive())["type"] == "linkUp"
                assert (await link.send("/user"))["echo"] == "/user"
            second.cancel()
