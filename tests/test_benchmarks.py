"""Each figure in its quickest form: that it is measured, and what a reader gets. Whether a bar is met is not asked."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as program
from benchmarks import agent, crowd, listener
from benchmarks.figures import Bar, Figure, percentile
from benchmarks.stamps import Command, Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITS = [
    "message → result of receive",
    "message → result of send, beyond its idle second",
]


@pytest.fixture(autouse=True)
def quickest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agent, "QUICK_ROUNDS", 1)
    monkeypatch.setattr(agent, "WARM_UP", 0)
    monkeypatch.setattr(listener, "QUICK", (1, 0.1))
    monkeypatch.setattr(listener, "HELD", (200,))
    monkeypatch.setattr(crowd, "QUICK", crowd.Crowd(chats=5, calls=150, events=450))


def measured(name: str) -> list[Figure]:
    found = {benchmark.__name__: benchmark for benchmark in program.BENCHMARKS}[name]
    figures = list(found(quick=True))
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.median > 0, figure
        if figure.unit != "/s":
            assert figure.p99 >= figure.median, figure
    return figures


@pytest.mark.parametrize("link", ["WebSocket", "in process"])
@pytest.mark.parametrize(
    ("name", "waits", "bar"),
    [("approve_to_send", ["/approve seen → /_send written"], 2.0), ("event_to_result", WAITS, 5.0)],
)
def test_what_the_server_adds_to_a_wait_is_measured_on_this_link(
    name: str, waits: list[str], bar: float, link: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(agent, "LINKS", (link,))
    figures = measured(name)
    assert [figure.name for figure in figures] == [f"{wait}, {link}" for wait in waits]
    for figure in figures:
        # Waiting for the core, let alone the idle second, is not in it: that would be far more.
        assert figure.unit == "ms"
        assert figure.median < 500
        assert figure.bar is not None
        assert (figure.bar.value, figure.bar.limit, figure.bar.unit) == (figure.median, bar, "ms")
        assert "without waiting for the core's answers" in figure.note


def test_the_time_to_listening_is_measured_on_an_empty_folder_and_again():
    figures = measured("start_to_listening")
    assert [figure.name for figure in figures] == [
        "start → Listening, empty data folder",
        "start → Listening, second start",
    ]
    assert all(figure.bar is not None and figure.bar.limit == 2.0 and figure.unit == "s" for figure in figures)


def test_calls_per_second_are_compared_with_the_sdk_in_the_same_run():
    figures = measured("list_per_second")
    ratios = [figure.bar.of for figure in figures if figure.bar]
    assert ratios == ["ours : SDK's manager"] * 2
    assert [figure.name for figure in figures if figure.bar] == [
        "list, 1 client: calls per second",
        "list, 50 clients: calls per second",
    ]


def test_held_calls_are_weighed_and_other_calls_timed_beside_them():
    memory, latency = measured("held_calls")
    assert (memory.name, memory.unit) == ("200 held calls: memory per call", "KB")
    assert latency.name == "200 held calls: latency of list beside them"
    assert latency.bar is not None
    assert latency.bar.of == "with : without held calls"


def test_the_whole_server_is_weighed_in_a_crowd():
    figures = measured("crowded_server")
    assert [figure.name for figure in figures] == [
        "5 chats: list",
        "150 held calls of receive: memory per call",
        "450 events in a burst beside 150 held calls: processor time per event",
        "450 unread messages: receive of 100",
        "450 unread messages: receive of 100, whichever chat",
    ]
    assert [figure.bar.limit if figure.bar else None for figure in figures] == [500, 60, 1, 250, None]


def test_a_reader_finds_median_p99_bar_ratio_and_verdict():
    bar = Bar(1.5, 2.0, at_least=False, of="median", unit="ms")
    assert str(Figure("start → end", "ms", 1.5, 1234.5, bar, "over 3 rounds")).split("\n    ") == [
        "start → end: median 1.5 ms, p99 1234 ms",
        "median 1.5 ms, bar ≤ 2 ms: met (median : bar 0.75)",
        "over 3 rounds",
    ]
    assert str(Bar(1.234, 2.2, at_least=True, of="ours : theirs")) == "ours : theirs 1.23, bar ≥ 2.2: MISSED"
    assert str(Figure("calls", "/s", 3, 2)) == "calls: median 3 /s, p99 2 /s"


def test_a_percentile_is_a_value_that_was_measured():
    values = [float(n) for n in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.01, 0.5, 0.99, 1)] == [1, 50, 99, 100]
    assert percentile([7.0], 0.01) == 7.0


def test_waiting_for_the_core_is_counted_once_and_only_within_the_span():
    commands = [
        Command("/_read", 1.0, 3.0),
        Command("/_get", 2.0, 4.0),  # beside the first one
        Command("/_send", 4.5, 6.0),  # its answer is not waited for
        Command("/_late", 4.6),  # not answered
        Command("/_before", 0.2, 2.0),
    ]
    syncs = [(0.1, 0.4), (3.5, 4.25)]  # one before the span, one that began while the core was waited for
    moments = Moments([(0.5, ["/approve 7"]), (0.6, ["other"])], commands, syncs)
    assert moments.waited(0.5, 5.0) == 3.0
    assert moments.synced(0.5, 5.0) == 0.25
    assert moments.told("/approve 7") == 0.5
    assert moments.asked("/_get", 0.5) == 2.0
    assert moments.asked("/_send", 0.5) == 4.5


def test_a_missed_bar_ends_the_program_with_1_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def pace(*, quick: bool) -> Iterator[Figure]:
        """The pace."""
        yield Figure("far", "km", 1, 2, Bar(3, 1, at_least=False, of="median", unit="km"))
        yield Figure("near", "km", 1, 2, Bar(float(quick), 1, at_least=False, of="median", unit="km"))

    monkeypatch.setattr(program, "BENCHMARKS", [pace])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    assert program.main() == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "# pace: The pace."
    assert printed[-2:] == ["1 of 2 bars met.", "MISSED: far"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--json", "pace"])
    assert program.main() == 1
    far, near = map(json.loads, capsys.readouterr().out.splitlines())
    assert (far["bar"]["met"], far["bar"]["ratio"]) == (False, 3.0)
    assert near["bar"]["met"]
