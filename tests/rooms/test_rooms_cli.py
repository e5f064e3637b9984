"""`simplexmcp rooms …` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simplexmcp import cli

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ["mcp", "watch", "check", "hook", "register", "install", "doctor", "export", "retention"]


def test_its_help_names_every_command_and_the_database(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", "--help"]) == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f"\n  {command} " in text
    assert "~/.agent-chat-mcp/chat.db" in text
    assert all(len(line) <= 110 for line in text.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own(command: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.lower().startswith("usage:")
    assert command in text.splitlines()[0]


@pytest.mark.parametrize("arguments", [[], ["mpc"], ["mcp", "--db", "x"], ["--version"]])
def test_wrong_usage_is_one_line_and_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", *arguments]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "--help" in told.err


def test_a_foreign_word_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", "\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_the_servers_help_names_its_settings(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", "mcp", "--help"]) == 0
    assert "AGENT_CHAT_MAX_WAIT_SECONDS" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["SIMPLEXMCP_ROOMS_DB", "AGENT_CHAT_DB"])
def test_a_folder_that_cannot_be_made_is_told_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(name, str(tmp_path / "file" / "rooms" / "chat.db"))
    assert cli.run(["rooms", "mcp"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("simplexmcp rooms: Cannot make the f")
    assert told.count("\n") == 1
