"""The list of requirements is complete, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import CASES, FLOWS, LATER, Requirement

HERE = Path(__file__).parent
USERS = [n for n in range(1, 42) if n not in (8, 19)]
ATTACKS = [n for n in range(1, 51) if n not in (13, 37, 44, 46)]
EVERY_CASE = {f"U{n}" for n in USERS} | {f"S{n}" for n in ATTACKS}
NAMED = {f"flow {n}": entry for n, entry in FLOWS.items()} | CASES


@cache
def collected(file: str) -> frozenset[str]:
    """The tests that pytest collects from a file."""
    tree = ast.parse((HERE / file).read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("entry", NAMED.values(), ids=NAMED)
def test_each_requirement_says_what_it_is_and_its_tests_exist(entry: Requirement) -> None:
    assert re.fullmatch(r"[A-Z].+\.", entry.says)
    assert entry.tests
    for named in entry.tests:
        file, _, name = named.partition("::")
        assert name in collected(file), named


def test_no_flow_is_without_a_test_of_its_own_name() -> None:
    assert list(FLOWS) == list(range(1, 17))
    for number, entry in FLOWS.items():
        assert any(f"::test_flow_{number}_" in test for test in entry.tests)


def test_each_case_is_shown_or_named_with_the_reason_why_not_yet() -> None:
    assert CASES.keys() | LATER.keys() == EVERY_CASE
    assert not CASES.keys() & LATER.keys()
    assert all(reason.endswith(".") for reason in LATER.values())
