"""Inputs that were nearly right, at each border of the program: it lives, its memory is bounded, it serves the next.

Each has a fixed seed and a number of inputs here. With `FUZZ_SECONDS` each goes on for so many seconds with a new seed:
so are the figures of docs/reliability.md made.
"""

from __future__ import annotations

import os
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.budget import Budget
from tests.fuzz.mutate import changed, damaged, recorded
from tests.fuzz.targets import TARGETS, run

if TYPE_CHECKING:
    from collections.abc import Callable

INPUTS = {
    "readers": 500, "link": 250, "events": 50, "answers": 25, "http": 60, "page": 50, "lines": 600,
    "viewer": 70, "bridge": 150,
}  # fmt: skip
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
GROWTH = 128 * 2**20
"""Bytes: more than the recordings and a server take, less than what one kept input in a thousand would."""


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_is_said_to_it_the_program_lives_in_bounded_memory_and_serves_the_next(
    target: str, record_property: Callable[[str, object], None], caplog: pytest.LogCaptureFixture
) -> None:
    if target in ("readers", "link", "events"):
        recorded()
    caplog.set_level("WARNING")
    budget = Budget(int(time.time()), seconds=SECONDS) if SECONDS else Budget(1, inputs=INPUTS[target])
    assert run(target, budget) < GROWTH
    record_property("inputs", budget.tried)
    assert budget.tried >= (1 if SECONDS else INPUTS[target])
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_a_seed_gives_the_same_inputs_again() -> None:
    def inputs(budget: Budget) -> list[tuple[object, bytes]]:
        frames = recorded(events=True)[:20]
        return [(changed(random, frames[0], frames), damaged(random, b"a line")) for random in budget]

    assert inputs(Budget(3, inputs=5)) == inputs(Budget(3, inputs=5)) != inputs(Budget(4, inputs=5))
    assert inputs(Budget(3, inputs=5, only=4)) == inputs(Budget(3, inputs=5))[3:4]


def test_inputs_differ_from_what_was_recorded() -> None:
    frames = recorded(events=True)[:20]
    random = Random(1)
    assert sum(changed(random, frame, frames) != frame for frame in frames * 10) > 150
    assert sum(damaged(random, b"some bytes") != b"some bytes" for _ in range(200)) > 150


def test_a_failure_says_which_input_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(budget: Budget) -> None:
        for _ in budget:
            assert budget.tried < 3

    monkeypatch.setitem(TARGETS, "readers", broken)
    with pytest.raises(AssertionError) as caught:
        run("readers", Budget(5, inputs=9))
    assert caught.value.__notes__[-1] == "readers: seed 5, input 3"
