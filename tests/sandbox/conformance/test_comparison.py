"""The comparison itself: it accepts a recording that is played back, and finds what was changed in it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.conformance.compare import Mapping, differences
from tests.sandbox.conformance.recording import Recording
from tests.sandbox.conformance.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ["01-first-start-lib", "02-connect", "04-send", "08-owners"]


class Tape:
    """A network that answers and says what was recorded, one thing after the other."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.listeners: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.answers = {name: [a for a in recording.acts if a.core == name and a.answer] for name in recording.cores}
        self.commands = [a.line for a in recording.acts if a.answer]
        self.said = 0
        self.name = ""

    def core(self, name: str) -> Tape:
        self.name = name
        return self

    def subscribe(self, listener: Callable[[dict[str, Any]], None]) -> None:
        self.listeners[self.name] = listener

    def relay_up(self, up: bool) -> None:
        pass

    def deliver(self) -> None:
        return None

    def command(self, text: str) -> dict[str, Any]:
        waiting = self.answers[self.name]
        if text.startswith(("/_create user", "/_start")) and (not waiting or waiting[0].command != text):
            return {"type": "chatStarted"}
        act = waiting.pop(0)
        end = min((line for line in self.commands if line > act.line), default=10**9)
        for event in self.recording.events:
            if self.said < event.line < end:
                self.listeners[event.core](event.body)
        self.said = max(self.said, end - 1)
        assert act.answer is not None
        return act.answer


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_that_is_played_back_differs_nowhere(name: str) -> None:
    recording = Recording.read(name)
    outcome = replay(recording, network=Tape(recording))  # type: ignore[arg-type]
    assert outcome.findings == []
    assert outcome.answers > 50
    assert outcome.events > 40


def test_a_key_too_many_a_key_too_few_and_another_value_are_found() -> None:
    recorded = {"type": "x", "a": 1, "b": {"c": [True, "text"]}}
    simulated = {"type": "x", "d": 1, "b": {"c": [False, "text"]}}
    assert differences("agent", recorded, simulated, Mapping()) == [
        ("a", 1, "no such key"),
        ("b.c[0]", True, False),
        ("d", "no such key", 1),
    ]


def test_null_is_not_the_same_as_an_absent_key() -> None:
    assert differences("agent", {"a": "x"}, {"a": "x", "b": None}, Mapping()) == [("b", "no such key", None)]


def test_an_id_must_stand_for_the_same_id_everywhere() -> None:
    mapping = Mapping()
    assert differences("agent", {"itemId": 5}, {"itemId": 7}, mapping) == []
    assert differences("agent", {"itemId": 5}, {"itemId": 7}, mapping) == []
    assert differences("alice", {"itemId": 5}, {"itemId": 8}, mapping) == []
    assert differences("agent", {"itemId": 5}, {"itemId": 8}, mapping) != []
    assert differences("agent", {"itemId": 6}, {"itemId": 7}, mapping) != []


def test_links_in_texts_are_translated_and_times_need_the_same_precision() -> None:
    mapping = Mapping()
    link, other = "https://127.0.0.1/g#aaaaaaaa", "https://127.0.0.1/g#bbbbbbbb"
    assert differences("agent", {"connShortLink": link}, {"connShortLink": other}, mapping) == []
    assert differences("agent", {"text": f"join {link}"}, {"text": f"join {other}"}, mapping) == []
    assert mapping.rewritten(f"/_connect plan 1 {link}") == f"/_connect plan 1 {other}"
    whole, fraction = {"itemTs": "2026-11-30T21:00:00Z"}, {"itemTs": "2026-11-30T21:00:00.5Z"}
    assert differences("agent", whole, copy.deepcopy(whole), mapping) == []
    assert differences("agent", whole, fraction, mapping) == [("itemTs", whole["itemTs"], fraction["itemTs"])]
