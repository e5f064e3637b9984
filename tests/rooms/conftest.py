"""A database file for each test, and clients on it that are closed at the end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.rooms.client import InProcess, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIMPLEXMCP_ROOMS_DB", "AGENT_CHAT_DB", "AGENT_CHAT_MAX_WAIT_SECONDS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in (("HOME", "home"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's database is; made by the first client."""
    return tmp_path / "rooms" / "chat.db"


@pytest.fixture
def runtime(path: Path) -> Iterator[Callable[..., InProcess]]:
    """Makes runtimes in this process: `runtime()`, one for each agent."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(InProcess(path, **options))


@pytest.fixture
def server(path: Path) -> Iterator[Callable[..., Server]]:
    """Starts server processes on the database: `server()`, one for each agent."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Server(path, **options))


@pytest.fixture
def alice(runtime: Callable[..., InProcess]) -> InProcess:
    """A runtime without a persona."""
    return runtime()


@pytest.fixture
def bob(runtime: Callable[..., InProcess]) -> InProcess:
    """Another one."""
    return runtime()
