"""Seeing other clients of the core's port in the system's list of connections."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp.core.address import websocket_address
from simplexmcp.core.neighbours import other_clients

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
CORE = "ws://127.0.0.1:5225"


def _table(folder: Path, *rows: str) -> Path:
    path = folder / "tcp"
    path.write_text(
        HEAD + "".join(f"   {n}: {row} 00000000:00000000 00:00000000 0 0 0 1\n" for n, row in enumerate(rows))
    )
    return path


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        ((), 0),
        (("0100007F:C000 0100007F:1469 01",), 0),
        (("0100007F:C000 0100007F:1469 01", "0100007F:C001 0100007F:1469 01"), 1),
        (("0100007F:C000 0100007F:1469 01", "0100007F:C001 0100007F:1469 06"), 0),
        (("0100007F:C000 0100007F:1469 01", "0100007F:1469 0100007F:C000 01"), 0),
        (("0100007F:C000 0100007F:1469 01", "0100007F:C001 0100007F:146A 01"), 0),
        (("0100007F:C000 0100007F:1469 01", "0A00000A:C001 0B00000A:1469 01"), 0),
        (
            (
                "0100007F:C000 0100007F:1469 01",
                f"{'0' * 24}01000000:C002 {'0' * 24}01000000:1469 01",
                f"{'0' * 16}FFFF00000100007F:C003 {'0' * 16}FFFF00000100007F:1469 01",
            ),
            2,
        ),
        (("odd", ""), 0),
    ],
)
def test_only_other_open_connections_to_the_port_on_this_machine_count(
    rows: tuple[str, ...], others: int, tmp_path: Path
) -> None:
    assert other_clients(websocket_address(CORE), [_table(tmp_path, *rows)]) == others


@pytest.mark.parametrize("url", ["wss://127.0.0.1:5225", "ws://127.0.0.1:5225/agent"])
def test_where_others_may_be_anybody_nothing_is_claimed(url: str) -> None:
    assert other_clients(websocket_address(url)) is None


def test_a_system_without_a_list_claims_nothing(tmp_path: Path) -> None:
    assert other_clients(websocket_address(CORE), [tmp_path / "none"]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the list of connections is Linux's")
async def test_a_real_second_client_is_seen() -> None:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(lambda **k: trio.serve_tcp(_hold, 0, host="127.0.0.1", **k))
        port = listeners[0].socket.getsockname()[1]
        address = websocket_address(f"ws://127.0.0.1:{port}")
        async with await trio.open_tcp_stream("127.0.0.1", port):
            assert other_clients(address) == 0
            async with await trio.open_tcp_stream("127.0.0.1", port):
                assert other_clients(address) == 1
        nursery.cancel_scope.cancel()


async def _hold(_: trio.SocketStream) -> None:
    await trio.sleep_forever()
