from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import simplexmcp
from simplexmcp import cli
from simplexmcp.errors import CoreError, UserError
from simplexmcp.rooms import cli as rooms_cli


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"simplexmcp {simplexmcp.__version__}\n"


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_every_command(word: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run([word]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for command in (*cli._COMMANDS, "rooms"):
        assert f"\n  {command} " in said.out
    _, _, rooms = said.out.partition("\n  rooms COMMAND ")
    for command in ("mcp", *rooms_cli._MODULES):
        assert re.search(rf"\b{command}\b", rooms), command


def test_help_of_a_command_is_its_own_help(capsys: pytest.CaptureFixture[str]):
    for words in (["status"], ["rooms", "watch"], ["rooms"]):
        assert cli.run([*words, "--help"]) == 0
        expected = capsys.readouterr().out
        assert cli.run(["help", *words]) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("command", list(cli._COMMANDS))
def test_the_help_of_a_command_explains_each_option(command: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run([command, "--help"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"usage: simplexmcp {command} ")
    assert said.out.endswith("\n")
    for noise in ("required", "None", "str,", "TapIgnore"):
        assert noise not in said.out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "Give a command, such as serve, register or status. See simplexmcp --help"),
        (["serv"], 'There is no command "serv". Did you mean serve? See simplexmcp --help'),
        (["xyzzy"], 'There is no command "xyzzy". See simplexmcp --help'),
        (["room"], 'There is no command "room". Did you mean rooms? See simplexmcp --help'),
        (["rooms", "wach"], 'there is no command "wach". Did you mean watch? See simplexmcp rooms --help'),
        (["serve", "x", "--prot=1"], 'There is no option "--prot". Did you mean --port? See simplexmcp serve --help'),
        (["status", "--colour"], 'There is no option "--colour". See simplexmcp status --help'),
        (["install-service", "x", "--reset-owners"], "--reset-owners is for one start: run simplexmcp serve with it"),
        (["install-service", "x", "--owners"], "--owners without a list is for one start: run simplexmcp serve with"),
        (["install-service", "x", "--core", "wss://a:b@c"], "the password in --core to every user: use --core-pass"),
        (["--verbose"], 'There is no option "--verbose". Did you mean --version? See simplexmcp --help'),
        (["a\x1b[2Jb\n"], 'There is no command "a<U+001B>[2Jb<U+000A>". See simplexmcp --help'),
        (["register"], "NAME is missing. See simplexmcp register --help"),
        (["serve"], "NAME is missing; it stands before --owners, --smp-server and --xftp-server."),
        (["config"], "CLIENT and NAME are missing. See simplexmcp config --help"),
        (["config", "emacs", "x"], "CLIENT is one of claude-desktop, codex, gemini, cursor, vscode, opencode, zed."),
        (["bridge", "a/b"], 'Agent name "a/b" has a path separator.'),
        (["status", "--data", "x"], "--data is the folder of one agent: give its NAME, too."),
        (["doctor", "--data", "x"], "--data is the folder of one agent: give its NAME, too."),
        (["doctor", "--core", "http://x"], "--core is native, sandbox, ws://HOST:PORT or wss://USER:PASSWORD@HOST."),
        (["doctor", "--port", "0"], "--port is 1 to 65535, not 0."),
        (["log", "x", "-n", "-1"], "--lines is 0 to 1000000000, not -1."),
        (
            ["log", "x", "--since", "yesterday"],
            "--since is a time such as 2026-12-01T08:00, or so long ago: 30m, 2h, 7d.",
        ),
        (["log", "x", "--since", "999999d"], "--since is a time such as"),
        (["completion", "tcsh"], "SHELL is one of bash, zsh, fish. See simplexmcp completion --help"),
        (["register", "x", "--scope", "all"], "--scope is one of user, local, project. See simplexmcp register --help"),
        (["register", "../x"], 'Agent name "../x" has a path separator.'),
        (["serve", "a/b"], 'Agent name "a/b" has a path separator.'),
        (["sandbox", "--port", "70000"], "--port is 0 to 65535, not 70000."),
        (["sandbox", "\x1b]0;x\x07"], "Unrecognized arguments: <U+001B>]0;x<U+0007>."),
    ],
)
def test_wrong_usage_is_one_inert_line_and_code_2(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run(argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(rest):
        raise error

    monkeypatch.setitem(cli._COMMANDS, "serve", fail)
    return cli.run(["serve"])


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (UserError("Port 5226 is in use."), 1, "Port 5226 is in use.\n"),
        (UserError("No such owner.", 2), 2, "No such owner.\n"),
        (UserError("from\x1b[2J\nafar"), 1, "from<U+001B>[2J<U+000A>afar\n"),
        (CoreError("errorStore/x", "errorStore/x: y"), 1, "errorStore/x: y\n"),
        (ExceptionGroup("", [ExceptionGroup("", [UserError("Inner.", 2)])]), 2, "Inner.\n"),
        (ExceptionGroup("", [ValueError("late"), UserError("First cause.")]), 1, "First cause.\n"),
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("", [KeyboardInterrupt(), ValueError()]), 130, ""),
        (
            ZeroDivisionError("oops"),
            1,
            "Unexpected ZeroDivisionError: oops. Report it, with what --log-level debug prints.\n",
        ),
    ],
)
def test_every_error_becomes_one_line_and_a_code(
    error: BaseException, code: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert failing(error, monkeypatch) == code
    assert capsys.readouterr().err == says


def run(*words: str, **rest) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simplexmcp", *words], capture_output=True, text=True, timeout=60, check=False, **rest
    )


