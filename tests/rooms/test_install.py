from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.errors import UserError
from simplexmcp.rooms import cli, clients, edits
from simplexmcp.rooms.watcher_command import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAKE = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv) + "\\n")
sys.stderr.write({said!r})
sys.exit({code})
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, empty, and no client's program in PATH."""
    reference = ("AGENT_CHAT_MCP_NAME", "AGENT_CHAT_FORCE_REREGISTER", "AGENT_CHAT_AGY_CONFIG")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", *reference):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "home"


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Callable[[], list[list[str]]]]:
    """Puts a client's program into PATH: `program(name, code, said)` gives a function that tells its calls."""

    def made(name: str, code: int = 0, said: str = "") -> Callable[[], list[list[str]]]:
        log = tmp_path / f"{name}.log"
        log.touch()
        script = tmp_path / "bin" / name
        script.write_text(FAKE.format(python=sys.executable, log=str(log), said=said, code=code))
        script.chmod(0o755)
        return lambda: [json.loads(line)[1:] for line in log.read_text().splitlines()]

    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that succeeds; what it printed."""

    def ran(*words: str) -> str:
        code = cli.run(words)
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return ran


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that fails; its line."""

    def ran(*words: str) -> str:
        assert cli.run(words) != 0
        return capsys.readouterr().err

    return ran


def files(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(file.relative_to(folder)): (file.read_text(), file.stat().st_mode)
        for file in folder.rglob("*")
        if file.is_file()
    }


OTHER = {"other": {"command": "x"}}
STOP = {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
SETTINGS = {
    "claude": {
        ".claude.json": json.dumps({"numStartups": 7, "mcpServers": OTHER, "b": []}, indent=2) + "\n",
        ".claude/settings.json": json.dumps({"model": "\u00e4", "hooks": STOP}, indent=4, ensure_ascii=False),
    },
    "codex": {".codex/config.toml": '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"'},
    "gemini": {".gemini/settings.json": '{"theme":"dark","mcpServers":{"other":{"command":"x"}}}'},
    "agy": {".gemini/config/mcp_config.json": json.dumps({"mcpServers": OTHER}, indent="\t") + "\n"},
}
ALL = tuple(SETTINGS)


def write_settings(home: Path, client: str) -> None:
    for name, text in SETTINGS[client].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o640)


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("before", [True, False], ids=["settings", "nothing"])
def test_undo_leaves_everything_as_it_was(run: Callable[..., str], home: Path, client: str, before: bool):
    if before:
        write_settings(home, client)
    found = files(home)
    run("install", client)
    assert files(home) != found
    run("install", client, "--undo")
    assert files(home) == found


@pytest.mark.parametrize("client", ALL)
def test_a_second_time_changes_nothing(run: Callable[..., str], home: Path, client: str):
    write_settings(home, client)
    run("install", client)
    found = files(home)
    assert "already" in run("install", client)
    assert files(home) == found
    run("install", client, "--undo")
    found = files(home)
    assert "has no" in run("install", client, "--undo")
    assert files(home) == found


@pytest.mark.parametrize("client", ALL)
def test_a_dry_run_shows_the_changes_and_makes_none(run: Callable[..., str], home: Path, client: str):
    write_settings(home, client)
    found = files(home)
    shown = run("install", client, "--dry-run")
    assert "+" in shown
    assert clients.server_name() in shown
    assert files(home) == found


@pytest.mark.parametrize("client", ALL)
def test_what_is_not_ours_is_kept_with_its_mode(run: Callable[..., str], home: Path, client: str):
    write_settings(home, client)
    run("install", client)
    for name, text in SETTINGS[client].items():
        now = (home / name).read_text()
        assert (home / name).stat().st_mode & 0o777 == 0o640
        read = tomllib.loads if name.endswith("toml") else json.loads
        assert contains(read(now), read(text))


def contains(now: Any, before: Any) -> bool:
    if isinstance(before, dict):
        return list(before) == [key for key in now if key in before] and all(
            contains(now[key], value) for key, value in before.items()
        )
    if isinstance(before, list):
        return now[: len(before)] == before
    return now == before


