"""Lines to the rooms server, as a process: each is answered or is nothing, and the next good one is served."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.mutate import as_text, changed, damaged, junk
from tests.rooms.client import MODEL, Server

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.budget import Budget

__all__ = ["lines"]

_TOGETHER = 25
"""Lines between two looks whether the server serves."""
_OWN = 10_000_000
_NUMBERS = (0, 1, 2, 3, 50, -1, 2**53, 10**30, 1.5)
_TEXTS = (
    "hall",
    "x",
    "\0",
    "\ud800",
    "a" * 70_000,
    '"a" OR b*',
    "NEAR(",
    "col:x",
    "file:src/**",
    "beginning",
    "`*<b>",
    "",
)


async def lines(budget: Budget) -> None:
    """Mutated requests of the rooms server, and bytes that are none."""
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "rooms.db") as server:
        server.enter_room()
        server._ids = itertools.count(_OWN)  # numbers that no mutated request has
        requests = _requests(server)
        for random in budget:
            server.send_raw(_line(random, requests) + b"\n")
            if budget.tried % _TOGETHER == 0:
                _serves(server)
        _serves(server)
        assert not any("Traceback" in line or "unexpected" in line for line in server.errors), server.errors
        assert server.close() == 0


def _serves(server: Server) -> None:
    """A good request gets its answer; those before it were read. The room that was left is joined again."""
    server.text("join_room", room="hall")
    assert server.request("ping")["result"] == {}
    for message in server._early.values():
        assert "unexpected" not in json.dumps(message.get("result", "")), message
        assert (message.get("error") or {}).get("code") != -32603, message
    server._early.clear()


def _requests(server: Server) -> list[dict[str, Any]]:
    """A call of each tool with arguments of its schema, and the other methods."""
    found: list[dict[str, Any]] = [
        {"method": "initialize", "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "a"}}},
        {"method": "tools/list"},
        {"method": "server/discover"},
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
    ]
    for tool in server.request("tools/list")["result"]["tools"]:
        arguments = {name: _value(name, field) for name, field in tool["inputSchema"]["properties"].items()}
        found.append({"method": "tools/call", "params": {"name": tool["name"], "arguments": arguments}})
    return [{"jsonrpc": "2.0", "id": f"f{number}", **request} for number, request in enumerate(found)]


def _value(name: str, field: dict[str, Any]) -> Any:
    if name in MODEL:
        return MODEL[name]
    kind = field.get("type", "string")
    known = {"string": "hall", "integer": 1, "number": 1, "boolean": True, "array": ["a"], "object": {}}
    if name == "wait_seconds":
        return 0
    return field["enum"][0] if "enum" in field else known.get(kind if isinstance(kind, str) else kind[0], "a")


def _with_some(random: Random, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with some of their arguments, one of them another text or number, most of the time."""
    arguments = {name: value for name, value in params.get("arguments", {}).items() if random.random() < 0.6}
    if arguments and random.random() < 0.7:
        name = random.choice(list(arguments))
        if name != "wait_seconds":
            arguments[name] = random.choice(_NUMBERS if isinstance(arguments[name], int) else _TEXTS)
    return {**params, "arguments": arguments}


def _line(random: Random, requests: list[dict[str, Any]]) -> bytes:
    request = random.choice(requests)
    kind = random.randrange(8)
    if kind == 0:
        line = as_text(junk(random)).encode()
    elif kind == 1:
        line = damaged(random, as_text(request).encode())
    elif kind < 4:
        line = as_text(changed(random, request, requests)).encode()
    else:
        line = as_text({**request, "params": _with_some(random, request.get("params", {}))}).encode()
    return line.replace(b"\n", b" ")
