"""The base of the pages on 127.0.0.1: who may ask, what every answer says, bodies, files and tabs."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import trio

from simplexmcp.web.site import Limits
from simplexmcp.web.static import load_assets
from tests.web.site import BODY, HANDSHAKE, STRICT, TOKEN, Reply, Running, closing, everything_logged, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not condition():
            await trio.sleep(0.005)


async def upgraded(site: Running) -> trio.SocketStream:
    """The bare connection of a tab."""
    stream, head = await handshake(site)
    assert head.startswith(b"HTTP/1.1 101 ")
    return stream


async def handshake(site: Running, **more: str) -> tuple[trio.SocketStream, bytes]:
    """A bare connection that asked to be a tab's, and the answer."""
    stream = await trio.open_tcp_stream("127.0.0.1", site.port)
    headers = {"host": site.host, "origin": f"http://{site.host}", "cookie": site.cookie, **HANDSHAKE, **more}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    await stream.send_all(f"GET /stream HTTP/1.1\r\n{lines}\r\n".encode())
    return stream, await stream.receive_some()


async def send_forever(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"x" * 65_536)


def is_strict(reply: Reply) -> bool:
    names = {name for name, _ in reply.headers}
    policies = reply.all("content-security-policy")
    return (
        names >= STRICT
        and any("default-src 'none'" in policy and "frame-ancestors 'none'" in policy for policy in policies)
        and reply.one("x-frame-options") == "DENY"
        and reply.one("x-content-type-options") == "nosniff"
        and reply.one("cache-control") == "no-store"
        and reply.one("referrer-policy") == "no-referrer"
    )


async def test_a_page_allows_nothing_but_what_comes_with_it() -> None:
    async with running() as site:
        reply = await site.ask()
    assert reply.status == 200
    assert reply.one("content-type") == "text/html; charset=utf-8"
    policy = reply.one("content-security-policy")
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert is_strict(reply)


@pytest.mark.parametrize(
    ("status", "method", "target", "changes"),
    [
        (404, "GET", "/nothing", {}),
        (404, "GET", "/assets/../secrets", {}),
        (405, "POST", "/", {"content_length": "0"}),
        (401, "GET", "/", {"cookie": None}),
        (421, "GET", "/", {"host": "evil.example"}),
        (403, "POST", "/take", {"origin": "http://evil.example", "content_length": "0"}),
        (409, "GET", "/refuse", {}),
        (500, "GET", "/fail", {}),
        (400, "GET", "/", {"host": "a b"}),
        (404, "GET", "/stream", {}),
    ],
)
async def test_every_refusal_has_the_strict_headers_too(
    status: int, method: str, target: str, changes: dict[str, str | None]
) -> None:
    async with running() as site:
        reply = await site.ask(method, target, **changes)
        assert reply.status == (status if changes.get("host") != "a b" else reply.status)
        assert 400 <= reply.status < 600
        assert is_strict(reply)
        assert (await site.ask()).status == 200


