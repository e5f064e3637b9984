"""One browser for all tests of pages in a process, started by the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import Browser, open_browser

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser
