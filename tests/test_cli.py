from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import simplexmcp
from simplexmcp import cli
from simplexmcp.errors import CoreError, UserError


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"simplexmcp {simplexmcp.__version__}\n"


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_every_command(word: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run([word]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for command in cli._COMMANDS:
        assert f"\n  {command} " in said.out


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
        ([], "Give a command: serve, register, unregister, status or sandbox. See simplexmcp --help"),
        (["serv"], 'There is no command "serv". See simplexmcp --help'),
        (["--verbose"], 'There is no option "--verbose". See simplexmcp --help'),
        (["a\x1b[2Jb\n"], 'There is no command "a<U+001B>[2Jb<U+000A>". See simplexmcp --help'),
        (["register"], "NAME is missing"),
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


def test_a_reader_that_went_away_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "simplexmcp", "--help"], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


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


def test_the_log_shows_ours_from_the_level_and_of_libraries_only_warnings():
    """S15: what libraries log below that may hold tokens and texts."""
    script = (
        "import logging; from simplexmcp import cli; cli._start_log('DEBUG')\n"
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
            f"from simplexmcp import cli; cli._start_log('{level}')\n"
            "cli._COMMANDS['serve'] = lambda rest: 1 // 0\n"
            "raise SystemExit(cli.run(['serve']))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) == (level == "DEBUG")
