"""Tests that use a program of the machine say so: `@pytest.mark.needs("zsh")`. `--without zsh` leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


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
