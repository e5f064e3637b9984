"""`install-service`: the files for systemd and launchd, and what is done with them."""

from __future__ import annotations

import fcntl
import os
import plistlib
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp import cli, service
from simplexmcp.errors import UserError
from simplexmcp.service import Service, install, service_text, uninstall

TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >> "$HOME/calls"
test ! -e "$HOME/refuse" || { echo "Failed to connect to bus: No medium found" >&2; exit 1; }
"""
ODD = 'my agent é%h$x"'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a systemctl and a launchctl that only note their calls."""
    (tmp_path / "bin").mkdir()
    for name in ("systemctl", "launchctl"):
        (tmp_path / "bin" / name).write_text(TOOL)
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "SIMPLEX_LIBS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return tmp_path


def made(name: str = "my-agent", *words: str, data: Path = Path("/nowhere")) -> Service:
    return Service(name, data, ("serve", name, *words), 10)


def calls(home: Path) -> list[str]:
    return (home / "calls").read_text().splitlines()


def words_of(line: str) -> list[str]:
    """The words of a line of a unit, as systemd.syntax(7) and systemd.service(5) describe them."""
    words = []
    for found in re.finditer(r'"((?:[^"\\]|\\.)*)"( |$)', line):
        text = re.sub(r"\\x([0-9a-f]{2})|\\(.)", unescaped, found[1])
        assert not re.search(r"(?<!%)(%%)*%(?!%)", text), "a specifier is left"
        words.append(text.replace("%%", "%"))
    assert "".join(re.findall(r'"(?:[^"\\]|\\.)*"(?: |$)', line)) == line
    return [words[0], *(word.replace("$$", "$") for word in words[1:])]


def unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2]


def entry(text: str, key: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"{key}=")).partition("=")[2]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_no_word_can_leave_its_quotes_in_a_unit(words: list[str]):
    text = service_text(made("x", *words), "systemd")
    assert len(text.splitlines()) == len(service_text(made("x"), "systemd").splitlines())
    expected = ["serve", "x", *words]
    assert [word.encode("latin-1", "replace") for word in words_of(entry(text, "ExecStart"))[-len(expected) :]] == [
        re.sub(r"[^ -~]", lambda c: c[0] if c[0].isprintable() else c[0].encode().decode("latin-1"), word).encode(
            "latin-1", "replace"
        )
        for word in expected
    ]


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize(("name", "folder"), [("my-agent", "a b%n$c"), (ODD, "a'b\"%h"), ("日本", "日本")])
def test_systemd_takes_the_unit(name: str, folder: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    program = home / folder / "simplexmcp"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", "/opt/sim plex%")
    file = home / "simplexmcp-test.service"
    file.write_text(service_text(made(name, "--owners=3:A\nExecStart=/bin/sh"), "systemd"))
    (home / "run").mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(home / "run")}
    words = ["systemd-analyze", "--user", "--man=no", "verify", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if '"' not in folder:
        program.unlink()
        done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60, check=False)
        assert f"Command {program} is not executable" in done.stderr  # it looked for just this program


def test_the_unit_is_hardened_restarted_and_stopped_with_patience():
    text = service_text(Service("x", Path("/x"), ("serve", "x", "--stop-wait=60"), 60), "systemd")
    for line in ("NoNewPrivileges=yes", "UMask=0077", "LimitCORE=0", "Restart=on-failure", "KillSignal=SIGTERM"):
        assert line in text.splitlines()
    assert entry(text, "RestartPreventExitStatus") == "2"
    assert int(entry(text, "TimeoutStopSec")) > 60
    assert Path(words_of(entry(text, "ExecStart"))[0]).is_absolute()


def test_launchd_gets_the_same_in_a_plist(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SIMPLEX_LIBS_DIR", "/opt/libs")
    found = plistlib.loads(service_text(made(ODD, "--owners=3:<b>&"), "launchd").encode())
    assert found["ProgramArguments"][-3:] == ["serve", ODD, "--owners=3:<b>&"]
    assert Path(found["ProgramArguments"][0]).is_absolute()
    assert found["KeepAlive"] == {"SuccessfulExit": False}
    assert found["ExitTimeOut"] > 10
    assert found["Umask"] == 0o077
    assert found["EnvironmentVariables"]["SIMPLEX_LIBS_DIR"] == "/opt/libs"
    assert re.fullmatch(r"[A-Za-z0-9._\\-]+", found["Label"])


def test_what_a_plist_cannot_hold_is_one_line():
    with pytest.raises(UserError, match="control characters") as caught:
        service_text(made("x", "--data=/a\x01"), "launchd")
    assert caught.value.code == 2


@given(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=64))
def test_every_name_has_a_file_of_its_own_kind(name: str):
    label = made(name).label
    assert re.fullmatch(r"simplexmcp-[A-Za-z0-9._\\-]+", label)
    assert len(f"{label}.service") < 255
    assert made(f"{name}x").label != label


