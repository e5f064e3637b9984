"""Who may speak to the endpoint: each refusal, its order, and that a refused body does no harm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.listener import Limits
from simplexmcp.listener.replies import Request, drain
from tests.listener.helpers import TOKEN, Client, FakeTools, listening, living, rpc, tools_call, until_living

if TYPE_CHECKING:
    from trio.testing import MockClock

PING = json.dumps(rpc("ping")).encode()


async def status_of(client: Client, body: bytes = PING, **kwargs: object) -> int:
    await client.send(body, **kwargs)  # type: ignore[arg-type]
    return (await client.reply()).status


async def test_a_good_request_passes_and_its_connection_is_used_again() -> None:
    async with listening() as server, server.client() as client:
        for _ in range(3):
            reply = await client.ask(rpc("ping"))
            assert (reply.status, reply.json) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1.:{port}",
        "localhost.:{port}",
        "a@127.0.0.1:{port}",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "127.0.0.1:{port}, evil.example",
    ],
)
async def test_another_host_is_refused_before_the_token_is_looked_at(host: str) -> None:
    async with listening() as server, server.client() as client:
        host = host.format(port=server.port)
        assert await status_of(client, host=host, authorization="Bearer wrong") == 421
        assert server.tools.started == []


async def test_both_names_of_this_computer_are_its_host() -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, host=f"localhost:{server.port}") == 200
        assert await status_of(client, host=f"LOCALHOST:{server.port}") == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://127.0.0.1:{port}/",
        "",
    ],
)
async def test_a_foreign_origin_is_refused(origin: str) -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, origin=origin.format(port=server.port)) == 403


async def test_a_browser_that_hides_its_origin_is_refused() -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, extra=[("sec-fetch-site", "cross-site")]) == 403


async def test_an_origin_that_comes_twice_is_refused() -> None:
    async with listening() as server, server.client() as client:
        own = f"http://127.0.0.1:{server.port}"
        assert await status_of(client, origin=own) == 200
        assert await status_of(client, origin=own, extra=[("origin", own)]) == 403


async def test_its_own_origin_passes_and_no_answer_allows_pages_of_others() -> None:
    async with listening() as server, server.client() as client:
        for method, origin in (("POST", f"http://127.0.0.1:{server.port}"), ("OPTIONS", "https://evil.example")):
            await client.send(PING, method=method, origin=origin)
            reply = await client.reply()
            assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"bearer {TOKEN}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer  {TOKEN}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
    ],
)
async def test_only_the_exact_token_opens(value: str | None) -> None:
    async with listening() as server, server.client() as client:
        await client.send(PING, authorization=value)
        reply = await client.reply()
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert b"list" not in reply.body
        assert TOKEN.encode() not in reply.body


async def test_a_token_that_is_no_text_is_only_wrong() -> None:
    async with listening() as server, server.client() as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.head(authorization=None, content_length="0"))
        await client.stream.send_all(
            f"POST /mcp HTTP/1.1\r\n{head}".encode() + b"authorization: Bearer \xc3\xa9\r\n\r\n"
        )
        assert (await client.begin_of(b"POST"))[0] == 401


async def test_two_hosts_are_no_host() -> None:
    async with listening() as server, server.client() as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.head(content_length="0"))
        await client.stream.send_all(f"POST /mcp HTTP/1.1\r\nhost: evil.example\r\n{head}\r\n".encode())
        assert (await client.begin_of(b"POST"))[0] == 400


async def test_a_token_that_comes_twice_is_refused_even_when_both_are_right() -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, extra=[("authorization", f"Bearer {TOKEN}")]) == 401


@pytest.mark.parametrize("name", ["content-type", "mcp-session-id", "mcp-protocol-version"])
async def test_a_deciding_header_that_comes_twice_is_refused(name: str) -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, mcp_session_id="a", extra=[(name, "a")]) == 400


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/mcp/",
        "/MCP",
        "/%6dcp",
        "/register",
        "/.well-known/oauth-protected-resource/mcp",
        "http://evil.example/mcp",
    ],
)
async def test_other_paths_are_not_found_also_without_a_token(target: str) -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, target=target, authorization=None) == 404


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH"])
async def test_only_post_is_served(method: str) -> None:
    async with listening() as server, server.client() as client:
        await client.send(method=method)
        reply = await client.reply()
        assert (reply.status, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json; charset=utf-16",
        "text/plain; application/json",
    ],
)
async def test_a_body_that_is_not_declared_json_is_refused(kind: str | None) -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, content_type=kind) == 415


async def test_an_encoded_body_is_refused() -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, content_encoding="gzip") == 415


async def test_json_with_its_charset_passes() -> None:
    async with listening() as server, server.client() as client:
        assert await status_of(client, content_type='Application/JSON; charset="UTF-8"') == 200


async def test_until_it_is_ready_every_call_is_answered_503() -> None:
    ready = False
    async with listening(ready=lambda: ready) as server, server.client() as client:
        reply = await client.ask(tools_call("list"))
        assert (reply.status, reply.json["id"]) == (503, None)
        assert "not ready" in reply.json["error"]["message"]
        assert int(reply.headers["retry-after"]) > 0
        ready = True
        assert (await client.ask(tools_call("list"))).status == 200
        assert server.tools.started == ["list"]


async def test_a_declared_size_over_the_limit_is_refused_before_it_is_sent() -> None:
    async with listening(limits=Limits(body=1000)) as server, server.client() as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.head(content_length="1001"))
        await client.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
        assert (await client.begin_of(b"POST"))[0] == 413


async def test_a_chunked_body_is_counted_while_it_comes() -> None:
    async with listening(limits=Limits(body=1000)) as server, server.client() as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.head(transfer_encoding="chunked"))
        await client.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
        for _ in range(101):
            await client.stream.send_all(b"a\r\n0123456789\r\n")
        assert (await client.begin_of(b"POST"))[0] == 413


async def test_a_body_of_exactly_the_limit_passes() -> None:
    async with listening(limits=Limits(body=1000)) as server, server.client() as client:
        assert await status_of(client, PING + b" " * (1000 - len(PING))) == 200
        assert await status_of(client, PING + b" " * (1001 - len(PING))) == 413


@pytest.mark.parametrize("token", ["wrong", TOKEN])
async def test_large_uploads_that_are_refused_leave_no_connection_behind(token: str) -> None:
    async def upload(chunked: bool) -> None:
        async with server.client() as client:
            kind = {"transfer_encoding": "chunked"} if chunked else {"content_length": str(20 << 20)}
            headers = client.head(authorization=f"Bearer {token}", **kind)
            head = "".join(f"{name}: {value}\r\n" for name, value in headers)
            part = b"x" * 65536
            part = b"10000\r\n" + part + b"\r\n" if chunked else part
            with trio.fail_after(10):
                try:
                    await client.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + part * 320)
                    if chunked:
                        await client.stream.send_all(b"0\r\n\r\n")
                    assert (await client.begin_of(b"POST"))[0] == (413 if token == TOKEN else 401)
                except trio.BrokenResourceError:
                    # The answer may be lost to a client that is still sending; the connection is closed then.
                    return

    async with listening() as server, server.client() as client:
        assert await status_of(client) == 200
        tasks = living()
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(upload, number % 2 == 0)
        await until_living(tasks)
        assert await status_of(client) == 200


async def test_while_a_refusal_is_sent_the_body_runs_on() -> None:
    """hypercorn's queue takes ten events: its last send waits for room there."""

    async def receive() -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        taken.append(len(taken))
        if len(taken) == 40:
            room.set()
        return {"type": "http.request", "body": b"x", "more_body": len(taken) < 60}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await room.wait()
        sent.append(message)

    taken: list[int] = []
    sent: list[dict[str, Any]] = []
    room = trio.Event()
    request = Request({}, {}, b"", receive, send, None)  # type: ignore[arg-type]
    with trio.fail_after(20):
        await drain(request, 401, "no", [])
    assert [message.get("more_body") for message in sent] == [None, True, False]
    assert sent[0]["status"] == 401