async def test_what_the_server_below_refuses_by_itself_is_strict_too() -> None:
    async with running() as site:
        for nonsense in (
            b"NONSENSE\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ):
            reply = await site.raw(nonsense)
            assert reply.status in (400, 421), nonsense
            assert is_strict(reply), nonsense


# Who may ask


async def test_without_the_token_a_page_only_says_where_its_address_is() -> None:
    async with running() as site:
        for changes in ({"cookie": None}, {"cookie": site.cookie + "x"}, {"cookie": "simplexmcp-test-1=" + TOKEN}):
            reply = await site.ask(**changes)
            assert reply.status == 401
            assert b"address" in reply.body
            assert TOKEN.encode() not in reply.body
        for token in ("wrong", "", TOKEN[:-1], "%ff%00", quote("\ud800", errors="surrogatepass")):
            assert (await site.ask(target=f"/?token={token}", cookie=None)).status == 401


async def test_the_address_with_the_token_sets_a_cookie_and_leads_to_the_address_without_it() -> None:
    async with running() as site:
        target = f"/join?link={quote('https://smp.example/g#K&x=1')}&token={TOKEN}&a=b"
        reply = await site.ask(target=target, cookie=None, sec_fetch_site="none", sec_fetch_mode="navigate")
        assert reply.status == 303
        assert reply.one("location") == "/join?link=https%3A%2F%2Fsmp.example%2Fg%23K%26x%3D1&a=b"
        cookie = reply.one("set-cookie")
        assert cookie.partition(";")[0] == site.cookie
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert is_strict(reply)
        assert (await site.ask(target=reply.one("location"), cookie=f"other=1; {site.cookie}; z=2")).status == 200


async def test_after_a_click_in_another_page_it_leads_on_by_itself_as_the_browser_would_withhold_the_cookie() -> None:
    async with running() as site:
        target = f"/join?link=%22%3E%3Cscript%3E&token={TOKEN}"
        reply = await site.ask(target=target, cookie=None, sec_fetch_site="cross-site", sec_fetch_mode="navigate")
        assert reply.status == 200
        assert reply.one("set-cookie").startswith(site.cookie)
        assert b"0; url=/join?link=%22%3E%3Cscript%3E" in reply.body
        assert b"<script>" not in reply.body


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example", "/%2f/evil.example", "/\\evil.example"])
async def test_the_way_on_never_leaves_the_site(path: str) -> None:
    async with running() as site:
        reply = await site.ask(target=f"{path}?token={TOKEN}", cookie=None)
        assert reply.status == 303
        location = reply.one("location")
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


async def test_a_foreign_name_that_leads_here_is_refused_even_with_the_cookie() -> None:
    async with running() as site:
        for host in (
            "evil.example",
            f"evil.example:{site.port}",
            "127.0.0.1",
            "127.0.0.1:1",
            f"0.0.0.0:{site.port}",
            f"127.0.0.1:{site.port}@evil",
            "",
        ):
            assert (await site.ask(host=host)).status in (400, 421), host
        for host in (
            f"127.0.0.1:{site.port}",
            f"localhost:{site.port}",
            f"LOCALHOST:{site.port}",
            f"[::1]:{site.port}",
        ):
            assert (await site.ask(host=host)).status == 200, host


async def test_a_header_that_decides_may_not_come_twice() -> None:
    async with running() as site:
        assert (await site.ask(extra=[("host", site.host)])).status == 400
        twice = [("origin", "http://evil.example")]
        assert (await site.ask("POST", "/take", b"", extra=twice)).status == 400


async def test_what_changes_something_needs_the_own_origin() -> None:
    async with running() as site:
        assert (await site.ask("POST", "/take", b"x")).status == 200
        for origin in (
            None,
            "null",
            "http://evil.example",
            f"https://{site.host}",
            f"http://localhost:{site.port}",
            f"http://127.0.0.1:{site.port + 1}",
        ):
            assert (await site.ask("POST", "/take", b"x", origin=origin)).status == 403, origin
        assert site.got == [b"x"]


async def test_pages_of_other_ports_and_sites_get_nothing_to_embed() -> None:
    async with running() as site:
        for sender in ("same-site", "cross-site"):
            for mode in ("no-cors", "cors", "websocket"):
                assert (await site.ask(target="/assets/a.js", sec_fetch_site=sender, sec_fetch_mode=mode)).status == 403
        assert (
            await site.ask(target="/assets/a.js", sec_fetch_site="same-origin", sec_fetch_mode="no-cors")
        ).status == 200


async def test_a_site_without_a_token_has_the_same_rules_of_host_and_origin() -> None:
    async with running(token=None) as site:
        assert (await site.ask(cookie=None)).status == 200
        assert (await site.ask(host="evil.example", cookie=None)).status == 421
        assert (await site.ask("POST", "/take", b"", cookie=None, origin="http://evil.example")).status == 403
        assert await site.refused(cookie=None, origin="http://evil.example") == 403
        async with site.socket(Cookie=None) as ws:
            await ws.send_message("hello")
            assert await ws.get_message() == "/stream: hello"
        # It has no token that could be said: the word is the page's own.
        assert (await site.ask(target="/?token=x", cookie=None)).status == 200


async def test_http_2_is_not_spoken() -> None:
    async with running() as site:
        stream = await trio.open_tcp_stream("127.0.0.1", site.port)
        async with stream:
            await stream.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            with trio.move_on_after(0.5):
                while await stream.receive_some():
                    pass
        assert (await site.ask()).status == 200


# Bodies and files


async def test_a_body_is_bounded_whether_it_says_its_length_or_not() -> None:
    async with running() as site:
        assert (await site.ask("POST", "/take", b"x" * BODY)).body == b'{"size":1000,"query":{}}'
        assert (await site.ask("POST", "/take", b"x" * (BODY + 1))).status == 413
        chunk = b"%x\r\n%s\r\n" % (BODY, b"x" * BODY)
        head = f"POST /take HTTP/1.1\r\nhost: {site.host}\r\ncookie: {site.cookie}\r\norigin: http://{site.host}\r\n"
        reply = await site.raw(
            head.encode() + b"transfer-encoding: chunked\r\n\r\n" + chunk * 300 + b"0\r\n\r\n", "POST"
        )
        assert reply.status == 413
        assert b"1,000 bytes" in reply.body
        assert site.got == [b"x" * BODY]


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 30, "0x10"])
async def test_a_strange_length_is_refused(length: str) -> None:
    async with running() as site:
        reply = await site.ask("POST", "/take", content_length=length)
        assert reply.status in (400, 413)
        assert not site.got


