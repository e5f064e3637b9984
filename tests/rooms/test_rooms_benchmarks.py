"""The rooms' figures in their quickest form: each is measured and compared. Whether a bar is met is not asked."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as program
from benchmarks import rooms

MEASURES = {name: getattr(rooms, name) for name in rooms.__all__}


def test_every_measure_belongs_to_the_programs_list():
    assert set(MEASURES.values()) <= set(program.BENCHMARKS)


def test_the_figures_are_those_that_the_reference_was_measured_by(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rooms, "QUICK_LARGE", 200)
    monkeypatch.setattr(rooms, "QUICK_SECONDS", 0.05)
    seen: list[str] = []
    for measure in MEASURES.values():
        for figure in measure(quick=True):
            seen.append(figure.name)
            # A clock of the processor may not have moved in so short a time.
            assert figure.median > 0 or "processor time" in figure.name, figure
            assert figure.p99 >= figure.median
            assert figure.bar is not None
            assert figure.bar.limit == 1
            assert "reference" in figure.note
    assert sorted(seen) == sorted(rooms._REFERENCE)


@pytest.mark.parametrize(("name", "values", "met"), [("whoami", [1.0, 2.0], True), ("posts by 1 server", [9.0], False)])
def test_a_bar_is_the_ratio_to_the_reference(name: str, values: list[float], met: bool):
    figure = rooms._figure(name, values)
    assert figure.bar is not None
    assert figure.bar.value == figure.median / rooms._REFERENCE[name]["0.17.0"]
    assert figure.bar.met is met
