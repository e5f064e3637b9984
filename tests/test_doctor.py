from __future__ import annotations

import json
import os
import shutil
import socket
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp import cli, doctor
from simplexmcp.agents import default_data
from simplexmcp.clock import SystemClock
from simplexmcp.doctor import Agent, Check, examine
from simplexmcp.folder import ServerInfo, open_folder
from simplexmcp.register import entry
from tests.e2e.world import free_port, open_world

if TYPE_CHECKING:
    from pathlib import Path

STARTED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without anything in it, no `claude` program, a disk with room, and a computer of 2027."""
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=2 << 30))
    for name, value in {"HOME": "", "XDG_DATA_HOME": "share", "XDG_CACHE_HOME": "cache", "PATH": "bin"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    for name in ("SIMPLEX_LIBS_DIR", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SystemClock, "now", lambda self: datetime(2027, 1, 1, tzinfo=UTC))
    return tmp_path


def started(home: Path, port: int = 0) -> Path:
    """The data folder of an agent whose server ended."""
    data = default_data("my-agent")
    port = port or free_port()
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(ServerInfo(f"http://127.0.0.1:{port}/mcp", port, 23, "0.1.0", os.getpid(), STARTED))
    return data


def look(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Check]:
    """The checks by name; both forms and the exit code must agree."""
    code = cli.run(["doctor", *words, "--json"])
    said = json.loads(capsys.readouterr().out)
    checks = {check["check"]: Check(**check) for check in said["checks"]}
    bad = any(check.result == "fail" for check in checks.values())
    assert (said["ok"], code) == (not bad, 1 if bad else 0)
    assert cli.run(["doctor", *words]) == code
    out, err = capsys.readouterr()
    *lines, _ = out.splitlines()
    assert err == ""
    assert lines == [f"{check['result']:4}  {check['check']}: {check['text']}" for check in said["checks"]]
    return checks


def results(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.result for name, check in checks.items()}


def test_a_new_computer_is_fine_and_knows_what_is_still_to_come(home: Path, capsys):
    checks = look(capsys, "--port", str(free_port()))
    assert results(checks) == {
        "python": "ok", "core": "warn", "clock": "ok", "disk": "ok", "port": "ok", "claude": "warn",
    }  # fmt: skip
    assert "the first start downloads it from github.com" in checks["core"].text
    assert not (home / "cache").exists()
    assert not (home / "share").exists()


def test_an_agent_that_was_never_started_fails_with_the_command_to_start_it(home: Path, capsys):
    checks = look(capsys, "my-agent", "--port", str(free_port()))
    assert checks["folder"] == Check(
        "folder", "fail", "The agent was never started. Start it with: simplexmcp serve my-agent"
    )


def test_a_stopped_agent_has_its_checks(home: Path, capsys):
    started(home)
    checks = look(capsys, "my-agent", "--core", "sandbox")
    assert results(checks) == {
        "python": "ok", "core": "ok", "clock": "ok", "disk": "ok", "folder": "ok", "token": "ok", "server": "warn",
        "port": "ok", "claude": "warn", "registration": "warn",
    }  # fmt: skip
    assert "Start it with: simplexmcp serve my-agent" in checks["server"].text
    assert "Add it with: simplexmcp register my-agent" in checks["registration"].text


def test_commands_in_the_lines_name_the_folder_that_was_given(home: Path, capsys):
    folder = home / "it's"
    shutil.move(started(home), folder)
    text = look(capsys, "my-agent", "--core", "sandbox", "--data", str(folder))["server"].text
    assert text.endswith(f"""simplexmcp serve my-agent --data '{home}/it'"'"'s'""")


def test_what_others_may_use_is_told(home: Path, capsys):
    data = started(home)
    data.chmod(0o755)
    (data / "token").chmod(0o644)
    check = look(capsys, "my-agent", "--core", "sandbox")["folder"]
    assert check.result == "warn"
    assert check.text.startswith("In ")
    assert " others have rights to the folder 0755, token 0644. Start the agent again" in check.text
    assert (data / "token").stat().st_mode & 0o777 == 0o644


def test_a_folder_that_no_start_accepts_fails(home: Path, capsys):
    data = started(home)
    (data / "files").symlink_to(home)
    check = look(capsys, "my-agent", "--core", "sandbox")["folder"]
    assert check.result == "fail"
    assert "is a symlink" in check.text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("token", "short", "is damaged. Delete it"),
        ("token", None, "is missing. Start the agent"),
        ("headers.json", '{"Authorization":"Bearer x"}', "headers.json does not hold the token"),
        ("headers.json", "{", "headers.json does not hold the token"),
        ("headers.json", None, "headers.json does not hold the token"),
    ],
)
def test_a_token_that_no_client_can_use_fails(home: Path, capsys, name: str, content: str | None, says: str):
    data = started(home)
    (data / name).unlink()
    if content is not None:
        (data / name).write_text(content)
        (data / name).chmod(0o600)
    check = look(capsys, "my-agent", "--core", "sandbox")["token"]
    assert check.result == "fail"
    assert says in check.text


def test_a_port_of_another_program_fails(home: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        started(home, port)
        for words in (["my-agent"], ["--port", str(port)]):
            check = look(capsys, *words, "--core", "sandbox")["port"]
            assert check == Check(
                "port", "fail",
                f"Port {port} is used by another program. End that, or choose another port with --port.",
            )  # fmt: skip


def test_a_port_of_another_agent_is_told_with_its_name(home: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        data = started(home, port)
        with open_folder("my-agent", data, pytest.fail):
            check = look(capsys, "--port", str(port))["port"]
    assert check == Check("port", "warn", f"Port {port} is used by agent my-agent. Give a second agent another --port.")


def test_a_server_that_does_not_answer_fails(home: Path, capsys):
    data = started(home)
    with open_folder("my-agent", data, pytest.fail):
        checks = look(capsys, "my-agent", "--core", "ws://127.0.0.1:1")
    assert checks["port"].result == "fail"
    assert "does not answer" in checks["port"].text
    assert checks["server"].result == "ok"
    assert checks["core"] == Check("core", "ok", "The running agent has it")


def test_a_lost_link_fails_with_its_time(home: Path, capsys):
    data = started(home)
    (data / "audit.jsonl").write_text('{"at":"2026-12-30T08:00:00Z","event":"link-lost"}\n')
    (data / "audit.jsonl").chmod(0o600)
    with open_folder("my-agent", data, pytest.fail):
        check = look(capsys, "my-agent")["link"]
    assert check.result == "fail"
    assert check.text.startswith("The link to the SimpleX core is down since 30 Dec")


def test_a_clock_that_went_back_fails(home: Path, capsys):
    data = started(home)
    (data / "audit.jsonl").write_text('{"at":"2027-02-01T00:00:00Z","event":"owners-reset"}\n')
    check = look(capsys, "my-agent", "--core", "sandbox")["clock"]
    assert check.result == "fail"
    assert check.text.endswith("which was before. Set the clock.")


def test_a_clock_before_the_installation_fails(home: Path):
    checks = examine(None, "sandbox", free_port(), datetime(1970, 1, 1, tzinfo=UTC))
    assert next(check for check in checks if check.check == "clock").result == "fail"


@pytest.mark.parametrize(("free", "result"), [(10 << 20, "fail"), (200 << 20, "warn"), (2 << 30, "ok")])
def test_a_disk_without_room_is_told(home: Path, capsys, monkeypatch: pytest.MonkeyPatch, free: int, result: str):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=free))
    assert look(capsys, "--port", str(free_port()))["disk"].result == result


def test_a_python_that_is_too_old_fails(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_OLDEST_PYTHON", (99, 0))
    assert examine(None, "sandbox", free_port(), STARTED)[0].result == "fail"


def test_a_library_that_does_not_load_fails(home: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    (home / "libs").mkdir()
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", str(home / "libs"))
    for name in ("libsimplex.so", "libsimplex.dylib"):
        (home / "libs" / name).write_text("no library")
    check = look(capsys, "--port", str(free_port()))["core"]
    assert check.result == "fail"
    assert check.text.startswith("libsimplex does not load (")


async def test_a_core_that_runs_is_asked_for_its_version(home: Path, capsys):
    async with open_world(home) as world:
        checks = await trio.to_thread.run_sync(partial(look, capsys, "--core", world.core_url("agent")))
    assert checks["core"].result == "ok"
    assert checks["core"].text.startswith("simplex-chat 7.")


def test_a_core_that_does_not_run_fails_with_what_to_do(home: Path, capsys):
    check = look(capsys, "--core", f"ws://127.0.0.1:{free_port()}")["core"]
    assert check.result == "fail"
    assert "simplex-chat" in check.text


async def test_a_running_agent_answers(home: Path, capsys):
    async with open_world(home) as world:
        server = await world.serve(data=default_data("my-agent"))
        checks = await trio.to_thread.run_sync(partial(look, capsys, "my-agent"))
        await server.end()
    assert results(checks)["server"] == "ok"
    assert checks["owners"].text.startswith("Nobody approves yet: ")
    assert checks["port"] == Check("port", "ok", f"The server answers at {server.url}")


def registered(data: Path, **changes: object) -> dict[str, object]:
    server = ServerInfo("http://127.0.0.1:5226/mcp", 5226, 23, "0.1.0", 1, STARTED)
    return {"simplex-my-agent": {**entry(server, data), **changes}}


def test_the_entry_in_claude_code_must_fit_the_agent(home: Path, capsys):
    data = started(home, 5226)
    (home / ".git").mkdir()
    local = {"mcpServers": registered(data, timeout=1)}
    config = {"mcpServers": registered(data), "projects": {str(home): local}}
    (home / ".claude.json").write_text(json.dumps(config))
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": registered(data, url="http://127.0.0.1:1/mcp")}))
    found = [
        (check.result, check.text)
        for check in examine(Agent("my-agent", data, given=False), "sandbox", free_port(), SystemClock().now())
        if check.check == "registration"
    ]
    again = "than the agent. Add it again: simplexmcp register my-agent --scope"
    assert found == [
        ("ok", "Claude Code knows the agent (scope user)"),
        ("warn", f"Claude Code (scope local) has another timeout {again} local"),
        ("fail", f"Claude Code (scope project) has another url {again} project"),
    ]


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": [], "projects": 7}'])
def test_a_file_of_claude_code_in_another_shape_is_no_traceback(home: Path, capsys, content: str):
    started(home)
    (home / ".claude.json").write_text(content)
    check = look(capsys, "my-agent", "--core", "sandbox")["registration"]
    assert check.result == ("fail" if content == "{" else "warn")


def test_a_claude_program_is_found(home: Path, capsys):
    (home / "bin").mkdir()
    (home / "bin" / "claude").write_text("#!/bin/sh\n")
    (home / "bin" / "claude").chmod(0o755)
    assert look(capsys, "--port", str(free_port()))["claude"] == Check("claude", "ok", f"{home}/bin/claude")
