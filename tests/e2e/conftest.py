"""Time in these tests skips what everybody only waits for."""

from __future__ import annotations

import inspect

import pytest

from tests.clocks import run_skipping


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A clock fixture would have to be named by each test: pytest-trio looks at a test's own arguments only.
    for item in items:
        ours = "/e2e/" in str(item.path) and inspect.iscoroutinefunction(getattr(item, "obj", None))
        if ours and not any("run" in marker.kwargs for marker in item.iter_markers("trio")):
            item.add_marker(pytest.mark.trio(run=run_skipping), append=False)