def test_claude_code_gets_the_server_and_hooks_that_any_shell_can_run(run: Callable[..., str], home: Path):
    run("install", "claude")
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["agent-chat"]
    assert entry["type"] == "stdio"
    assert [entry["command"], *entry["args"]] == clients.server_command()
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    assert list(hooks) == ["PostToolUse", "UserPromptSubmit", "Stop"]
    (group,) = hooks["PostToolUse"]
    command = f"'{sys.executable}' '{LAUNCHER}' hook claude"
    assert group == {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 10}]}
    assert subprocess.run(["/bin/sh", "-c", f"{command} </dev/null"], check=False, capture_output=True).returncode == 1


def test_codex_gets_hooks_and_may_wait_an_hour_unless_the_user_said_otherwise(run: Callable[..., str], home: Path):
    assert "/hooks" in run("install", "codex")
    config = tomllib.loads((home / ".codex" / "config.toml").read_text())
    assert config["background_terminal_max_timeout"] == 3_600_000
    assert config["mcp_servers"]["agent-chat"]["command"] == clients.server_command()[0]
    assert "Stop" in json.loads((home / ".codex" / "hooks.json").read_text())["hooks"]
    run("install", "codex", "--undo")
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("background_terminal_max_timeout = 5\n")
    run("install", "codex")
    assert tomllib.loads((home / ".codex" / "config.toml").read_text())["background_terminal_max_timeout"] == 5


def test_hooks_of_an_earlier_installation_are_replaced(run: Callable[..., str], home: Path):
    run("install", "claude")
    file = home / ".claude" / "settings.json"
    file.write_text(file.read_text().replace(LAUNCHER, "/old/simplexmcp/rooms/launcher.py"))
    run("install", "claude")
    assert "/old/" not in file.read_text()
    assert file.read_text().count(LAUNCHER) == 3


def test_settings_elsewhere_are_found(run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "x"))
    run("install", "claude")
    run("install", "codex")
    assert sorted(file.name for file in (tmp_path / "c").iterdir()) == [".claude.json", "settings.json"]
    assert sorted(file.name for file in (tmp_path / "x").iterdir()) == ["config.toml", "hooks.json"]


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"hooks": {},}'),
        ("claude", ".claude/settings.json", '// mine\n{"hooks": {}}'),
        ("claude", ".claude/settings.json", '{"hooks": []}'),
        ("claude", ".claude/settings.json", '{"hooks": {"Stop": {}}}'),
        ("claude", ".claude/settings.json", '{"a": 1, "a": 2}'),
        ("claude", ".claude.json", "[]"),
        ("claude", ".claude.json", '{"mcpServers": 1}'),
        ("gemini", ".gemini/settings.json", "\udcff"),
        ("codex", ".codex/config.toml", "= 1"),
        ("codex", ".codex/config.toml", "mcp_servers = 1"),
        ("codex", ".codex/hooks.json", "nonsense"),
    ],
)
def test_a_file_that_does_not_read_as_settings_is_refused_and_left_alone(
    refused: Callable[..., str], home: Path, client: str, name: str, text: str
):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text, errors="surrogateescape")
    before = (home / name).read_bytes()
    said = refused("install", client)
    assert str(home / name) in said
    assert "left alone" in said
    assert (home / name).read_bytes() == before
    assert [file for file in home.rglob("*") if file.is_file()] == [home / name]


def test_a_link_to_the_settings_stays_a_link(run: Callable[..., str], home: Path, tmp_path: Path):
    real = tmp_path / "dotfiles.json"
    real.write_text('{\n  "a": 1\n}\n')
    (home / ".claude.json").symlink_to(real)
    run("register", "claude")
    assert (home / ".claude.json").is_symlink()
    assert "agent-chat" in real.read_text()
    run("register", "claude", "--undo")
    assert real.read_text() == '{\n  "a": 1\n}\n'


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    refused: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    (home / ".claude.json").write_text("{}")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused("register", "claude")
    assert files(home).keys() == {".claude.json"}
    assert (home / ".claude.json").read_text() == "{}"


def test_a_change_of_another_program_meanwhile_is_not_overwritten(home: Path):
    file = home / "x.json"
    file.write_text('{"a": 1}')
    edit = edits.json_edit(file, {"a": 2})
    file.write_text('{"a": 3}')
    with pytest.raises(UserError, match="just now"):
        edits.apply(edit)
    assert file.read_text() == '{"a": 3}'


