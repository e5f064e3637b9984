"""The page of figures: it says what was measured, of tests that there are."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from benchmarks import reliability
from benchmarks.figures import Bar, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of its own, with a row of each kind."""
    monkeypatch.setattr(reliability, "DATA", tmp_path)
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "page.md")
    (tmp_path / "conftest.py").write_text("from hypothesis import settings\nsettings.register_profile('thorough')\n")
    test = tmp_path / "test_one.py"
    test.write_text("def test_it(record_property):\n    record_property('inputs', 7)\n")
    for part in ("faults", "inputs"):
        row = {"what": f"Some {part}", "shown": "It goes on", "tests": [str(test)]}
        (tmp_path / f"{part}.json").write_text(json.dumps([row]))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["reliability", *arguments])
    return reliability.main()


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--check") == 0


@pytest.mark.parametrize("test", reliability.named_tests())
def test_each_row_names_tests_that_there_are(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert name in names or (not name and any(each.startswith("test_") for each in names))


def test_what_was_measured_is_kept_and_shown(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0
    assert "Not measured yet." in (data / "page.md").read_text()
    assert run(monkeypatch, "--measure", "faults", "inputs") == 0
    page = (data / "page.md").read_text()
    assert "| Some faults | It goes on | 1 |" in page
    assert "| All | | 1 |" in page
    assert "| Some inputs | It goes on | 7 |" in page
    assert run(monkeypatch, "--check") == 0
    (data / "page.md").write_text("old")
    assert run(monkeypatch, "--check") == 1
    assert "out of date" in capsys.readouterr().err


def test_a_bar_that_is_missed_ends_the_measuring_with_1(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pace(*, quick: bool) -> Iterator[Figure]:
        """The pace."""
        yield Figure("far", "km", 1, 1234, Bar(3, 1, at_least=False, of="median", unit="km"), "on foot")

    monkeypatch.setattr(reliability, "BENCHMARKS", [pace])
    assert run(monkeypatch, "--measure", "load") == 1
    assert "| far (on foot) | 1 km | 1,234 km | median 3 ≤ 1 km |" in (data / "page.md").read_text()


def test_inputs_are_those_of_hypothesis_and_those_that_a_test_reports() -> None:
    report = ET.fromstring('<a><properties><property name="inputs" value="5000"/></properties></a>')
    assert reliability._tried("    - 90 passing, 0 failing, and 3 invalid\n    - 10 passing, 0 failing", report) == 5100


def test_a_test_that_fails_is_not_counted() -> None:
    cases = "<testcase/><testcase><failure/></testcase><testcase><properties/></testcase>"
    assert reliability._passed("", ET.fromstring(f"<suite>{cases}</suite>")) == 2
