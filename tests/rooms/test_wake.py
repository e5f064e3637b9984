from __future__ import annotations

import os
import select
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms.wake import Wake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    yield connection
    connection.close()


@pytest.fixture
def wake(tmp_path: Path, writer: sqlite3.Connection) -> Iterator[Wake]:
    wake = Wake(str(tmp_path / "chat.db"))
    yield wake
    wake.close()


def settle(wake: Wake) -> int:
    """Takes all looks that a write asks for; how many."""
    looks = 0
    while wake.drain() or wake.again() is not None:
        looks += 1
        if (again := wake.again()) is not None:
            time.sleep(max(0.0, again - time.monotonic()))
    return looks


def test_a_write_makes_it_readable_and_is_told_with_some_later_looks(wake: Wake, writer: sqlite3.Connection):
    fd = wake.fileno()
    assert fd is not None
    assert not wake.drain()
    writer.execute("INSERT INTO t VALUES (1)")
    assert select.select([fd], [], [], 5)[0]
    began = time.monotonic()
    assert settle(wake) == 4
    assert time.monotonic() - began > 0.15
    assert not wake.drain()


def test_a_wal_that_is_made_anew_is_told(wake: Wake, writer: sqlite3.Connection, tmp_path: Path):
    writer.execute("PRAGMA journal_mode=DELETE")
    writer.execute("PRAGMA journal_mode=WAL")
    settle(wake)
    writer.execute("INSERT INTO t VALUES (1)")
    assert wake.drain()


def test_the_file_behind_a_link_is_watched(tmp_path: Path, writer: sqlite3.Connection):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "chat.db")
    wake = Wake(str(link))
    try:
        writer.execute("INSERT INTO t VALUES (1)")
        assert wake.drain()
    finally:
        wake.close()


def test_other_files_of_the_folder_are_not_told(wake: Wake, tmp_path: Path):
    (tmp_path / "other.db-wal").write_text("x")
    (tmp_path / "chat.db-wal2").write_text("x")
    assert not wake.drain()


def test_more_writes_than_the_kernel_keeps_are_told_as_one(wake: Wake, writer: sqlite3.Connection):
    for number in range(3000):
        os.utime(writer.execute("PRAGMA database_list").fetchone()[2])
        if number % 100 == 0:
            writer.execute("INSERT INTO t VALUES (?)", (number,))
    assert wake.drain()


@pytest.mark.parametrize("path", [":memory:", "/no/such/folder/chat.db"])
def test_what_cannot_be_watched_has_nothing_to_wait_for(path: str):
    wake = Wake(path)
    assert wake.fileno() is None
    assert not wake.drain()
    wake.close()
