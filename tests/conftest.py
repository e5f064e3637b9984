"""Tests that use a program of the machine say so: `@pytest.mark.needs("zsh")`. `--without zsh` leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    absent = set(config.getoption("--without"))
    out = [item for item in items if absent & _needs(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def _needs(item: pytest.Item) -> set[str]:
    named = {name for mark in item.iter_markers("needs") for name in mark.args}
    return named | {"chromedriver"} if "browser" in getattr(item, "fixturenames", ()) else named
