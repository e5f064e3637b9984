"""Moments at the link between server and core, by `perf_counter`, which all processes of a machine share.

With the in-process link they are those of the call. Of a server in a process of its own they are taken in it, at its
socket (`stamped`): so neither the sandbox nor its side of the WebSocket counts as the server's time.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox.core import SimulatedCore
from simplexmcp.sandbox.state import CoreState

if TYPE_CHECKING:
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
    """When the server read events, wrote commands and read their answers."""

    events: list[tuple[float, list[str]]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)

    def told(self, text: str) -> float:
        """When the last message with this text was read."""
        return next(at for at, found in reversed(self.events) if text in found)

    def asked(self, begin: str, since: float) -> float:
        """When the first command after `since` that begins so was written."""
        return next(each.left for each in self.commands if each.left > since and each.text.startswith(begin))

    def waited(self, since: float, until: float) -> float:
        """Seconds between two moments in which the server waited for answers that it read meanwhile."""
        waited, free = 0.0, since
        for each in self.commands:
            if each.left >= since and 0.0 < each.answered <= until:
                waited += max(0.0, each.answered - max(each.left, free))
                free = max(free, each.answered)
        return waited


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
                at, way, frame = line.decode().split(" ", 2)
                self._take(float(at), way, json.loads(frame))
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
