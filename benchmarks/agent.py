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

__all__ = ["approve_to_send", "event_to_result", "start_to_listening"]

_SEND_BAR_MS = 2.0
_RESULT_BAR_MS = 5.0
_START_BAR_S = 2.0

_IDLE = 1  # seconds; the least that `send` takes


@dataclass(frozen=True)
class Taken:
    """Seconds from one moment to another, and how many of them the server waited for answers of the core."""

    all: float
    core: float

    @classmethod
    def of(cls, stage: Stage, since: float, until: float) -> Taken:
        """Between two moments."""
        return cls(until - since, stage.server.moments.waited(since, until))

    @property
    def server(self) -> float:
        """The server's share."""
        return self.all - self.core


def approve_to_send(*, quick: bool) -> Iterator[Figure]:
    """An owner's `/approve` leaves the core → the `/_send` of that action has come to the core."""
    yield from _on_each_link(
        "/approve seen → /_send written", _approve, 5 if quick else 100, _SEND_BAR_MS,
        "one reading of the chat in between",
    )  # fmt: skip


def event_to_result(*, quick: bool) -> Iterator[Figure]:
    """A peer's message leaves the core → the last byte of a waiting call's result is with the client."""
    note = "marking the message read in between"
    yield from _on_each_link("message → result of receive", _receive, 5 if quick else 100, _RESULT_BAR_MS, note)
    yield from _on_each_link(
        "message → result of send, beyond its idle second", _replies, 2 if quick else 20, _RESULT_BAR_MS, note
    )


def start_to_listening(*, quick: bool) -> Iterator[Figure]:
    """The start of the process `simplexmcp serve --core sandbox` → its line "Listening"."""
    first, second = trio.run(_starts, 2 if quick else 15)
    yield _figure("start → Listening, empty data folder", "s", first, _START_BAR_S, "serve --core sandbox")
    yield _figure("start → Listening, second start", "s", second, _START_BAR_S, "the control chat is there")


def _on_each_link(
    name: str, once: Callable[[Stage, int], Awaitable[Taken]], rounds: int, bar: float, note: str
) -> Iterator[Figure]:
    for link in LINKS:
        taken = trio.run(_rounds, link, once, rounds)
        whole = median(each.all for each in taken) * 1000
        yield _figure(
            f"{name}, {link}", "ms", [each.server * 1000 for each in taken], bar,
            f"{note}; with the core's own time median {whole:.2f} ms",
        )  # fmt: skip


async def _rounds(link: LinkKind, once: Callable[[Stage, int], Awaitable[Taken]], rounds: int) -> list[Taken]:
    async with open_stage(link) as stage:
        await once(stage, 0)  # warms up
        return [await once(stage, number) for number in range(1, rounds + 1)]


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
    return Taken(taken.all - _IDLE, taken.core)


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
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory(prefix="simplexmcp-bench-") as folder:
            for taken in (first, second):
                began = time.perf_counter()
                async with started("sandbox", Path(folder) / "data"):
                    took = time.perf_counter() - began
                if number:  # the first round warms up
                    taken.append(took)
    return first, second


def _figure(name: str, unit: str, values: list[float], bar: float, note: str) -> Figure:
    middle = median(values)
    return Figure(
        name, unit, middle, percentile(values, 0.99),
        Bar(middle, bar, at_least=False, of="median", unit=unit), f"{len(values)} rounds; {note}",
    )  # fmt: skip
