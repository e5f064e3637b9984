"""The README's commands are run in their order, as a reader would."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from simplexmcp.arguments import Serve, serve_options

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]

INSTALL = ("python3 -m venv .venv", ".venv/bin/pip install .", ". .venv/bin/activate")
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
    return [words_of(line) for line in LINES if line.startswith(f"simplexmcp {name} ")]


def test_every_command_of_the_readme_is_tested_here():
    known = re.compile(r"simplexmcp (serve|register|unregister|status|sandbox) ")
    for line in LINES:
        assert known.match(line) or line.startswith("make ") or line in INSTALL, line


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
        assert "is running (process" in reader.run(commands("status")[0])
        assert json.loads(reader.run(commands("status")[1]))["running"] is True
        assert "server simplex-my-agent" in reader.run(commands("unregister")[0])
    assert said[-1] == "Stopped.\n"
    assert (reader.home / "claude.log").read_text().count("add-json") == len(commands("register"))


def test_a_reader_can_serve_the_simulated_network(reader: Reader):
    words = ["0" if word.isdigit() else word for word in commands("sandbox")[0]]
    with reader.running(words, "ws://127.0.0.1:"):
        pass
