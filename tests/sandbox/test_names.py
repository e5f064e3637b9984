from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.sandbox.names import LONGEST, valid_name
from tests.recorded import oracle

NAMES = oracle("valid-names")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_becomes_what_a_real_core_makes_of_it(name: str) -> None:
    assert valid_name(name) == NAMES[name]


@given(st.text())
def test_a_valid_name_stays_as_it_is_and_is_short_and_tidy(name: str) -> None:
    valid = valid_name(name)
    assert valid_name(valid) == valid
    assert len(valid) <= LONGEST
    assert "  " not in valid
    assert valid == valid.strip()
    assert valid.isprintable()


def test_at_most_three_signs_stand_in_a_row() -> None:
    assert valid_name("J-----Doe") == "J---Doe"
    assert valid_name("a : : b") == "a : b"
