"""The simulated core says what a real core was seen to say: all recordings, replayed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.sandbox.conformance.gaps import DIFFERENT, REFUSED
from tests.sandbox.conformance.replayed import RECORDINGS, replayed, unknown
from tests.sandbox.conformance.world import CUT, NOT_REPLAYED, WORLD

if TYPE_CHECKING:
    from tests.sandbox.conformance.replay import Finding


def _line(name: str, finding: Finding) -> str:
    recorded, simulated = (
        json.dumps(value, ensure_ascii=False)[:160] for value in (finding.recorded, finding.simulated)
    )
    where = f"{name}:{finding.line} {finding.core} {finding.what} {finding.path}"
    return f"{where}\n    expected {recorded}\n    got      {simulated}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_repeated_but_for_the_listed_gaps(name: str) -> None:
    found = unknown(replayed(name))
    shown = "\n".join(_line(name, finding) for finding in found[:12])
    assert found == [], f"{len(found)} differences\n{shown}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_only_the_listed_commands_are_refused_as_not_modelled(name: str) -> None:
    refused = [(act.step, act.command or "") for act, _ in replayed(name).refused]
    surprising = [
        (step, command[:80])
        for step, command in refused
        if not any(known.covers(name, step, command) for known in REFUSED)
    ]
    assert surprising == []


@pytest.mark.parametrize("known", REFUSED, ids=lambda known: f"{known.recording} {known.command}")
def test_a_listed_command_is_still_refused_with_a_clear_error(known: object) -> None:
    assert known in REFUSED
    for refusal in (r for r in REFUSED if r == known):
        reasons = [
            reason
            for act, reason in replayed(refusal.recording).refused
            if refusal.covers(refusal.recording, act.step, act.command or "")
        ]
        assert reasons, "this command works now: take it out of the table"
        assert all(reason.startswith("the sandbox does not model ") for reason in reasons)


@pytest.mark.parametrize("gap", DIFFERENT, ids=lambda gap: f"{gap.recording} {gap.what}")
def test_a_listed_gap_is_still_open(gap: object) -> None:
    assert gap in DIFFERENT
    for known in (g for g in DIFFERENT if g == gap):
        names = [known.recording] if known.recording else RECORDINGS
        assert any(known.covers(name, f) for name in names for f in replayed(name).findings), "take it out of the table"


def test_enough_was_compared() -> None:
    """The replays are not empty: nearly all answers and events of the recordings were paired."""
    answers = sum(replayed(name).answers for name in RECORDINGS)
    events = sum(replayed(name).events for name in RECORDINGS)
    assert answers >= 1300
    assert events >= 1450


def test_the_tables_name_steps_and_lines_that_exist() -> None:
    recordings = {name: replayed(name).recording for name in RECORDINGS}
    for name, step in [*NOT_REPLAYED, *CUT, *((g.recording, g.step) for g in (*REFUSED, *DIFFERENT))]:
        assert not name or not step or step in recordings[name].steps, (name, step)
    for name, line in WORLD:
        assert line in {act.line for act in recordings[name].acts}, (name, line)
