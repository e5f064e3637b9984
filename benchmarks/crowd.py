"""The whole server in a crowd: many chats, many held calls, a burst of events while they wait, many unread messages."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import trio

from benchmarks.figures import Bar, Figure, percentile
from benchmarks.processes import Server, holding, quiet
from benchmarks.stage import open_stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from benchmarks.stage import Answer, Stage

__all__ = ["FULL", "QUICK", "Crowd", "crowded_server"]


@dataclass(frozen=True)
class Crowd:
    """How many of each."""

    chats: int
    calls: int
    events: int


FULL = Crowd(chats=1_000, calls=5_000, events=10_000)
QUICK = Crowd(chats=100, calls=300, events=500)

_CALL_BAR_KIB = 60
_LIST_BAR_MS = 500
_EVENT_BAR_MS = 1.0
_RECEIVE_BAR_MS = 250

_ROUNDS = 20
_UNREAD_LIMIT = 100


def crowded_server(*, quick: bool) -> Iterator[Figure]:
    """The real server over a WebSocket with 1,000 chats, 5,000 held calls, 10,000 events in a burst, then unread."""
    yield from trio.run(_measure, QUICK if quick else FULL)


async def _measure(crowd: Crowd) -> list[Figure]:
    async with open_stage("WebSocket") as stage:
        _make_chats(stage, crowd.chats)
        server = Server("serve", stage.port, stage.pid)
        await trio.to_thread.run_sync(quiet, server)
        figures = [_times(f"{crowd.chats} chats: list", await _timed(stage, "list", {}), _LIST_BAR_MS)]
        before = server.rss()
        async with _held(stage, crowd):
            await trio.to_thread.run_sync(quiet, server)
            each = (server.rss() - before) / crowd.calls / 1024
            figures.append(
                Figure(
                    f"{crowd.calls} held calls of receive: memory per call", "KiB", each, each,
                    Bar(each, _CALL_BAR_KIB, at_least=False, of="memory per call", unit="KiB"),
                )
            )  # fmt: skip
            figures += await _burst(stage, server, crowd)
        figures += await _unread(stage, crowd.events)
        return figures


def _make_chats(stage: Stage, count: int) -> None:
    for number in range(count - 1):
        profile = {"displayName": f"Group {number}", "fullName": ""}
        stage.network.cores["agent"].command(f"/_group 1 {json.dumps(profile)}")


@asynccontextmanager
async def _held(stage: Stage, crowd: Crowd) -> AsyncIterator[None]:
    """Every call waits for messages of a chat, each chat but Bob's has as many."""
    groups = [f"#{number}" for number in stage.network.cores["agent"].state.groups]
    waits = [{"chat": ref, "wait": 86_000} for ref in groups if ref not in (stage.chat, "#1")]
    manager = holding(Server("serve", stage.port, stage.pid), crowd.calls, stage.token, "receive", waits)
    await trio.to_thread.run_sync(manager.__enter__)
    try:
        yield
    finally:
        await trio.to_thread.run_sync(lambda: manager.__exit__(None, None, None))


async def _burst(stage: Stage, server: Server, crowd: Crowd) -> list[Figure]:
    """Bob's messages reach the agent all at once; over when `list` counts them all."""
    stage.network.relay_up(False)
    for start in range(0, crowd.events, 100):
        stage.bob.say(stage.group, *(f"message {number}" for number in range(start, min(start + 100, crowd.events))))
    memory, used = server.rss(), server.cpu()
    stage.network.relay_up(True)
    began = time.perf_counter()
    unread = 0
    while unread < crowd.events:
        _, answer = await _call(stage, "list", {})
        unread = next(chat["unread"] for chat in answer.content["chats"] if chat["chat"] == stage.chat)
    took = time.perf_counter() - began
    await trio.to_thread.run_sync(quiet, server)
    event = (server.cpu() - used) / crowd.events * 1000
    grown = (server.rss() - memory) / 2**20
    name = f"{crowd.events} events in a burst beside {crowd.calls} held calls"
    return [
        Figure(
            f"{name}: processor time per event", "ms", event, event,
            Bar(event, _EVENT_BAR_MS, at_least=False, of="per event", unit="ms"),
            f"all were there after {took:.1f} s, the network's own time included; memory grew by {grown:.0f} MiB",
        )
    ]  # fmt: skip


async def _unread(stage: Stage, count: int) -> list[Figure]:
    name = f"{count} unread messages"
    rounds = min(_ROUNDS, count // _UNREAD_LIMIT - 3)
    taken = await _timed(stage, "receive", {"chat": stage.chat, "limit": _UNREAD_LIMIT}, rounds)
    anywhere = await _timed(stage, "receive", {"limit": _UNREAD_LIMIT}, rounds=3)
    return [
        _times(f"{name}: receive of {_UNREAD_LIMIT}", taken, _RECEIVE_BAR_MS),
        _times(f"{name}: receive of {_UNREAD_LIMIT}, whichever chat", anywhere, None),
    ]


async def _timed(stage: Stage, tool: str, arguments: dict[str, object], rounds: int = _ROUNDS) -> list[float]:
    """Milliseconds of calls, one after the other, when what came before is done."""
    await _call(stage, "list", {})
    return [(await _call(stage, tool, arguments))[0] for _ in range(rounds)]


async def _call(stage: Stage, tool: str, arguments: dict[str, object]) -> tuple[float, Answer]:
    """Milliseconds of a call, and what it gave."""
    began = time.perf_counter()
    await stage.client.ask(tool, **arguments)
    answer = await stage.client.answer()
    if "error" in answer.content:
        raise RuntimeError(f"{tool}: {answer.content['error']}")
    return (answer.at - began) * 1000, answer


def _times(name: str, values: list[float], bar: float | None) -> Figure:
    middle = median(values)
    must = None if bar is None else Bar(middle, bar, at_least=False, of="median", unit="ms")
    note = f"over {len(values)} calls, the core's time included"
    return Figure(name, "ms", middle, percentile(values, 0.99), must, note)