def test_the_console_script_is_installed():
    script = Path(sysconfig.get_path("scripts")) / "simplexmcp"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("simplexmcp ")


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"], ["completion", "bash"]])
def test_a_reader_that_went_away_is_no_traceback(words: list[str]):
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "simplexmcp", *words],
        stdout=write, stderr=subprocess.PIPE, timeout=60, check=False, env=env,
    )  # fmt: skip
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]])
def test_a_full_disk_for_the_output_is_one_line(words: list[str], unbuffered: str):
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "simplexmcp", *words],
            stdout=full, stderr=subprocess.PIPE, timeout=60, check=False, env=env,
        )  # fmt: skip
    assert done.returncode == 1
    said = "Writing failed: No space left on device. Make room, or send the output somewhere else.\n"
    assert done.stderr.decode() == said


@pytest.mark.parametrize(
    ("words", "code"),
    [("completion bash >&-", 0), ("status x >&- 2>&-", 1), ("status x <&- 2>&-", 1), ("bridge x <&-", 0)],
)
def test_a_closed_stream_is_no_error(words: str, code: int, tmp_path: Path):
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    command = f"exec {shlex.quote(sys.executable)} -m simplexmcp {words}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_terminal_without_unicode_is_no_traceback(tmp_path: Path):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run("status", "агент", "--data", str(tmp_path / "x"), env=env)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


HEAVY = ("trio", "mcp", "mcp_types", "hypercorn", "starlette", "simplex_chat", "anyio", "asyncio", "segno", "httpx")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["--help"], ("tap", "pydantic")),
        (["--version"], ("tap", "pydantic")),
        (["nonsense"], ("tap", "pydantic")),
        (["serve", "--help"], ()),
        (["serve", "my-agent", "--port", "x"], ()),
        (["register", "my-agent", "--data", "/nonexistent/simplexmcp"], ()),
        (["status", "my-agent", "--data", "/nonexistent/simplexmcp"], ()),
        (["log", "my-agent", "--data", "/nonexistent/simplexmcp"], ()),
        (["config", "zed", "my-agent", "--data", "/nonexistent/simplexmcp"], ()),
        (["completion", "bash"], ()),
        (["install-service", "my-agent", "--print"], ()),
        (["_names"], ("tap", "pydantic", "logging", "dataclasses", "json", "subprocess", "http", "asyncio")),
    ],
)
def test_quick_commands_import_nothing_heavy(words: list[str], more: tuple[str, ...]):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "simplexmcp", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "simplexmcp.cli" in imported
    assert not [name for name in imported if name.partition(".")[0] in (*HEAVY, *more)]
    assert not [name for name in imported if name.startswith("simplexmcp.core")]


def test_the_rooms_have_their_own_commands(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["rooms", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: simplexmcp rooms COMMAND")
    assert cli.run(["rooms"]) == 2


def test_what_every_command_waits_for_is_little():
    """The completion of names and the rooms start in a tenth of a second: each module counts."""
    script = "import sys; before = set(sys.modules); import simplexmcp.cli\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    ours = {"simplexmcp", "simplexmcp.cli", "simplexmcp.errors", "simplexmcp.terminal"}
    imported = set(done.stdout.split())
    assert ours < imported
    assert len(imported - ours) <= 35, imported


def test_the_log_shows_ours_from_the_level_and_of_libraries_only_warnings():
    """S15: what libraries log below that may hold tokens and texts."""
    script = (
        "import logging; from simplexmcp.logs import start_log; start_log('DEBUG')\n"
        "for name in ('simplexmcp.core.link', 'mcp.server', 'hypercorn.error'):\n"
        "    logging.getLogger(name).debug('low %s', name); logging.getLogger(name).warning('high %s', name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "DEBUG simplexmcp.core.link: low simplexmcp.core.link",
        "WARNING simplexmcp.core.link: high simplexmcp.core.link",
        "WARNING mcp.server: high mcp.server",
        "WARNING hypercorn.error: high hypercorn.error",
    ]


def test_a_defect_shows_its_traceback_only_at_level_debug():
    for level in ("DEBUG", "WARNING"):
        script = (
            f"from simplexmcp import cli; from simplexmcp.logs import start_log; start_log('{level}')\n"
            "cli._COMMANDS['serve'] = lambda rest: 1 // 0\n"
            "raise SystemExit(cli.run(['serve']))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) == (level == "DEBUG")