async def test_a_large_body_that_nobody_wants_is_answered_and_its_connection_ends() -> None:
    async with running() as site:
        reply = await site.ask("POST", "/take", b"x" * 5_000_000, origin="http://evil.example")
        assert reply.status == 403


async def test_a_body_that_stops_coming_is_given_up(autojump_clock: object) -> None:
    async with running(limits=Limits(stall=5, grace=0)) as site:
        reply = await site.ask("POST", "/take", content_length="10")
        assert reply.status == 408


async def test_a_defect_is_answered_and_logged_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as site:
        reply = await site.ask(target="/fail")
        assert reply.status == 500
        assert b"defect" in reply.body
        assert b"LookupError" not in reply.body
        assert (await site.ask(target="/refuse")).body == b'{"error":"Not now."}'
    assert "LookupError: a defect" in everything_logged(caplog)


async def test_a_file_is_saved_and_never_shown_and_its_name_cannot_add_headers(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "file").write_bytes(content)
    async with running(tmp_path) as site:
        reply = await site.ask(target="/give")
        assert reply.body == content
        assert reply.one("content-type") == "application/octet-stream"
        assert (
            reply.one("content-disposition")
            == "attachment; filename*=UTF-8''a%20%22name%22%0D%0Ax%3A%20y%2F%C3%BC.html"
        )
        assert not reply.all("x")
        assert any("sandbox" in policy for policy in reply.all("content-security-policy"))
        assert is_strict(reply)
        await until(lambda: site.got[0].closed)


async def test_a_file_is_closed_when_its_reader_leaves(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(20_000_000))
    async with running(tmp_path) as site:
        stream = await trio.open_tcp_stream("127.0.0.1", site.port)
        await stream.send_all(f"GET /give HTTP/1.1\r\nhost: {site.host}\r\ncookie: {site.cookie}\r\n\r\n".encode())
        await stream.receive_some(1000)
        await trio.aclose_forcefully(stream)
        await until(lambda: site.got[0].closed)


# Tabs


async def test_a_tab_talks_both_ways_and_its_end_is_noticed() -> None:
    async with running() as site:
        async with site.socket() as ws:
            await ws.send_message("grüße")
            assert await ws.get_message() == "/stream: grüße"
            await ws.send_message("end")
            assert await closing(ws) == (4000, "as you wish")
        async with site.socket() as ws:
            await ws.send_message("again")
            await ws.get_message()
        await until(lambda: len(site.got) == 2)


@pytest.mark.parametrize(
    ("status", "path", "changes"),
    [
        (401, "/stream", {"cookie": None}),
        (403, "/stream", {"origin": "http://evil.example"}),
        (403, "/stream", {"origin": None}),
        (403, "/stream", {"origin": "null"}),
        (403, "/stream", {"sec_fetch_site": "same-site", "sec_fetch_mode": "websocket"}),
        (404, "/other", {}),
        (404, "/", {}),
        (404, "/take", {}),
    ],
)
async def test_a_tab_of_a_stranger_is_refused_before_it_is_one(
    status: int, path: str, changes: dict[str, str | None]
) -> None:
    async with running() as site:
        assert await site.refused(path, **changes) == status
        assert not site.got


