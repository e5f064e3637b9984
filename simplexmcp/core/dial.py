"""From an address to an open WebSocket, and why it did not open in words that a person understands."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, TypeAlias, cast, final

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, wrap_client_stream

from simplexmcp.core.address import is_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_websocket import WebSocketConnection

    from simplexmcp.core.address import WebSocketAddress

__all__ = ["Dial", "NotOpenedError", "dial", "handshake"]

Dial: TypeAlias = "Callable[[WebSocketAddress], Awaitable[trio.abc.Stream]]"
"""Opens the byte stream to an address, TLS done. Raises NotOpenedError."""

_MAX_MESSAGE = 2**31 - 1
_RECEIVE = 64 * 1024


@final
class NotOpenedError(Exception):
    """The connection did not open: why, and the HTTP status when that was the answer."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


async def dial(address: WebSocketAddress) -> trio.abc.Stream:
    """TCP, and TLS with a verified certificate for `wss`."""
    try:
        stream = await trio.open_tcp_stream(address.host, address.port)
    except OSError as error:
        raise NotOpenedError(_os_reason(error)) from None
    if not address.tls:
        # A name is resolved only now, and may lead elsewhere.
        if not is_loopback(str(stream.socket.getpeername()[0])):
            await trio.aclose_forcefully(stream)
            raise NotOpenedError("the name does not lead to this machine")
        return stream
    secure = trio.SSLStream(stream, ssl.create_default_context(), server_hostname=address.host, https_compatible=True)
    try:
        await secure.do_handshake()
    except (trio.BrokenResourceError, OSError) as error:
        raise NotOpenedError(_tls_reason(error)) from None
    except BaseException:
        await trio.aclose_forcefully(secure)
        raise
    return secure


async def handshake(nursery: trio.Nursery, stream: trio.abc.Stream, address: WebSocketAddress) -> WebSocketConnection:
    """The WebSocket over an open stream; its reader runs in `nursery`."""
    try:
        return await wrap_client_stream(
            nursery,
            cast("trio.SocketStream", stream),
            address.host_and_port,
            address.resource,
            extra_headers=address.headers,
            max_message_size=_MAX_MESSAGE,
            receive_buffer_size=_RECEIVE,
        )
    except ConnectionRejected as error:
        status = error.status_code
        raise NotOpenedError(f"it answered HTTP {status} instead of opening a WebSocket", status) from None
    except (HandshakeError, ConnectionClosed, trio.BrokenResourceError, OSError):
        raise NotOpenedError("what listens there is no WebSocket") from None


def _os_reason(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "the host is not known"
    if isinstance(error, BaseExceptionGroup):
        return _os_reason(error.exceptions[0])
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if error.__cause__ is not None:
        return _os_reason(error.__cause__)
    text = error.strerror if isinstance(error, OSError) else None
    return (text or "it cannot be reached").lower()


def _tls_reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {cause.verify_message}"
    return "it does not speak TLS"
