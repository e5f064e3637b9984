from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from simplexmcp.audit import Audit, read_audit
from simplexmcp.errors import UserError


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


def test_a_full_disk_is_logged_and_the_next_line_is_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    audit = Audit(file, Noon())
    with monkeypatch.context() as patch:

        def full(fd: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "write", full)
        audit.write("created")
    assert "No space left on device" in caplog.text
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:5]))
        audit.write("torn")
    audit.write("whole")
    audit.close()
    assert [entry["event"] for entry in read_audit(file)] == ["whole"]


def test_a_symlink_is_refused(file: Path, tmp_path: Path):
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="symbolic"):
        Audit(file, Noon())