async def test_a_body_that_does_not_come_is_given_up_in_time(autojump_clock: MockClock) -> None:
    async with listening() as server, server.client() as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in client.head(content_length="100"))
        await client.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n{{".encode())
        with trio.fail_after(31):
            assert (await client.begin_of(b"POST", seconds=31))[0] == 408
        assert await client.closed()


async def test_bodies_of_all_clients_together_are_bounded() -> None:
    async with listening(limits=Limits(buffered=1000)) as server, server.client() as slow, server.client() as other:
        head = "".join(f"{name}: {value}\r\n" for name, value in slow.head(content_length="2000"))
        await slow.stream.send_all(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + b" " * 980)
        await server.tools.until(lambda: True)
        with trio.fail_after(20):
            while await status_of(other) == 200:
                await trio.lowlevel.checkpoint()
        await trio.aclose_forcefully(slow.stream)
        with trio.fail_after(20):
            while await status_of(other) != 200:
                await trio.lowlevel.checkpoint()


async def test_a_websocket_is_refused() -> None:
    async with listening() as server, server.client() as client:
        await client.stream.send_all(
            f"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert (await client.begin_of(b"GET"))[0] == 403


async def test_http_2_by_prior_knowledge_is_refused() -> None:
    import h2.connection
    import h2.events

    async with listening() as server, server.client() as client:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        connection.send_headers(
            1,
            [
                (":method", "POST"),
                (":path", "/mcp"),
                (":scheme", "http"),
                (":authority", f"127.0.0.1:{server.port}"),
                ("authorization", f"Bearer {TOKEN}"),
                ("content-type", "application/json"),
            ],
        )
        connection.send_data(1, PING, end_stream=True)
        await client.stream.send_all(connection.data_to_send())
        with trio.fail_after(20):
            while True:
                for event in connection.receive_data(await client.stream.receive_some(65536)):
                    if isinstance(event, h2.events.ResponseReceived):
                        assert (b":status", b"505") in [(bytes(a), bytes(b)) for a, b in event.headers]
                        return


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00" * 50,
        b"GET\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"POST /mcp HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /\xc3\xa9 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 40,
        b"POST /%ff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"a" * 100_000,
    ],
)
async def test_bytes_that_are_no_request_end_only_their_own_connection(noise: bytes) -> None:
    async with listening() as server:
        async with server.client() as odd:
            try:
                await odd.stream.send_all(noise)
                await odd.stream.send_eof()
            except trio.BrokenResourceError:
                assert len(noise) > 1000
            assert await odd.closed()
        async with server.client() as client:
            assert await status_of(client) == 200


async def test_more_connections_than_allowed_are_turned_away_with_an_answer() -> None:
    async with listening(limits=Limits(connections=2)) as server, server.client() as one, server.client() as two:
        assert [await status_of(one), await status_of(two)] == [200, 200]
        async with server.client() as three:
            assert (await three.begin_of(b"GET"))[0] == 503
        await trio.aclose_forcefully(two.stream)
        with trio.fail_after(20):
            while True:
                async with server.client() as again:
                    try:
                        if await status_of(again) == 200:
                            return
                    except (trio.BrokenResourceError, ConnectionError):
                        await trio.lowlevel.checkpoint()


async def test_a_defect_in_the_endpoint_is_logged_and_answered_500(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_body: bytes) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("simplexmcp.listener.jsonrpc.read_message", broken)
    async with listening() as server, server.client() as client:
        reply = await client.ask(rpc("ping"))
        assert (reply.status, reply.json["error"]["message"]) == (500, "Internal error.")
    assert "a defect" in caplog.text
    assert TOKEN not in caplog.text


async def test_nothing_is_written_to_the_log_for_refused_and_served_requests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with listening(FakeTools()) as server, server.client() as client:
        await status_of(client, authorization=f"Bearer {TOKEN}x")
        await client.ask(tools_call("list"))
    assert TOKEN not in caplog.text
