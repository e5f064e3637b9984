"""Servers and load generators as child processes, each on its own processor where there are two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ROOT", "TICK", "Load", "Server", "holding", "load", "quiet", "serving"]

ROOT = Path(__file__).parents[1]
"""Where `python -m benchmarks` works."""

TICK = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds between two values of a processor time."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    port: int
    pid: int

    def rss(self) -> int:
        """Its resident memory in bytes."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE

    def cpu(self) -> float:
        """The processor time that it has used, in seconds; counted in steps of `TICK`."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK


@dataclass(frozen=True)
class Load:
    """What a load generator saw: latencies in seconds."""

    rate: float
    latencies: list[float]


@contextmanager
def serving(name: str) -> Iterator[Server]:
    """A server of `servers.py`; ended with the context."""
    with _child("benchmarks.servers", name, processor=0) as process:
        assert process.stdout is not None
        yield Server(name, int(process.stdout.readline()), process.pid)


def quiet(server: Server) -> None:
    """Waits until the server has nothing left to do, a minute at most."""
    for _ in range(200):
        before = server.cpu()
        time.sleep(0.3)
        if server.cpu() - before < 0.03:
            return


def load(server: Server, clients: int, seconds: float) -> Load:
    """Calls `list` on `clients` connections for `seconds`."""
    with _child("benchmarks.load", str(server.port), "calls", str(clients), str(seconds), processor=1) as process:
        assert process.stdout is not None
        seen = json.loads(process.stdout.readline())
    return Load(len(seen["latencies"]) / seen["seconds"], seen["latencies"])


@contextmanager
def holding(
    server: Server, count: int, token: str = "", tool: str = "wait", arguments: Sequence[dict[str, Any]] = ({},)
) -> Iterator[None]:
    """`count` calls are held within the context, with each of these arguments in turn."""
    what = (token, tool, json.dumps(list(arguments)))
    with _child("benchmarks.load", str(server.port), "hold", str(count), *what, processor=1) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        if process.stdout.readline().strip() != "held":
            raise RuntimeError("the load generator could not hold its calls")
        yield
        process.stdin.close()
        process.wait()


@contextmanager
def _child(module: str, *arguments: str, processor: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(process.pid, {processors[processor % len(processors)]})
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
