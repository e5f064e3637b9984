"""Tests that use a program of the machine say so: `@pytest.mark.needs("zsh")`. `--without zsh` leaves them out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 2**31  # bytes: several times what all tests leave there

# How fast the machine is decides nothing. `--hypothesis-profile=thorough` is for the long runs.
settings.register_profile("quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=300)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="leave out the tests that need PROGRAM, which cannot be installed here",
    )


def pytest_configure() -> None:
    # Much of what is tested waits until the disk has it: in memory that takes no time.
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    absent = set(config.getoption("--without"))
    out = [item for item in items if absent & _needs(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def _needs(item: pytest.Item) -> set[str]:
    named = {name for mark in item.iter_markers("needs") for name in mark.args}
    return named | {"chromedriver"} if "browser" in getattr(item, "fixturenames", ()) else named
