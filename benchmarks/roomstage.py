"""The stage of the rooms' figures: server processes behind pipes, a database, and what a process costs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from simplexmcp.rooms.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RoomServer", "Stage", "cpu_ms", "rss_mb", "stage", "words"]

_WORDS = (
    "anchor basket candle dragon engine feather garden hammer island jacket kettle ladder magnet needle orchid "
    "pencil quartz ribbon saddle timber umbra valley window xenon yellow zephyr acorn bridge cobalt desert ember "
    "fabric glacier harbor indigo jungle kernel lantern meadow nickel oxygen pepper quiver"
)
_BATCH = 1000  # rows of one transaction: the search index is as it would be after as many posts
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MODEL = {"brand": "Bench", "model": "Seat", "version": "1"}


@final
class RoomServer:
    """One server process, asked one request at a time: what is measured is the server and its pipe."""

    def __init__(self, path: Path, *, seat: bool = True) -> None:
        self.started = time.perf_counter()
        self.env = os.environ | {"SIMPLEXMCP_ROOMS_DB": str(path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "simplexmcp", "rooms", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.env,
            bufsize=1 << 16,
        )
        self._key = 0
        self.agent_id = ""
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        if seat:
            self.agent_id = self.call("create_persona", **_MODEL)["agent_id"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        """The answer as it is on the wire."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._key += 1
        message = {"jsonrpc": "2.0", "id": self._key, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request."""
        return json.loads(self.ask(method, params))["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content'][0]['text']}")
        return json.loads(result["content"][0]["text"])

    def join(self, room: str = "hall") -> None:
        """Enters a room, made when it is missing."""
        if not any(known["name"] == room for known in self.call("list_rooms")["rooms"]):
            self.call("create_room", name=room)
        self.call("join_room", room=room)

    def times(self, rounds: int, tool: str, **arguments: Any) -> list[float]:
        """How long each of `rounds` calls takes, in ms, after a first one."""
        self.timed(tool, **arguments)
        return [self.timed(tool, **arguments) for _ in range(rounds)]

    def timed(self, tool: str, **arguments: Any) -> float:
        """How long a call takes, in ms."""
        began = time.perf_counter()
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        took = (time.perf_counter() - began) * 1000
        if b'"isError":true' in answer[-20:]:
            raise RuntimeError(f"{tool}: {answer[:500]!r}")
        return took


@final
class Stage:
    """A folder for databases, and servers that end with it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._count = 0

    def path(self) -> Path:
        """A new database's path."""
        self._count += 1
        return self._folder / f"{self._count}.db"

    def server(self, path: Path, *, room: str | None = "hall") -> RoomServer:
        """A server whose persona is in the room."""
        talk = self._stack.enter_context(RoomServer(path))
        if room is not None:
            talk.join(room)
        return talk

    def fill(self, path: Path, author: str, count: int, *, room: str = "hall") -> None:
        """Writes `count` messages of 200 letters into a room: one in 100 holds `onepercent`, ten hold `seldom`."""
        database = open_database(str(path))
        draw = random.Random(7)
        place = database.value("SELECT id FROM rooms WHERE name = ?", room)
        first = database.value("SELECT coalesce(max(seq), 0) FROM messages WHERE room_id = ?", place) + 1
        rows = [
            (place, first + n, author, text, len(text))
            for n in range(count)
            for text in [_marked(words(draw), n, count)]
        ]
        for start in range(0, count, _BATCH):
            with database.write():
                database.run_many(
                    "INSERT INTO messages (room_id, seq, agent_id, body, body_len) VALUES (?, ?, ?, ?, ?)",
                    rows[start : start + _BATCH],
                )
        database.close()


@contextmanager
def stage() -> Iterator[Stage]:
    """A stage for one benchmark."""
    with tempfile.TemporaryDirectory(prefix="rooms-") as folder, ExitStack() as stack:
        yield Stage(Path(folder), stack)


def words(draw: random.Random, letters: int = 200) -> str:
    """A text of that many letters."""
    text = " ".join(draw.choices(_WORDS.split(), k=letters // 5))
    return text[:letters]


def rss_mb(process: subprocess.Popen[Any]) -> float:
    """The resident memory of a process."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * _PAGE / 1_000_000


def cpu_ms(process: subprocess.Popen[Any]) -> float:
    """The processor time that a process has used, as the scheduler counts it."""
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1_000_000


def _marked(text: str, number: int, count: int) -> str:
    if number % max(1, count // 10) == 1:
        text = f"seldom {text}"[:200]
    return f"onepercent {text}"[:200] if number % 100 == 0 else text
