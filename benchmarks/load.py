"""The load generator, a process of its own: plain sockets and one selector, so that it costs little itself.

`python -m benchmarks.load PORT calls CLIENTS SECONDS` calls `list` again and again on CLIENTS connections, and prints
`{"seconds", "latencies"}`. `… PORT hold COUNT TOKEN TOOL ARGUMENTS` opens COUNT calls of a tool, with each of a JSON
list of arguments in turn, prints "held" when each has had its first byte, and keeps them until its standard input ends.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import sys
import time
from typing import Any

from benchmarks.servers import TOKEN

_DONE = b"\r\n0\r\n\r\n"


def request(port: int, tool: str, number: int, arguments: dict[str, Any] | None = None, token: str = "") -> bytes:
    """One tools/call as it goes over the wire."""
    params = {"name": tool, "arguments": arguments or {}, "_meta": {"progressToken": number}}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token or TOKEN}\r\n"
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
        f"mcp-protocol-version: 2025-11-25\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client:
    """A connection that has at most one request on its way."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = number
        self.sent = 0.0
        self._data = b""

    def ask(self, data: bytes) -> None:
        self._data = b""
        self.sent = time.perf_counter()
        self.socket.sendall(data)

    def answered(self) -> bool:
        """Takes what came; True when the response is whole."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"the server closed the connection after {self._data[:200]!r}")
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return False
        if b" 200" not in head[:16]:
            raise ConnectionError(f"unexpected answer: {self._data[:300]!r}")
        _, has_length, rest = head.lower().partition(b"content-length:")
        if has_length:
            return len(body) >= int(rest.partition(b"\r\n")[0])
        return body.endswith(_DONE)


def calls(port: int, clients: int, seconds: float) -> None:
    """Calls `list` on each connection as soon as the last answer is there; stops after `seconds`, and one answer."""
    selector = selectors.DefaultSelector()
    data = request(port, "list", 1)
    latencies: list[float] = []
    for number in range(clients):
        client = Client(port, number)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.ask(data)
    start = time.perf_counter()
    end = start + seconds
    while (now := time.perf_counter()) < end or not latencies:
        for key, _ in selector.select(max(0.0, end - now) or None):
            client = key.data
            if client.answered():
                latencies.append(time.perf_counter() - client.sent)
                client.ask(data)
    print(json.dumps({"seconds": time.perf_counter() - start, "latencies": latencies}), flush=True)


def hold(port: int, count: int, token: str, tool: str, arguments: list[dict[str, Any]]) -> None:
    """Opens calls, a hundred at a time, and keeps them."""
    held: list[Client] = []
    while len(held) < count:
        batch = [Client(port, number) for number in range(len(held), min(count, len(held) + 100))]
        for client in batch:
            client.ask(request(port, tool, client.number, arguments[client.number % len(arguments)], token))
        for client in batch:
            if b" 200" not in (head := client.socket.recv(65536))[:16]:
                raise ConnectionError(f"a call was refused: {head[:300]!r}")
        held += batch
    print("held", flush=True)
    selector = selectors.DefaultSelector()
    for client in held:
        selector.register(client.socket, selectors.EVENT_READ, client)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                return
            key.data.socket.recv(65536)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if sys.argv[2] == "calls":
        calls(int(sys.argv[1]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        hold(int(sys.argv[1]), int(sys.argv[3]), *sys.argv[4:6], json.loads(sys.argv[6]))
