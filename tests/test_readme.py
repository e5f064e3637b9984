"""The commands of the README, and of the guide to running it for good, are run as a reader would."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from simplexmcp.arguments import Serve, serve_options

ROOT = Path(__file__).parent.parent
TEXTS = [(ROOT / "README.md").read_text(), (ROOT / "docs" / "server.md").read_text()]
LINES = [
    line for text in TEXTS for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
]
COMPLETION = 'eval "$(simplexmcp completion bash)"'

INSTALL = (
    "pipx install .",
    "uv tool install .",
    "python3 -m venv .venv",
    ".venv/bin/pip install .",
    ". .venv/bin/activate",
)
CLAUDE = """#!/bin/sh
echo "$@" >> "$HOME/claude.log"
"""


class Reader:
    """A home folder, a `claude` program, and a shell's way to run a line."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir()
        (home / "bin" / "claude").write_text(CLAUDE)
        (home / "bin" / "claude").chmod(0o755)
        self.env = {
            **os.environ,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "share"),
            "PATH": f"{home}/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
        }

    def run(self, words: list[str]) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "simplexmcp", *words], env=self.env, cwd=self.home, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def running(self, words: list[str], until: str):
        """A command in the background from its line that has `until` on; at the end Ctrl-C, and it must exit with 0."""
        process = subprocess.Popen(
            [sys.executable, "-m", "simplexmcp", *words], env=self.env, cwd=self.home, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        limit = threading.Timer(60, process.kill)
        limit.start()
        said: list[str] = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if until in line:
                    break
            else:
                pytest.fail("".join(said))
            yield said
            process.send_signal(signal.SIGINT)
            said += process.stdout.readlines()
            assert process.wait(60) == 0, "".join(said)
        finally:
            limit.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def words_of(line: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "simplexmcp"
    return words


def commands(name: str) -> list[list[str]]:
    return [words_of(line) for line in LINES if re.match(rf"simplexmcp {name}( |$)", line)]


def test_every_command_of_the_readme_is_tested_here():
    known = re.compile(r"simplexmcp (serve|register|config|status|log|doctor|sandbox|install-service)( |$)")
    for line in LINES:
        assert known.match(line) or line.startswith("make ") or line in (*INSTALL, COMPLETION), line


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in LINES if line.startswith("make ")]
    assert len(targets) > 2
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("words", commands("serve"), ids=" ".join)
def test_every_serve_line_is_taken(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password.txt").write_text("secret\n")
    (tmp_path / "password.txt").chmod(0o600)
    assert serve_options(Serve(prog="simplexmcp serve").parse_args(words[1:])).name == "my-agent"


def test_a_reader_can_start_register_and_look(reader: Reader):
    serve = next(words for words in commands("serve") if "sandbox" in words)
    with reader.running([*serve, "--port", "0"], "Listening on") as said:
        assert "Add the agent to Claude Code" not in "".join(said)  # nobody joined yet
        for words in commands("register"):
            assert reader.run(words).startswith("Added to Claude Code: scope ")
        for words in commands("status"):
            status = reader.run(words)
            assert json.loads(status)["running"] if "--json" in words else "is running (process" in status
        for name in ("config", "log", "doctor"):
            for words in commands(name):
                assert reader.run(words)
    assert said[-1] == "Stopped.\n"
    assert (reader.home / "claude.log").read_text().count("add-json") == len(commands("register"))


def test_a_reader_gets_a_service_of_the_wanted_options(reader: Reader):
    for words in commands("install-service"):
        if "--uninstall" not in words:
            unit = reader.run([*words, "--print"])
            assert all(word in unit for word in words[1:] if not word.startswith("--"))


def test_the_completion_of_the_readme_works_in_bash(reader: Reader):
    (reader.home / "bin" / "simplexmcp").symlink_to(Path(sysconfig.get_path("scripts")) / "simplexmcp")
    done = subprocess.run(
        ["bash", "-c", f"{COMPLETION}; complete -p simplexmcp"], env=reader.env, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_can_serve_the_simulated_network(reader: Reader):
    words = ["0" if word.isdigit() else word for word in commands("sandbox")[0]]
    with reader.running(words, "ws://127.0.0.1:"):
        pass