async def test_frames_that_are_no_text_or_too_large_end_the_tab_only() -> None:
    async with running(limits=Limits(frame=1000)) as site, site.socket() as other:
        async with site.socket() as ws:
            await ws.send_message(b"binary")
            assert (await closing(ws))[0] == 1003
        async with site.socket() as ws:
            await ws.send_message("x" * 5000)
            assert (await closing(ws))[0] == 1009
        await other.send_message("still here")
        assert await other.get_message() == "/stream: still here"


async def test_a_tab_that_goes_on_after_a_frame_that_is_too_large_is_cut_off() -> None:
    async with running(limits=Limits(frame=1000)) as site:
        async with await upgraded(site) as stream:
            await stream.send_all(b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"\x00\x00\x00\x00")
            with trio.fail_after(20), pytest.raises(trio.BrokenResourceError):
                await send_forever(stream)
        await until(lambda: site.got == ["left"])


async def test_frames_are_never_compressed_so_that_a_small_one_cannot_grow() -> None:
    async with running() as site:
        stream, head = await handshake(site, sec_websocket_extensions="permessage-deflate")
        async with stream:
            assert head.startswith(b"HTTP/1.1 101 ")
            assert b"deflate" not in head


@pytest.mark.parametrize(
    "frame",
    [
        b"\x81\x05hello",  # not masked
        b"\xf1\x80\x00\x00\x00\x00",  # reserved bits
        b"\x83\x80\x00\x00\x00\x00",  # an unknown kind
        b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",  # a length of 2^63
        b"\x81\x82\x00\x00\x00\x00\xff\xfe",  # no UTF-8
        b"\x80\x80\x00\x00\x00\x00",  # goes on with nothing
        b"\x88\x81\x00\x00\x00\x00x",  # a damaged end
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_frames_end_the_tab_only(frame: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with running() as site:
        stream = await upgraded(site)
        async with stream:
            await stream.send_all(frame)
            await stream.send_eof()
            with trio.fail_after(20):
                try:
                    while await stream.receive_some():
                        pass
                except trio.BrokenResourceError:
                    pass
        async with site.socket() as ws:
            await ws.send_message("still here")
            assert await ws.get_message() == "/stream: still here"
    assert TOKEN not in everything_logged(caplog)


async def test_a_tab_that_does_not_read_is_cut_off_and_holds_up_nobody() -> None:
    async with running(limits=Limits(queue_frames=50, queue_size=400_000)) as site, site.socket() as other:
        stream = await upgraded(site)
        async with stream:
            await stream.send_all(b"\x81\x85\x00\x00\x00\x00flood")
            await other.send_message("quick")
            assert await other.get_message() == "/stream: quick"
            await until(lambda: site.got == ["left"])
            await other.send_message("still quick")
            assert await other.get_message() == "/stream: still quick"


async def test_a_defect_ends_the_tab_only_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as site:
        async with site.socket() as ws:
            await ws.send_message("defect")
            assert (await closing(ws))[0] == 1011
        assert (await site.ask()).status == 200
    assert "LookupError: a defect" in everything_logged(caplog)


async def test_when_the_server_ends_tabs_are_told_and_it_waits_for_nobody() -> None:
    async with running() as site, site.socket() as ws:
        await ws.send_message("here")
        await ws.get_message()
        idle = await trio.open_tcp_stream("127.0.0.1", site.port)
        site.end.cancel()
        assert await closing(ws) == (1001, "The server ended.")
        with trio.fail_after(20):
            assert not await idle.receive_some()
        await idle.aclose()


async def test_too_many_connections_are_answered_that_it_is_busy() -> None:
    async with running(limits=Limits(connections=2)) as site, site.socket(), site.socket():
        assert (await site.ask()).status == 503


async def test_the_token_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running() as site:
        await site.ask(target=f"/?token={TOKEN}", cookie=None)
        await site.ask(target=f"/fail?token={TOKEN}x")
        await site.refused(f"/other?token={TOKEN}")
        async with site.socket() as ws:
            await ws.send_message("defect")
            await closing(ws)
    ours = [record for record in caplog.records if record.name.startswith(("simplexmcp", "hypercorn"))]
    assert ours
    assert not any(TOKEN in logging.Formatter().format(record) for record in ours)


def test_the_common_look_is_part_of_every_site() -> None:
    assert load_assets()["base.css"].kind == b"text/css; charset=utf-8"
    phone = load_assets("simplexmcp.phone")
    assert {"base.css", "index.html"} <= phone.keys()
