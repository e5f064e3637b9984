"""What the server says of itself: build, limits, manual, and the time."""

from __future__ import annotations

import datetime as dt
import os
import time
import zoneinfo
from typing import TYPE_CHECKING

import pytest

from simplexmcp import __version__
from simplexmcp.rooms import build
from simplexmcp.rooms.build import Build
from simplexmcp.rooms.registry import ORDER, tools
from simplexmcp.rooms.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rooms.client import InProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program of two files."""
    (tmp_path / "program" / "part").mkdir(parents=True)
    (tmp_path / "program" / "a.py").write_text("a")
    (tmp_path / "program" / "part" / "b.py").write_text("b")
    return tmp_path / "program"


def test_it_is_known_without_a_persona_which_build_runs(alice: InProcess):
    info = alice.call("server_info")
    assert list(info) == [
        *("name", "version", "commit", "built_at", "artifact_hash", "stale"),
        *("latest_commit", "latest_built_at", "latest_artifact_hash", "limits", "manual"),
    ]
    assert (info["name"], info["version"], info["stale"]) == ("agent-chat-mcp", __version__, False)
    assert len(info["artifact_hash"]) == 64
    assert isinstance(info["commit"], str)
    assert info["latest_artifact_hash"] == info["artifact_hash"]
    assert tools(Settings(":memory:"))["server_info"].description.startswith(__version__)


def test_the_limits_are_those_that_hold(runtime: Callable[..., InProcess]):
    limits = runtime(max_wait=90).call("server_info")["limits"]
    assert limits["message_body_max_bytes"] == 10_000_000
    assert limits["mcp_stdio_frame_max_bytes"] == 67_108_864
    assert limits["bulk_read_default_budget_chars"] == 100_000
    assert (limits["max_bytes_range"], limits["get_message_max_chars_range"]) == ([1000, 400_000], [100, 400_000])
    waits = ("wait_seconds_max", "wait_seconds_default_max", "wait_seconds_configurable_hard_max")
    assert [limits[name] for name in waits] == [90, 25, 120]
    assert (limits["crossed_preview_chars_max"], limits["client_message_id_max_chars"]) == (2000, 200)
    assert limits["default_page_limits"] | {"pending_work": 50} == {
        "catch_up": 50,
        "read_history": 50,
        "my_mentions": 50,
        "search_messages": 20,
        "listings": 200,
        "pending_work": 50,
    }
    assert limits["metadata_caps_chars"] == {
        "room_name": 200,
        "room_description": 2000,
        "pinned_intro": 10_000,
        "agent_id": 200,
        "persona_brand": 100,
        "persona_model": 100,
        "persona_version": 100,
        "resume_word": 200,
        "room_role": 200,
        "agent_description": 2000,
        "claim_key": 500,
        "claim_note": 2000,
        "mentions_per_post": 100,
    }


def test_the_manual_names_every_tool_and_what_helps_beside_them(alice: InProcess):
    manual = alice.call("server_info")["manual"]
    assert manual.startswith("OPERATING MANUAL\n\n")
    assert len(manual.split("\n\n")) >= 8
    assert "--epoch" in manual
    words = {word.strip(".,:;()") for word in manual.split()}
    assert {name for name in ORDER if name not in words} == {"server_info"}  # which it is a part of
    for helper in ("--follow", "simplexmcp rooms install", "simplexmcp rooms check", "simplexmcp rooms retention"):
        assert helper in manual


def test_a_program_that_stayed_the_same_is_not_stale(folder: Path):
    program = Build(str(folder))
    os.utime(folder / "a.py", (1, 1))  # times are never compared
    assert not program.is_stale()
    assert program.started is not None
    latest = program.latest()
    assert latest is not None
    assert latest.artifact_hash == program.started.artifact_hash


@pytest.mark.parametrize("name", ["a.py", "part/b.py", "part/new.py"])
def test_a_program_with_a_changed_or_new_file_is_stale(folder: Path, name: str):
    program = Build(str(folder))
    (folder / name).write_text("changed")
    assert program.is_stale()
    assert program.started != program.latest()


def test_a_renamed_file_is_a_change_and_a_file_that_is_no_program_is_none(folder: Path):
    program = Build(str(folder))
    (folder / "notes.txt").write_text("x")
    assert not program.is_stale()
    (folder / "a.py").rename(folder / "c.py")
    assert program.is_stale()


def test_a_program_that_cannot_be_read_is_not_called_stale(folder: Path):
    program = Build(str(folder))
    for path in (folder / "a.py", folder / "part" / "b.py"):
        path.unlink()
    (folder / "part").rmdir()
    folder.rmdir()
    assert program.latest() is None
    assert not program.is_stale()
    assert Build(str(folder)).started is None


def test_a_stale_server_hands_its_commands_out_with_advice(
    alice: InProcess, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(build, "_BUILD", Build(str(folder)))
    persona = alice.persona()
    alice.call("create_room", name="hall")
    fresh = alice.call("join_room", room="hall")
    assert (fresh["server_stale"], "reconnect_guidance" in fresh) == (False, False)
    assert fresh["server_build"] == {"version": __version__, **fresh["latest_build"]}
    (folder / "a.py").write_text("changed")
    stale = alice.call("join_room", room="hall")
    assert stale["server_stale"] is True
    assert "resume_persona" in stale["reconnect_guidance"]
    assert stale["latest_build"]["artifact_hash"] != stale["server_build"]["artifact_hash"]
    assert persona.agent_id in stale["poller_cmd"]
    assert alice.call("server_info")["stale"] is True


@pytest.mark.parametrize(
    ("zone", "named"), [("Europe/Berlin", "Europe/Berlin"), ("Asia/Kolkata", "Asia/Kolkata"), ("UTC", "UTC")]
)
def test_the_time_is_the_databases_in_the_machines_zone(
    alice: InProcess, monkeypatch: pytest.MonkeyPatch, zone: str, named: str
):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        now = alice.call("what_time_is_it_right_now")
        local = dt.datetime.fromtimestamp(now["unix"], zoneinfo.ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert list(now) == ["iso", "unix", "at", "timezone"]
    assert dt.datetime.fromisoformat(now["iso"]).timestamp() == now["unix"]
    assert now["at"] == local == now["iso"][:19].replace("T", " ")
    assert now["timezone"] == named
    assert abs(now["unix"] - time.time()) < 5
