"""Scenes for the tests of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from tests.files.scene import Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A clock fixture would have to be named by each test: pytest-trio looks at a test's own arguments only.
    for item in items:
        if {"scene", "direct"} & set(getattr(item, "fixturenames", ())) and "/files/" in str(item.path):
            item.add_marker(pytest.mark.trio(run=_patient), append=False)


def _patient(*args: Any, clock: trio.abc.Clock | None = None, **options: Any) -> Any:
    # Time jumps when nothing happened for a moment: the disk is worked on in threads, which take real time.
    return trio.run(*args, clock=clock or MockClock(autojump_threshold=0.01), **options)


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
