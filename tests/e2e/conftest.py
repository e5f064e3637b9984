"""Time in these tests runs ten times faster than on the wall."""

from __future__ import annotations

import pytest
from trio.testing import MockClock


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock(rate=10.0)
