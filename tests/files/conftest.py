"""Scenes for the tests of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clocks import run_skipping
from tests.files.scene import Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A clock fixture would have to be named by each test: pytest-trio looks at a test's own arguments only.
    for item in items:
        if {"scene", "direct"} & set(getattr(item, "fixturenames", ())) and "/files/" in str(item.path):
            item.add_marker(pytest.mark.trio(run=run_skipping), append=False)


@pytest.fixture(params=[False, True], ids=["direct", "group"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """In both kinds of chats."""
    async with open_scene(tmp_path, group=request.param) as scene:
        yield scene


@pytest.fixture
async def direct(tmp_path: Path) -> AsyncIterator[Scene]:
    """In a contact."""
    async with open_scene(tmp_path) as scene:
        yield scene
