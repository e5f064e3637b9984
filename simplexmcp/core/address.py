"""The address of a running core, `ws://HOST:PORT[/PATH]` or `wss://USER:PASSWORD@HOST`.

It is shown in logs and errors, never with its password.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import final
from urllib.parse import SplitResult, unquote, urlsplit

from simplexmcp.errors import UserError

__all__ = ["WebSocketAddress", "is_loopback", "websocket_address"]

_USAGE = "write ws://127.0.0.1:PORT or wss://USER:PASSWORD@HOST"


@final
@dataclass(frozen=True)
class WebSocketAddress:
    """Where a core's WebSocket is. `str()` of it is fit for logs and errors."""

    host: str
    port: int
    resource: str
    tls: bool
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        # A query may hold a secret too.
        path = self.resource.partition("?")[0]
        return f"{'wss' if self.tls else 'ws'}://{self.host_and_port}{'' if path == '/' else path}"

    @property
    def host_and_port(self) -> str:
        """As in a `Host` header: without the port that the scheme implies."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the handshake says of who we are."""
        if self.user is None:
            return []
        secret = base64.b64encode(f"{self.user}:{self.password or ''}".encode())
        return [(b"Authorization", b"Basic " + secret)]


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine: `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def websocket_address(url: str) -> WebSocketAddress:
    """The address in `url`. UserError (code 2) when it is none, or would send in clear over a network."""
    parts, port = _split(url)
    host, tls = parts.hostname or "", parts.scheme == "wss"
    if not tls and port is None:
        raise _bad(url, "has no port")
    if not tls and not is_loopback(host):
        raise UserError(
            f"--core ws://{host}:{port} would send messages in clear over the network; plain ws:// "
            "is only for 127.0.0.1: use wss:// or a tunnel.",
            code=2,
        )
    user, password = _credentials(url, parts)
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebSocketAddress(host, port or 443, resource, tls, user, password)


def _split(url: str) -> tuple[SplitResult, int | None]:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise _bad(url, "holds a character that no address has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad(url, "is no address") from None
    if parts.scheme not in ("ws", "wss"):
        raise _bad(url, "is no WebSocket address")
    if not parts.hostname:
        raise _bad(url, "has no host")
    if port == 0:
        raise _bad(url, "has no port")
    if parts.fragment:
        raise _bad(url, "has a # in it; write it as %23")
    return parts, port


def _credentials(url: str, parts: SplitResult) -> tuple[str | None, str | None]:
    if parts.username is None:
        return None, None
    try:
        user, password = (unquote(part or "", errors="strict") for part in (parts.username, parts.password))
    except UnicodeDecodeError:
        raise _bad(url, "has a user or password that is no UTF-8") from None
    if ":" in user:
        raise _bad(url, "has a user with a colon, which the login cannot carry")
    return user, password


def _bad(url: str, why: str) -> UserError:
    # With an @, or anything odd, what is shown could be a password.
    shown = f'"{url}"' if url.isascii() and url.isprintable() and "@" not in url and len(url) < 100 else "its value"
    return UserError(f"--core: {shown} {why}; {_USAGE}.", code=2)
