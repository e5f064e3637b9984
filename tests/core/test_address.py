"""What `--core` may say of a WebSocket, and that its password is never shown."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.core.address import WebSocketAddress, is_loopback, websocket_address
from simplexmcp.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD: dict[str, tuple[str, int, str, bool, str]] = {
    "ws://127.0.0.1:5225": ("127.0.0.1", 5225, "/", False, "ws://127.0.0.1:5225"),
    "ws://127.0.0.1:5225/": ("127.0.0.1", 5225, "/", False, "ws://127.0.0.1:5225"),
    "ws://localhost:80/agent": ("localhost", 80, "/agent", False, "ws://localhost/agent"),
    "ws://[::1]:5225/agent": ("::1", 5225, "/agent", False, "ws://[::1]:5225/agent"),
    "ws://127.9.9.9:1/a?b=SECRET": ("127.9.9.9", 1, "/a?b=SECRET", False, "ws://127.9.9.9:1/a"),
    "wss://core.example": ("core.example", 443, "/", True, "wss://core.example"),
    "wss://me:SECRET@core.example:8443/x": ("core.example", 8443, "/x", True, "wss://core.example:8443/x"),
    "wss://me@core.example": ("core.example", 443, "/", True, "wss://core.example"),
    "wss://me:SE%2FCRET%40@core.example": ("core.example", 443, "/", True, "wss://core.example"),
    "wss://me:SECRET@x@core.example": ("core.example", 443, "/", True, "wss://core.example"),
}


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_taken_apart_and_shown_without_secrets(url: str) -> None:
    address = websocket_address(url)
    assert (address.host, address.port, address.resource, address.tls, str(address)) == GOOD[url]
    assert "SECRET" not in f"{address}{WebSocketAddress('h', 1, '/', True, 'u', 'SECRET')!r}"


@pytest.mark.parametrize(
    ("url", "login"),
    [
        ("wss://me:SECRET@h", "me:SECRET"),
        ("wss://me@h", "me:"),
        ("wss://:SECRET@h", ":SECRET"),
        ("wss://m%C3%A9:S%3A%2F%40%20@h", "mé:S:/@ "),
        ("wss://h", None),
    ],
)
def test_user_and_password_become_a_basic_login(url: str, login: str | None) -> None:
    expected = [] if login is None else [(b"Authorization", b"Basic " + base64.b64encode(login.encode()))]
    assert websocket_address(url).headers == expected


BAD = [
    "",
    "5225",
    "127.0.0.1:5225",
    "http://127.0.0.1:5225",
    "WSX://127.0.0.1:5225",
    "ws://",
    "ws://:5225",
    "ws://127.0.0.1",
    "ws://127.0.0.1:0",
    "ws://127.0.0.1:99999",
    "ws://127.0.0.1:port",
    "ws://[::1:5225",
    "ws://127.0.0.1:5225/#x",
    "ws://127.0.0.1:5225/a b",
    "ws://127.0.0.1:5225\n",
    "ws://127.0.0.1:5225\x00",
    "ws://höst:5225",
    "wss://me:SECRET/x@h",
    "wss://me:SECRET@",
    "wss://me%3Ax:SECRET@h",
    "wss://me:SECRET%FF@h",
    "wss://me:SECRET@h:0",
    "wss://me:SECRET @h",
    "wss:me:SECRET@h",
]


@pytest.mark.parametrize("url", BAD)
def test_what_is_no_address_is_one_clear_line_without_the_password(url: str) -> None:
    with pytest.raises(UserError) as caught:
        websocket_address(url)
    assert caught.value.code == 2
    assert str(caught.value).startswith("--core")
    assert str(caught.value).isprintable()
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "ws://192.168.1.2:5225",
        "ws://core.example:5225",
        "ws://me:SECRET@core.example:5225",
        "ws://0.0.0.0:5225",
        "ws://127.0.0.1.evil.example:5225",
        "ws://localhost.evil.example:5225",
        "ws://127.0.0.1@evil.example:5225",
        "ws://2130706433:5225",
        "ws://[::ffff:10.0.0.1]:5225",
    ],
)
def test_plain_ws_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="in clear") as caught:
        websocket_address(url)
    assert caught.value.code == 2
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "here"),
    [("LOCALHOST", True), ("127.1.2.3", True), ("::1", True), ("::", False), ("0.0.0.0", False), ("", False)],
)
def test_loopback_is_this_machine_only(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@given(st.text(), st.sampled_from(["ws://", "wss://", "wss://me:", "ws://127.0.0.1:5225", ""]))
def test_any_text_is_an_address_or_a_user_error(text: str, start: str) -> None:
    try:
        address = websocket_address(start + text)
    except UserError as error:
        assert str(error).isprintable()  # noqa: PT017
        return
    assert address.tls or is_loopback(address.host)
    assert 0 < address.port < 65536
    assert str(address).isprintable()


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1), st.text("abc", min_size=8))
def test_a_quoted_password_is_carried_as_it_is_and_never_shown(password: str, mark: str) -> None:
    from urllib.parse import quote

    secret = mark.upper() + password
    address = websocket_address(f"wss://me:{quote(secret, safe='')}@core.example/x")
    assert address.password == secret
    shown: Callable[[object], str] = repr
    assert mark.upper() not in f"{address} {shown(address)}"