def test_another_programs_entry_is_replaced_only_by_force(
    run: Callable[..., str], refused: Callable[..., str], home: Path
):
    (home / ".claude.json").write_text(
        json.dumps({"mcpServers": {"agent-chat": {"command": "npx", "args": ["x"], "env": {"A": "1"}}}})
    )
    assert "npx x" in refused("register", "claude")
    run("register", "claude", "--force")
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["agent-chat"]
    assert (entry["command"], entry["env"]) == (clients.server_command()[0], {"A": "1"})


def test_a_codex_entry_by_hand_is_not_touched_without_its_program(refused: Callable[..., str], home: Path):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('[mcp_servers.agent-chat]\ncommand = "npx"\n')
    assert "npx" in refused("register", "codex")
    assert "by hand" in refused("register", "codex", "--force")


@pytest.mark.parametrize(
    ("client", "add", "remove"),
    [
        (
            "claude",
            ["mcp", "add", "--scope", "user", "--transport", "stdio", "agent-chat", "--"],
            ["mcp", "remove", "--scope", "user", "agent-chat"],
        ),
        ("codex", ["mcp", "add", "agent-chat", "--"], ["mcp", "remove", "agent-chat"]),
        ("gemini", ["mcp", "add", "--scope", "user", "agent-chat"], ["mcp", "remove", "--scope", "user", "agent-chat"]),
    ],
)
def test_a_clients_own_program_adds_and_removes_the_server(
    run: Callable[..., str], home: Path, program: Any, client: str, add: list[str], remove: list[str]
):
    write_settings(home, client)
    found = files(home)
    calls = program(client)
    assert "would run" in run("register", client, "--dry-run")
    assert calls() == []
    run("register", client)
    assert calls() == [[*add, *clients.server_command()]]
    assert files(home) == found
    # As the program would have written it.
    edits.apply(clients.server_edit(clients.client_named(client), clients.server_command()))
    run("register", client, "--undo")
    assert calls()[1:] == [remove]


def test_a_program_that_refuses_is_told_in_its_words(refused: Callable[..., str], program: Any):
    program("claude", 1, "No\nway\x1b[2J")
    said = refused("register", "claude")
    assert "claude mcp add failed: No way" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("words", [[], ["emacs"], ["claude", "codex"], ["claude", "--loud"], ["claude", "--undo=1"]])
@pytest.mark.parametrize("command", ["register", "install"])
def test_a_wrong_command_line_is_exit_2(capsys: pytest.CaptureFixture[str], command: str, words: list[str]):
    assert cli.run([command, *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", ["register", "install", "doctor"])
def test_help_is_shown(run: Callable[..., str], command: str):
    assert run(command, "--help").startswith(f"Usage: simplexmcp rooms {command}")


def test_the_variables_of_the_reference_program_name_the_server_its_file_and_force(
    home: Path,
    run: Callable[..., str],
    program: Callable[..., Callable[[], list[list[str]]]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("AGENT_CHAT_MCP_NAME", "team-chat")
    monkeypatch.setenv("AGENT_CHAT_AGY_CONFIG", str(home / "agy.json"))
    (home / "agy.json").write_text('{"mcpServers": {"team-chat": {"command": "node"}, "agent-chat": {"command": "x"}}}')
    monkeypatch.setenv("AGENT_CHAT_FORCE_REREGISTER", "1")

    assert "server team-chat" in run("register", "agy")
    servers = json.loads((home / "agy.json").read_text())["mcpServers"]
    assert servers["team-chat"]["args"][-2:] == ["rooms", "mcp"]
    assert servers["agent-chat"] == {"command": "x"}

    calls = program("claude")
    run("register", "claude")
    assert calls()[0][:8] == ["mcp", "add", "--scope", "user", "--transport", "stdio", "team-chat", "--"]

    run("register", "codex")
    assert "team-chat" in tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]


@pytest.mark.parametrize("name", ["", "  ", "a b", 'x"]', "--", "-x", "ä"])
def test_a_name_that_settings_cannot_hold_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_CHAT_MCP_NAME", name)
    with pytest.raises(UserError, match="AGENT_CHAT_MCP_NAME"):
        clients.server_name()