def test_it_is_installed_started_and_taken_out_again(home: Path, capsys: pytest.CaptureFixture[str]):
    unit = home / ".config/systemd/user/simplexmcp-my-agent.service"
    assert cli.run(["install-service", "my-agent", "--port", "5227", "--database-key-file", "key", "--data", "d"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[0] == f"Installed {unit} and started it."
    assert "journalctl --user -u 'simplexmcp-my-agent.service'" in said.out
    assert stat.S_IMODE(unit.stat().st_mode) == 0o600
    folder = Path.cwd()
    assert words_of(entry(unit.read_text(), "ExecStart"))[-5:] == [
        "serve", "my-agent", f"--data={folder}/d", "--port=5227", f"--database-key-file={folder}/key",
    ]  # fmt: skip
    assert calls(home) == [
        "systemctl --user daemon-reload",
        "systemctl --user enable simplexmcp-my-agent.service",
        "systemctl --user restart simplexmcp-my-agent.service",
    ]
    assert cli.run(["install-service", "my-agent", "--uninstall"]) == 0
    assert not unit.exists()
    assert calls(home)[3:] == [
        "systemctl --user disable --now simplexmcp-my-agent.service",
        "systemctl --user daemon-reload",
    ]
    assert cli.run(["install-service", "my-agent", "--uninstall"]) == 1
    assert f"Agent my-agent has no service: there is no {unit}." in capsys.readouterr().err


def test_the_command_of_the_unit_runs_in_the_environment_of_a_service(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["install-service", "my-agent", "--core", "sandbox", "--port", "0", "--print"]) == 0
    unit = capsys.readouterr().out
    given = dict(
        words_of(line.partition("=")[2])[0].split("=", 1) for line in unit.splitlines() if "Environment" in line
    )
    assert given == {"XDG_DATA_HOME": str(home / "share")}
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", **given}
    process = subprocess.Popen(words_of(entry(unit, "ExecStart")), env=env, cwd="/", stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("Listening on "):
                process.send_signal(getattr(signal, entry(unit, "KillSignal")))
    assert said[-1] == "Stopped.\n"
    assert process.returncode == 0
    assert (home / "share/simplexmcp/my-agent/server.json").exists()


def test_on_a_mac_launchd_starts_it(home: Path):
    file = home / "Library/LaunchAgents/simplexmcp-my-agent.plist"
    lines = install(made(), "launchd")
    assert str(file) in lines[0]
    domain = f"gui/{os.getuid()}"
    assert calls(home) == [
        f"launchctl bootout {domain}/simplexmcp-my-agent",
        f"launchctl bootstrap {domain} {file}",
    ]
    assert (home / "Library/Logs/simplexmcp").is_dir()  # launchd makes the file, not its folder
    uninstall(made(), "launchd")
    assert not file.exists()


def test_print_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["install-service", "my-agent", "--print"]) == 0
    assert "[Service]" in capsys.readouterr().out
    assert sorted(path.name for path in home.iterdir()) == ["bin"]


def test_a_service_manager_that_refuses_is_one_line(home: Path, capsys: pytest.CaptureFixture[str]):
    (home / "refuse").touch()
    assert cli.run(["install-service", "my-agent"]) == 1
    assert capsys.readouterr().err == (
        "systemctl --user daemon-reload failed: Failed to connect to bus: No medium found. "
        f"{home}/.config/systemd/user/simplexmcp-my-agent.service is written: start it in your own way, or delete it.\n"
    )
    assert cli.run(["install-service", "my-agent", "--uninstall"]) == 1
    assert "No medium found. Stop the service in your own way, and delete " in capsys.readouterr().err


def test_a_computer_without_one_gets_advice(home: Path, monkeypatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PATH", str(home / "empty"))
    assert cli.run(["install-service", "my-agent"]) == 1
    assert f"There is no systemctl here. {home}/.config/" in capsys.readouterr().err


def test_an_agent_that_runs_by_hand_is_not_disturbed(home: Path, capsys: pytest.CaptureFixture[str]):
    data = home / "data"
    data.mkdir(mode=0o700)
    fd = os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"      4711\n")
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert cli.run(["install-service", "my-agent", "--data", str(data)]) == 1
    os.close(fd)
    assert "Agent my-agent runs already" in capsys.readouterr().err
    assert not (home / ".config").exists()


def test_the_system_is_told_by_the_platform(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(service.sys, "platform", "darwin")
    assert service.this_system() == "launchd"
    monkeypatch.setattr(service.sys, "platform", "linux")
    assert service.this_system() == "systemd"
