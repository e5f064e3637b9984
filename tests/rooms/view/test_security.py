"""Who may read and write through the page's server: this computer's programs and the page itself, no other page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.rooms.view.view import viewing
from tests.web.site import HANDSHAKE, STRICT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rooms.client import InProcess
    from tests.rooms.view.view import View

POST = json.dumps({"room": 1, "name": "ann", "body": "forged"}).encode()


@pytest.fixture(autouse=True)
def _agent(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content="secret")


async def written(view: View) -> bool:
    return len(await view.rows(1)) > 1


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example:{port}", "[::2]",
             "127.0.0.1@evil.example", "127.0.0.1:{port}:80", "10.0.0.1:{port}", "0.0.0.0:{port}", ""]
)  # fmt: skip
async def test_a_name_that_a_foreign_server_bound_to_this_computer_reads_and_writes_nothing(
    path: Path, host: str
) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        host = host.format(port=view.port)
        for target in ("/", "/api/rooms", "/api/messages?room=1", "/assets/view.js"):
            reply = await view.ask("GET", target, host=host)
            assert reply.status == 403
            assert b"secret" not in reply.body
        assert (await view.post_raw("post", POST, host=host, origin=f"http://{host}"))[0] == 403
        assert await view.refused(host=host, origin=f"http://{host}") == 403
        assert not await written(view)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST", "localhost:9000"]
)
async def test_this_computer_and_a_forwarded_port_of_it_are_served(path: Path, host: str) -> None:
    async with viewing(path) as view:
        host = host.format(port=view.port)
        assert (await view.ask("GET", "/api/rooms", host=host)).status == 200
        assert (await view.post_raw("join", POST, host=host, origin=f"http://{host}"))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:{port}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1:{port}.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
async def test_another_page_cannot_write_whatever_form_its_request_has(
    path: Path, headers: dict[str, str], kind: str
) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        sent = {name: value.format(port=view.port) for name, value in headers.items()}
        for to in ("post", "delete-room"):
            status, answer = await view.post_raw(to, POST, content_type=kind, **sent)
            assert (status, "error" in answer) == (403, True)
        assert not await written(view)


async def test_another_page_hears_nothing_of_the_stream(path: Path) -> None:
    async with viewing(path) as view:
        assert await view.refused(origin="https://evil.example") == 403
        assert await view.refused(origin=None) == 403
        assert (await view.ask(target="/stream", origin="http://localhost:1", **HANDSHAKE)).status == 403


async def test_every_answer_forbids_frames_scripts_of_others_and_copies(path: Path) -> None:
    async with viewing(path) as view:
        for reply in (
            await view.ask("GET", "/"),
            await view.ask("GET", "/index.html"),
            await view.ask("GET", "/assets/view.css"),
            await view.ask("GET", "/api/rooms"),
            await view.ask("GET", "/nothing"),
            await view.ask("GET", "/", host="evil.example"),
            await view.ask("POST", "/api/join", b"{"),
        ):
            assert {name for name, _ in reply.headers} >= STRICT
            policy = reply.one("content-security-policy")
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert reply.one("x-frame-options") == "DENY"
            assert reply.one("cache-control") == "no-store"


async def test_texts_of_others_are_json_and_never_a_page(path: Path, alice: InProcess) -> None:
    alice.call("post_message", content="<script>alert(1)</script>")
    async with viewing(path) as view:
        for target in ("/api/messages?room=1", "/api/search?room=1&q=script", "/api/room?id=<script>"):
            reply = await view.ask("GET", target)
            assert reply.one("content-type") == "application/json"
            assert reply.one("x-content-type-options") == "nosniff"


async def test_the_address_puts_nothing_into_the_page(path: Path) -> None:
    async with viewing(path) as view:
        plain = await view.ask("GET", "/")
        for target in ("/?q=<script>alert(1)</script>", "/index.html?%3Cimg%20src=x%20onerror=alert(1)%3E"):
            assert (await view.ask("GET", target)).body == plain.body
        reply = await view.ask("GET", "/%3Cscript%3Ealert(1)%3C/script%3E")
        assert (reply.status, b"<script>" in reply.body) == (404, False)


async def test_files_outside_of_the_assets_are_not_served(path: Path) -> None:
    async with viewing(path) as view:
        for target in (
            "/assets/../server.py",
            "/assets/%2e%2e/server.py",
            "/assets//etc/passwd",
            "/assets/",
            "/../chat.db",
        ):
            assert (await view.ask("GET", target)).status in (400, 404)


async def test_with_a_token_nothing_is_read_or_written_without_it(path: Path) -> None:
    async with viewing(path, token="the-right-token") as view:
        cookie_of_it = f"simplexmcp-rooms-{view.port}=the-right-token"
        for cookie in (None, f"simplexmcp-rooms-{view.port}=wrong", "simplexmcp-rooms-1=the-right-token"):
            for target in ("/", "/api/rooms", "/api/messages?room=1", "/api/rooms?token=wrong"):
                reply = await view.ask("GET", target, cookie=cookie)
                assert (reply.status, b"secret" in reply.body) == (401, False)
            assert (await view.post_raw("join", POST, cookie=cookie))[0] == 401
            assert await view.refused(cookie=cookie) == 401
        first = await view.ask("GET", "/?token=the-right-token", cookie=None)
        assert (first.status, first.one("location")) == (303, "/")
        assert first.one("set-cookie") == f"{cookie_of_it}; Path=/; HttpOnly; SameSite=Strict"
        assert (await view.ask("GET", "/api/rooms", cookie=cookie_of_it)).status == 200
        assert (await view.post_raw("join", POST, cookie=cookie_of_it))[0] == 200


async def test_a_request_with_two_hosts_or_origins_is_refused(path: Path) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        own = f"http://{view.host}"
        for extra in ([("origin", "https://evil.example")], [("host", "evil.example")]):
            reply = await view.ask("POST", "/api/post", POST, extra=extra, origin=own)
            assert reply.status == 400
        assert not await written(view)
