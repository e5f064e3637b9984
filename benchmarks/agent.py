"""What the agent server adds to a wait: between core and core, between core and client, and before it listens."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import trio

from benchmarks.figures import Bar, Figure, percentile
from benchmarks.stage import LINKS, open_stage, started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from benchmarks.stage import LinkKind, Stage

__all__ = ["QUICK_ROUNDS", "WARM_UP", "approve_to_send", "event_to_result", "start_to_listening"]

QUICK_ROUNDS = 5
"""Rounds of a quick measurement."""
WARM_UP = 1
"""Rounds before the ones that count."""

_SEND_BAR_MS = 2.0
_RESULT_BAR_MS = 5.0
_START_BAR_S = 2.0

_IDLE = 1  # seconds; the least that `send` takes


@dataclass(frozen=True)
class Taken:
    """Seconds from one moment to another, and how many of them the server waited for answers of the core, and for the
    disk."""

    all: float
    core: float
    disk: float

    @classmethod
    def of(cls, stage: Stage, since: float, until: float) -> Taken:
        """Between two moments."""
        moments = stage.server.moments
        return cls(until - since, moments.waited(since, until), moments.synced(since, until))

    @property
    def server(self) -> float:
        """The server's share."""
        return self.all - self.core - self.disk


def approve_to_send(*, quick: bool) -> Iterator[Figure]:
    """An owner's `/approve` reached the server → the `/_send` of that action is written to the core."""
    approving = _Wait("/approve seen → /_send written", _approve, _rounds(100, quick=quick), _SEND_BAR_MS)
    yield from _on_each_link(approving)


def event_to_result(*, quick: bool) -> Iterator[Figure]:
    """A peer's message reached the server → the last byte of the result of a waiting call is with its client."""
    yield from _on_each_link(
        _Wait("message → result of receive", _receive, _rounds(100, quick=quick), _RESULT_BAR_MS),
        _Wait("message → result of send, beyond its idle second", _replies, _rounds(20, quick=quick), _RESULT_BAR_MS),
    )


def start_to_listening(*, quick: bool) -> Iterator[Figure]:
    """The start of the process `simplexmcp serve --core sandbox` → its line "Listening"."""
    first, second = trio.run(_starts, _rounds(15, quick=quick))
    for folder, taken in (("empty data folder", first), ("second start", second)):
        yield _figure(f"start → Listening, {folder}", "s", taken, _START_BAR_S, f"over {len(taken)} processes")


@dataclass(frozen=True)
class _Wait:
    """Something that the server is waited for: `once` measures it."""

    name: str
    once: Callable[[Stage, int], Awaitable[Taken]]
    rounds: int
    bar_ms: float


def _rounds(full: int, *, quick: bool) -> int:
    return min(full, QUICK_ROUNDS) if quick else full


def _on_each_link(*waits: _Wait) -> Iterator[Figure]:
    for link in LINKS:
        for wait, taken in zip(waits, trio.run(_measure, link, waits), strict=True):
            whole = median(each.all for each in taken) * 1000
            disk = median(each.disk for each in taken) * 1000
            note = f"over {wait.rounds} rounds, without waiting for the core's answers (with it {whole:.3g} ms)"
            if disk:
                note += f", nor for the disk to keep what was decided ({disk:.3g} ms of that)"
            values = [each.server * 1000 for each in taken]
            yield _figure(f"{wait.name}, {link}", "ms", values, wait.bar_ms, note)


async def _measure(link: LinkKind, waits: tuple[_Wait, ...]) -> list[list[Taken]]:
    async with open_stage(link) as stage:
        return [[await wait.once(stage, number) for number in range(WARM_UP + wait.rounds)][WARM_UP:] for wait in waits]


async def _approve(stage: Stage, number: int) -> Taken:
    await stage.client.ask("send", chat=stage.chat, text=f"Hello {number}.")
    command = await stage.approve()
    await stage.client.answer()
    seen = stage.server.moments.told(command)
    return Taken.of(stage, seen, stage.server.moments.asked(f"/_send {stage.chat} ", seen))


async def _receive(stage: Stage, number: int) -> Taken:
    text = f"News {number}."
    await stage.client.ask("receive", chat=stage.chat, wait=60)
    stage.bob.say(stage.group, text)
    return await _result_with(stage, "messages", text)


async def _replies(stage: Stage, number: int) -> Taken:
    if number == 0:
        stage.alice.say(stage.control, f"/approve {stage.chat} all")
        await stage.alice.see("Approved for")
    text = f"Question {number}?"
    await stage.client.ask("send", chat=stage.chat, text=text, wait=60, idle=_IDLE)
    await stage.bob.see(text)
    stage.bob.say(stage.group, f"Answer {number}.")
    taken = await _result_with(stage, "responses", f"Answer {number}.")
    return Taken(taken.all - _IDLE, taken.core, taken.disk)


async def _result_with(stage: Stage, field: str, text: str) -> Taken:
    """From the message's leaving the core to the result with it, and with nothing else."""
    answer = await stage.client.answer()
    if [message["text"] for message in answer.content[field]] != [text]:
        raise RuntimeError(f"the result has not just the message: {answer.content}")
    return Taken.of(stage, stage.server.moments.told(text), answer.at)


async def _starts(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of starts on an empty data folder, and of the starts that follow."""
    first: list[float] = []
    second: list[float] = []
    for _ in range(WARM_UP + rounds):
        with tempfile.TemporaryDirectory(prefix="simplexmcp-bench-") as folder:
            for taken in (first, second):
                began = time.perf_counter()
                async with started("sandbox", Path(folder) / "data"):
                    took = time.perf_counter() - began
                taken.append(took)
    return first[WARM_UP:], second[WARM_UP:]


def _figure(name: str, unit: str, values: list[float], bar: float, note: str) -> Figure:
    middle = median(values)
    return Figure(
        name, unit, middle, percentile(values, 0.99),
        Bar(middle, bar, at_least=False, of="median", unit=unit), note,
    )  # fmt: skip
