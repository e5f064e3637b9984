"""The fake libsimplex, compiled once and loaded as at the start of a process."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from simplex_chat import _native

from tests.core.fakelib import compiled


@pytest.fixture(scope="session")
def library_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(Path(__file__).with_name("fakelib.c"), tmp_path_factory.mktemp("libs"))


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader as at the start of a process."""
    for name in ("_lib", "_libc", "_backend"):
        monkeypatch.setattr(_native, name, None)
    monkeypatch.delenv("SIMPLEX_LIBS_DIR", raising=False)


@pytest.fixture
def library(library_file: Path, unloaded: None, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """The fake library, where the loader finds it; its counters are at zero."""
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(library_file.parent))
    fake = ctypes.CDLL(str(library_file))
    # So that what the program frees is counted.
    monkeypatch.setattr(_native, "_load_libc", lambda: fake)
    fake.fake_reset()
    return fake
