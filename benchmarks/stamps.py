"""Moments at the link between server and core, by `perf_counter`, which all processes of a machine share.

With the in-process link they are those of the call. Of a server in a process of its own they are taken in it, at its
socket (`stamped`): so neither the sandbox nor its side of the WebSocket counts as the server's time.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox.core import SimulatedCore
from simplexmcp.sandbox.state import CoreState

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from simplexmcp.sandbox.network import Network

__all__ = ["Command", "Moments", "StampedCore", "StampedProcess", "texts"]

Wire = dict[str, Any]


@dataclass
class Command:
    """A command, when it was written and when its answer was read (0: not yet)."""

    text: str
    left: float
    answered: float = 0.0


@dataclass
class Moments:
    """When the server read events, wrote commands and read their answers, and from when to when it had the disk keep a
    file."""

    events: list[tuple[float, list[str]]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    syncs: list[tuple[float, float]] = field(default_factory=list)

    def told(self, text: str) -> float:
        """When the last message with this text was read."""
        return next(at for at, found in reversed(self.events) if text in found)

    def asked(self, begin: str, since: float) -> float:
        """When the first command after `since` that begins so was written."""
        return next(each.left for each in self.commands if each.left > since and each.text.startswith(begin))

    def waited(self, since: float, until: float) -> float:
        """Seconds between two moments in which the server waited for answers that it read meanwhile."""
        return _length(self._waits(since, until))

    def synced(self, since: float, until: float) -> float:
        """Seconds between two moments in which the server waited for the disk alone."""
        waits = self._waits(since, until)
        syncs = [(began, end) for began, end in self.syncs if since <= began and end <= until]
        return _length(waits + syncs) - _length(waits)

    def _waits(self, since: float, until: float) -> list[tuple[float, float]]:
        return [
            (each.left, each.answered) for each in self.commands if each.left >= since and 0.0 < each.answered <= until
        ]

    @contextmanager
    def watching_the_disk(self) -> Generator[None]:
        """Take the moments of this process, too, which the server runs in."""
        sync = os.fsync

        def fsync(fd: int) -> None:
            began = time.perf_counter()
            sync(fd)
            self.syncs.append((began, time.perf_counter()))

        os.fsync = fsync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync = sync


class StampedCore(SimulatedCore):
    """The agent's core, with the moments of a server that calls it."""

    def __init__(self, network: Network) -> None:
        super().__init__(network, CoreState("agent"))
        self.moments = Moments()
        self.react(lambda event: self.moments.events.append((time.perf_counter(), texts(event))))

    def command(self, text: str) -> Wire:
        """The response."""
        command = Command(text, time.perf_counter())
        self.moments.commands.append(command)
        try:
            return super().command(text)
        finally:
            command.answered = time.perf_counter()


class StampedProcess:
    """A server in a process of its own that writes its moments to a file."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._moments = Moments()
        self._waiting: dict[str, Command] = {}

    @property
    def moments(self) -> Moments:
        """Those up to now."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            for line in file:
                at, way, text = line.decode().split(" ", 2)
                if way == "disk":
                    self._moments.syncs.append((float(at), float(at) + float(text)))
                else:
                    self._take(float(at), way, json.loads(text))
                self._read += len(line)
        return self._moments

    def _take(self, at: float, way: str, frame: Wire) -> None:
        if way == "out":
            command = self._waiting[frame["corrId"]] = Command(frame["cmd"], at)
            self._moments.commands.append(command)
        elif "corrId" in frame:
            self._waiting.pop(frame["corrId"]).answered = at
        else:
            self._moments.events.append((at, texts(frame["resp"])))


def texts(event: Wire) -> list[str]:
    """The texts of the messages that an event brings."""
    if event["type"] != "newChatItems":
        return []
    return [str(entry["chatItem"]["meta"]["itemText"]) for entry in event["chatItems"]]


def _length(spans: list[tuple[float, float]]) -> float:
    """The length of spans together; what two of them share counts once."""
    length, free = 0.0, 0.0
    for begin, end in sorted(spans):
        length += max(0.0, end - max(begin, free))
        free = max(free, end)
    return length
