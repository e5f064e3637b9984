"""Who else is connected to the core's port on this machine.

The core gives each event to one of its clients, so another one takes messages away from the agent, and it can send
without an approval. The events cannot tell: their numbers have gaps anyway. The system's list of connections can.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simplexmcp.core.address import WebSocketAddress

__all__ = ["other_clients"]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
# How the last 32 bits of 127.x.x.x end, and the whole of ::1, in the byte order of these tables.
_LOOPBACK = ("7F", "00000000000000000000000001000000")


def other_clients(address: WebSocketAddress, tables: Iterable[Path] = _TABLES) -> int | None:
    """How many connections beside ours lead to a core on this machine. None where that cannot be known: another
    system, a core elsewhere, or one port that serves several cores by path."""
    if address.tls or address.resource != "/":
        return None
    total = 0
    try:
        for table in tables:
            lines = table.read_text("ascii").splitlines()[1:]
            total += sum(_leads_to(line.split(), address.port) for line in lines)
    except (OSError, UnicodeDecodeError):
        return None
    return max(0, total - 1)


def _leads_to(fields: list[str], port: int) -> bool:
    if len(fields) < 4 or fields[3] != _ESTABLISHED:
        return False
    host, _, remote_port = fields[2].partition(":")
    return remote_port == f"{port:04X}" and host.endswith(_LOOPBACK)
