"""Who may ask a site, and what. Pure: the head of a request to a refusal.

The browser of the person at this computer may, and no other page that it shows: a name that was bound to 127.0.0.1 by a
foreign server fails at Host, a foreign page at Origin and Sec-Fetch-Site, a page of another port of this computer there
too (cookies know no ports). A header that decides something may come only once.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Gate", "Head", "Refused", "Rules", "Visit", "new_token"]

_ONCE = frozenset((b"host", b"origin", b"content-length", b"sec-fetch-site", b"sec-fetch-mode"))
_OWN = (b"same-origin", b"none")
_LONGEST_QUERY = 16_384  # bytes
_LOCAL = re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """The status and the sentence of a no."""

    status: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """Where a site is more open than the strictest one."""

    any_port: bool = False
    """Whether Host may name another port than its own: that of a forwarded connection."""
    scripts: bool = False
    """Whether a request that changes something may come without an origin: from programs, never from a page."""
    foreign_host: int = 421
    """The status of a request for another host."""


@final
@dataclass(frozen=True, slots=True)
class Visit:
    """The first visit with the token: the cookie to set, and where the page is without it."""

    cookie: bytes
    target: str
    direct: bool
    """Whether the browser would send a cookie of ours to the target of a redirect: not after a link of another site."""


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request. Names of headers are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    """The first value of each name."""
    headers: dict[bytes, bytes]
    doubled: frozenset[bytes]
    """Those that decide something and came more than once."""
    socket: bool

    @classmethod
    def of(cls, scope: Any) -> Head:
        """The head of an ASGI scope."""
        headers: dict[bytes, bytes] = {}
        doubled: set[bytes] = set()
        for name, value in scope["headers"]:
            if name == b"cookie" and name in headers:
                value = headers[name] + b"; " + value  # noqa: PLW2901 - as one header
            if name in headers and name in _ONCE:
                doubled.add(name)
            headers[name] = value
        query: dict[str, str] = {}
        for word, text in parse_qsl(scope["query_string"][:_LONGEST_QUERY].decode("ascii", "replace"), True):
            query.setdefault(word, text)
        socket = scope["type"] == "websocket"
        method = "GET" if socket else scope["method"]
        return cls(method, scope["path"], query, headers, frozenset(doubled), socket)


@final
class Gate:
    """The rules of one site on one port. `token` None: everybody on this computer may ask."""

    def __init__(self, name: str, port: int, token: str | None, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._hosts = frozenset(f"{host}:{port}".encode() for host in ("127.0.0.1", "localhost", "[::1]"))
        self._cookie = f"simplexmcp-{name}-{port}"
        self._token = token

    def refusal(self, head: Head) -> Refused | None:
        """What the head says against the request, its token aside."""
        host = head.headers.get(b"host", b"").lower()
        if head.doubled:
            return Refused(400, "A header that may come once came twice.")
        if not self._is_own(host):
            return Refused(self._rules.foreign_host, "This page answers only to 127.0.0.1 and localhost.")
        origin = head.headers.get(b"origin")
        if origin is not None and origin.lower() != b"http://" + host:
            return Refused(403, "Requests of other pages are refused.")
        reads = head.method == "GET" and not head.socket
        if origin is None and not reads and (head.socket or not self._rules.scripts):
            return Refused(403, "A request that changes something must say its origin.")
        site = head.headers.get(b"sec-fetch-site", b"none")
        if site not in _OWN and not (reads and head.headers.get(b"sec-fetch-mode") == b"navigate"):
            return Refused(403, "Requests of other pages are refused.")
        return None

    def _is_own(self, host: bytes) -> bool:
        return host in self._hosts or (self._rules.any_port and _LOCAL.fullmatch(host) is not None)

    def visit(self, head: Head) -> Visit | None:
        """The first visit of a page, by the URL with the token; None for every other request."""
        given = head.query.get("token")
        if self._token is None or given is None or head.socket or head.method != "GET" or not self._is_token(given):
            return None
        rest = urlencode([(name, value) for name, value in head.query.items() if name != "token"])
        # One slash at the start: two would be another host.
        target = "/" + quote(head.path.lstrip("/")) + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()
        return Visit(cookie, target, head.headers.get(b"sec-fetch-site", b"none") in _OWN)

    def is_known(self, head: Head) -> bool:
        """Whether the request has the cookie, or none is needed."""
        if self._token is None:
            return True
        return any(self._is_token(value) for value in _cookies(head.headers.get(b"cookie", b""), self._cookie))

    def _is_token(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())


def new_token() -> str:
    """A token for a URL: 32 random bytes."""
    return secrets.token_urlsafe(32)


def _cookies(header: bytes, wanted: str) -> Iterable[str]:
    for part in header.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            yield value
