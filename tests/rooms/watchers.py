"""Watchers for tests: real processes, and the program inside the test on a clock that the test moves."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from simplexmcp.rooms import watch, watching
from simplexmcp.rooms.lock import folder, holder
from simplexmcp.rooms.watcher_command import LAUNCHER

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    import pytest

PATIENCE = 20.0  # seconds until a missing event fails a test


class WatcherProcess:
    """A watcher as an agent's shell starts it. A context manager that leaves no process behind."""

    def __init__(self, path: Path, *words: str, command: str | None = None) -> None:
        env = os.environ | {"SIMPLEXMCP_ROOMS_DB": str(path)}
        start = shlex.split(command) if command is not None else [sys.executable, LAUNCHER, *words]
        self.process = subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def armed(self) -> WatcherProcess:
        """Waits until it holds its lock."""
        until(lambda: self.process.pid in holders() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()
        return self

    def end(self) -> tuple[int, str, str]:
        """Waits for its end: exit code, stdout, stderr."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err

    def line(self) -> dict[str, Any]:
        """The next line of its output."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)


def locks() -> list[str]:
    """The lock files that are there."""
    return [str(file) for file in Path(folder()).glob("*")]


def holders() -> list[int | None]:
    """The processes that hold locks."""
    return [holder(path) for path in locks()]


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that other processes do."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.005)


class Steps:
    """A clock, and a bell that moves it: each wait ends at its moment, unless a step is planned before.

    `at(seconds, step)` runs `step` then, and tells it as a write. `looks` are the times of the reads.
    """

    polls = False

    def __init__(self) -> None:
        self.now = 0.0
        self.signal: int | None = None
        self.written = True
        self.lives = True
        self.looks: list[float] = []
        self._planned: list[tuple[float, Callable[[], object]]] = []
        self._instant = True

    def at(self, seconds: float, step: Callable[[], object]) -> Steps:
        """Plans a step."""
        self._planned = sorted([*self._planned, (seconds, step)], key=lambda planned: planned[0])
        return self

    def bell(self, _path: str, _owner: int | None, *, instant: bool) -> Steps:
        """In place of `Bell`."""
        self._instant = instant
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def owner_lives(self) -> bool:
        return self.lives

    def wait(self, until: float) -> None:
        self.written = False
        if self._planned and self._planned[0][0] <= until:
            self.now, step = self._planned.pop(0)
            step()
            self.written = self._instant
        else:
            assert until > self.now, "a turn without waiting"
            self.now = until


def stepped(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The watcher of this test runs on the clock that is returned."""
    steps = Steps()
    clock = SimpleNamespace(monotonic=lambda: steps.now)
    monkeypatch.setattr(watch, "time", clock)
    monkeypatch.setattr(watching, "time", clock)
    monkeypatch.setattr(watch, "Bell", steps.bell)
    look = watching.look

    def noted(*arguments: Any) -> Any:
        steps.looks.append(steps.now)
        return look(*arguments)

    monkeypatch.setattr(watching, "look", noted)
    return steps
