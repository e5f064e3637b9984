from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplexmcp.audit import Audit, read_audit
from simplexmcp.errors import Refused, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_each_event_is_one_line_with_its_time(file: Path):
    audit = Audit(file, Noon())
    audit.write("created", action=7, tool="send", chat="#15", by=None)
    audit.write("decided", action=7, by={"member": 3, "name": "A\nlice"}, approved=True)
    audit.close()
    assert len(file.read_bytes().splitlines()) == 2
    assert list(read_audit(file)) == [
        {"at": "2026-11-30T12:00:00Z", "event": "created", "action": 7, "tool": "send", "chat": "#15"},
        {
            "at": "2026-11-30T12:00:00Z",
            "event": "decided",
            "action": 7,
            "by": {"member": 3, "name": "A\nlice"},
            "approved": True,
        },
    ]


def test_a_new_run_appends(file: Path):
    for event in ("started", "stopped"):
        audit = Audit(file, Noon())
        audit.write(event)
        audit.close()
    assert [entry["event"] for entry in read_audit(file)] == ["started", "stopped"]


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277])
def test_the_file_is_private_whatever_the_umask(file: Path, umask: int):
    before = os.umask(umask)
    try:
        Audit(file, Noon()).close()
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_secret_never_gets_in_and_long_values_are_cut(file: Path):
    audit = Audit(file, Noon(), secrets=("s3cret", ""))
    audit.write("failed", error="401 with Bearer s3cret", detail=["s3cret", {"s3cret": "s3cret"}], long="x" * 600)
    audit.close()
    assert b"s3cret" not in file.read_bytes()
    assert len(next(read_audit(file))["long"]) == 501


def test_lone_surrogates_and_foreign_objects_are_written(file: Path):
    audit = Audit(file, Noon())
    audit.write("refused", name="\ud800", path=Path("/x"))
    audit.close()
    assert next(read_audit(file))["path"] == "/x"


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk that takes five bytes more, then nothing."""
    write, left = os.write, [5]

    def full(fd: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(28, "No space left on device")
        taken, left[0] = left[0], 0
        return write(fd, bytes(data[:taken]))

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        yield


def test_what_a_full_disk_refuses_is_written_in_its_order_as_soon_as_there_is_room(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    audit = Audit(file, Noon())
    audit.write("before")
    with full_disk(monkeypatch):
        audit.write("torn")
        audit.write("refused")
    assert "No space left on device" in caplog.text
    audit.write("after")
    audit.close()
    assert [entry["event"] for entry in read_audit(file)] == ["before", "torn", "refused", "after"]
    assert len(file.read_bytes().splitlines()) == 4


def test_a_log_that_cannot_be_written_refuses_what_it_would_not_know(file: Path, monkeypatch: pytest.MonkeyPatch):
    audit = Audit(file, Noon())
    why = r"can't write its audit log \(No space left on device\), so nothing was done"
    with full_disk(monkeypatch):
        audit.write("decided", action=7)
        with pytest.raises(Refused, match=why):
            audit.secure()
    audit.secure()
    assert [entry["event"] for entry in read_audit(file)] == ["decided"]
    audit.close()


def test_a_disk_that_does_not_keep_what_it_took_is_one_that_refuses(file: Path, monkeypatch: pytest.MonkeyPatch):
    audit = Audit(file, Noon())
    audit.write("decided", action=7)

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        for _ in range(2):
            with pytest.raises(Refused, match="Input/output error"):
                audit.secure()
    audit.secure()
    audit.close()


def test_the_lines_that_wait_for_room_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch):
    audit = Audit(file, Noon())
    with full_disk(monkeypatch):
        for number in range(20_000):
            audit.write("refused-command", name="x" * 100, member=number)
    audit.write("after")
    audit.close()
    kept = [entry["event"] for entry in read_audit(file)]
    assert 5_000 < len(kept) < 20_000
    assert file.stat().st_size <= (1 << 20) + 5


def test_what_still_waits_at_the_end_is_written_then(file: Path, monkeypatch: pytest.MonkeyPatch):
    audit = Audit(file, Noon())
    with full_disk(monkeypatch):
        audit.write("stopped")
    audit.close()
    assert [entry["event"] for entry in read_audit(file)] == ["stopped"]


def test_what_never_finds_room_is_said_to_be_missing(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    audit = Audit(file, Noon())
    with full_disk(monkeypatch):
        audit.write("stopped")
        audit.close()
    assert list(read_audit(file)) == []
    assert "its last lines are missing" in caplog.text


def test_a_line_that_a_crash_tore_spoils_no_other(file: Path):
    audit = Audit(file, Noon())
    audit.write("before")
    audit.close()
    with file.open("ab") as torn:
        torn.write(b'{"at":"2026-11-30T12:00:00Z","event":"to')
    for _ in range(2):
        audit = Audit(file, Noon())
        audit.write("after")
        audit.close()
    assert [entry["event"] for entry in read_audit(file)] == ["before", "after", "after"]


def test_a_symlink_is_refused(file: Path, tmp_path: Path):
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="symbolic"):
        Audit(file, Noon())
