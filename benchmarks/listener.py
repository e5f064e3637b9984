"""The HTTP listener against the SDK's own manager: calls per second, memory of held calls, latency beside them."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.figures import Bar, Figure, percentile
from benchmarks.processes import TICK, Server, holding, load, quiet, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HELD", "QUICK", "held_calls", "list_per_second"]

QUICK = (3, 1.5)
"""Rounds of a quick measurement, and the seconds of each."""
HELD = (1000, 5000)
"""Calls that are held."""

_RATE_BAR = 2.2
_MEMORY_BAR_KB = 45
_LATENCY_BAR = 1.3


def list_per_second(*, quick: bool) -> Iterator[Figure]:
    """`list` per second with 1 and 50 clients, in rounds that alternate between ours and the SDK's."""
    rounds, seconds = QUICK if quick else (9, 3.0)
    with serving("ours") as ours, serving("sdk") as sdk:
        for clients in (1, 50):
            load(ours, clients, seconds / 3), load(sdk, clients, seconds / 3)
            yield from _compare(ours, sdk, clients, rounds, seconds)


def _compare(ours: Server, sdk: Server, clients: int, rounds: int, seconds: float) -> Iterator[Figure]:
    rates: dict[str, list[float]] = {ours.name: [], sdk.name: []}
    latencies: dict[str, list[float]] = {ours.name: [], sdk.name: []}
    costs: dict[str, list[float]] = {ours.name: [], sdk.name: []}
    for _ in range(rounds):
        for server in (ours, sdk):
            before = server.cpu()
            seen = load(server, clients, seconds)
            rates[server.name].append(seen.rate)
            latencies[server.name] += seen.latencies
            costs[server.name].append(max(TICK, server.cpu() - before) / len(seen.latencies))
    ratio = median(a / b for a, b in zip(rates["ours"], rates["sdk"], strict=True))
    cost = median(b / a for a, b in zip(costs["ours"], costs["sdk"], strict=True))
    who = "1 client" if clients == 1 else f"{clients} clients"
    yield Figure(
        f"list, {who}: calls per second",
        "/s",
        median(rates["ours"]),
        percentile(rates["ours"], 0.01),
        Bar(ratio, _RATE_BAR, at_least=True, of="ours : SDK's manager"),
        f"the SDK's manager: {median(rates['sdk']):.0f} /s; processor time per call 1 : {cost:.2f}"
        " (over rounds; p99 is the slowest)",
    )
    for name in ("ours", "sdk"):
        label = "" if name == "ours" else ", SDK's manager"
        values = [value * 1000 for value in latencies[name]]
        yield Figure(f"list, {who}: latency{label}", "ms", median(values), percentile(values, 0.99))


def held_calls(*, quick: bool) -> Iterator[Figure]:
    """Memory per held call, and the latency of `list` beside them, against the same server without held calls."""
    for count in HELD:
        sdk_kb = _sdk_memory(count) if not quick else None
        with serving("ours") as server:
            yield from _held(server, count, quick=quick, sdk_kb=sdk_kb)


def _held(server: Server, count: int, *, quick: bool, sdk_kb: float | None) -> Iterator[Figure]:
    rounds, seconds = QUICK if quick else (5, 2.0)
    load(server, 50, seconds / 2)
    free: list[float] = []
    beside: list[float] = []
    growth: list[float] = []
    ratios: list[float] = []
    for _ in range(rounds):
        alone = load(server, 1, seconds).latencies
        before = server.rss()
        with holding(server, count):
            quiet(server)
            growth.append((server.rss() - before) / count / 1024)
            busy = load(server, 1, seconds).latencies
        free += alone
        beside += busy
        ratios.append(median(busy) / median(alone))
        quiet(server)
    note = "of the first round: later ones reuse memory"
    if sdk_kb is not None:
        note += f"; the SDK's manager: {sdk_kb:.0f} KB, ours : SDK's manager {growth[0] / sdk_kb:.2f}"
    yield Figure(
        f"{count} held calls: memory per call",
        "KB",
        growth[0],
        max(growth),
        Bar(growth[0], _MEMORY_BAR_KB, at_least=False, of="memory per call", unit="KB"),
        note,
    )
    yield Figure(
        f"{count} held calls: latency of list beside them",
        "ms",
        median(beside) * 1000,
        percentile(beside, 0.99) * 1000,
        Bar(median(ratios), _LATENCY_BAR, at_least=False, of="with : without held calls"),
        f"without: median {median(free) * 1000:.3g} ms, p99 {percentile(free, 0.99) * 1000:.3g} ms",
    )


def _sdk_memory(count: int) -> float:
    with serving("sdk") as server:
        load(server, 50, 1.0)
        before = server.rss()
        with holding(server, count):
            quiet(server)
            return (server.rss() - before) / count / 1024
