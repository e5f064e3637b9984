from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms import cli, clients, lock
from simplexmcp.rooms.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[[], dict[str, dict[str, Any]]]


@pytest.fixture(autouse=True)
def _at(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_DB", str(path))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """The checks by name, from the JSON form; the exit code agrees."""

    def asked() -> dict[str, dict[str, Any]]:
        code = cli.run(["doctor", "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert answer["ok"] == all(check["ok"] for check in answer["checks"]) == (code == 0)
        return {check["check"]: check for check in answer["checks"]}

    return asked


def make(path: Path) -> None:
    open_database(str(path)).close()


def test_a_healthy_machine_is_told_in_lines_with_exit_0(path: Path, capsys: pytest.CaptureFixture[str]):
    make(path)
    cli.run(["install", "claude"])
    capsys.readouterr()
    with lock.hold("x.lock"):
        assert cli.run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"ok    database: {path}: 0 rooms, 0 messages."
    assert any(line.startswith("ok    watchers: 1 running (processes ") for line in lines)
    assert "ok    client claude: Claude Code has the server and the hooks." in lines


def test_a_missing_database_is_no_fault_and_is_not_made(path: Path, ask: Ask):
    assert "not there yet" in ask()["database"]["text"]
    assert not path.exists()


def test_a_file_that_is_no_database_is_wrong(path: Path, ask: Ask):
    path.parent.mkdir()
    path.write_text("nonsense " * 200)
    path.chmod(0o600)
    found = ask()["database"]
    assert found["text"] == f"{path} is no SQLite database."
    assert found["fix"] == "Name another file with SIMPLEXMCP_ROOMS_DB."


def test_open_permissions_come_with_the_command_that_closes_them(path: Path, ask: Ask):
    make(path)
    path.chmod(0o644)
    assert ask()["permissions"]["fix"] == f"chmod 600 {path}"


def test_the_schema_of_a_newer_program_is_wrong_and_of_an_older_one_is_not(path: Path, ask: Ask):
    make(path)
    for version, check, text in ((0, "schema", "the next server"), (99, "database", "newer simplexmcp")):
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version={version}")
        connection.close()
        found = ask()[check]
        assert text in found["text"]
        assert found["ok"] is (version == 0)


def test_a_left_over_lock_is_told_and_is_no_fault(ask: Ask):
    file = Path(lock.folder()) / "x.lock"
    file.parent.mkdir()
    file.write_text("")
    assert "1 left over" in ask()["watchers"]["text"]


def test_a_lock_folder_that_is_a_link_is_wrong(tmp_path: Path, ask: Ask):
    Path(lock.folder()).symlink_to(tmp_path)
    assert ask()["watchers"]["fix"].startswith("rm -r ")


def test_a_client_that_does_not_know_the_rooms_is_named_with_the_command(tmp_path: Path, ask: Ask):
    assert "client codex" not in ask()
    program = tmp_path / "codex"
    program.write_text(f"#!{sys.executable}\n")
    program.chmod(0o755)
    assert "simplexmcp rooms install codex" in ask()["client codex"]["text"]


def test_another_programs_entry_and_lost_hooks_are_wrong(tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]):
    cli.run(["install", "gemini"])
    capsys.readouterr()
    file = tmp_path / "home" / ".gemini" / "settings.json"
    whole = json.loads(file.read_text())
    assert ask()["client gemini"]["ok"]

    file.write_text(json.dumps(whole | {"hooks": {"AfterTool": whole["hooks"]["AfterTool"]}}))
    assert "not all there" in ask()["client gemini"]["text"]
    file.write_text(json.dumps({"mcpServers": {clients.server_name(): {"command": "npx", "args": ["y"]}}}))
    assert "npx y" in ask()["client gemini"]["text"]
    file.write_text(json.dumps({"hooks": whole["hooks"]}))
    assert "not the server" in ask()["client gemini"]["text"]
    file.write_text("{")
    assert "left alone" in ask()["client gemini"]["text"]


def test_another_installation_of_this_program_is_fine(tmp_path: Path, ask: Ask):
    entry = {"mcpServers": {clients.server_name(): {"command": "uvx", "args": ["simplexmcp", "rooms", "mcp"]}}}
    (tmp_path / "home" / ".claude.json").write_text(json.dumps(entry))
    assert ask()["client claude"] == {
        "check": "client claude",
        "ok": True,
        "text": "Claude Code has the server.",
        "fix": None,
    }


def test_a_database_in_memory_is_wrong(monkeypatch: pytest.MonkeyPatch, ask: Ask):
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_DB", ":memory:")
    assert ask()["database"]["fix"].startswith("Name a file")


def test_a_wrong_command_line_is_exit_2():
    assert cli.run(["doctor", "--loud"]) == 2
