"""What the commands do on a terminal and away from one: colours, the QR code, progress, streams."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from simplexmcp.core import libsimplex
from simplexmcp.folder import ServerInfo, open_folder
from tests.test_auditlog import NOW

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = [["status", "my-agent"], ["log", "my-agent"], ["doctor", "my-agent"]]


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a home with an agent that ran once and to which a file was refused."""
    data = tmp_path / "share" / "simplexmcp" / "my-agent"
    data.parent.mkdir(parents=True)
    with open_folder("my-agent", data, pytest.fail) as folder:
        folder.write_server(ServerInfo("http://127.0.0.1:5226/mcp", 5226, 23, "0.1.0", 4711, NOW))
    entry = {"at": "2026-12-01T08:00:00Z", "event": "refused-file", "path": "/a\x1b[2J", "reason": "no"}
    (data / "audit.jsonl").write_text(json.dumps(entry) + "\n")
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "PYTHONIOENCODING")}
    return {**kept, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share"), "TERM": "xterm", "COLUMNS": "300"}


@contextmanager
def terminal(words: list[str], env: dict[str, str]) -> Generator[Terminal]:
    """A command whose stdout is a terminal; stderr is a pipe of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "simplexmcp", *words], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=env
    )
    os.close(theirs)
    shown = Terminal(process, ours)
    try:
        yield shown
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        os.close(ours)


class Terminal:
    """The screen of a command."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process, self._fd, self.text = process, fd, ""

    def read_to(self, word: str | None) -> str:
        """What it shows until `word` is there, or until its end."""
        end = time.monotonic() + 60
        while word is None or word not in self.text:
            assert select.select([self._fd], [], [], end - time.monotonic())[0], self.text
            try:
                block = os.read(self._fd, 1 << 16)
            except OSError:  # the last program has closed it
                block = b""
            if not block:
                assert word is None, self.text
                break
            self.text += block.decode("utf-8", "replace").replace("\r\n", "\n")
        return self.text


def steady(text: str) -> str:
    """Without what changes from moment to moment."""
    return re.sub(r"[\d,]+ MB free|\d\d:\d\d", "", text)


def on_a_terminal(words: list[str], env: dict[str, str]) -> str:
    with terminal(words, env) as shown:
        return shown.read_to(None)


def piped(words: list[str], env: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, "-m", "simplexmcp", *words], env=env, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_colours_are_for_a_terminal_that_wants_them_and_change_no_word(words: list[str], env: dict[str, str]):
    coloured = on_a_terminal(words, env)
    assert COLOUR.search(coloured)
    without = COLOUR.sub("", coloured)
    assert "\x1b" not in without  # nothing but ours
    assert steady(on_a_terminal(words, {**env, "NO_COLOR": "1"})) == steady(without)
    assert steady(piped(words, env)) == steady(without)
    assert "\x1b" not in on_a_terminal([*words, "--json"], env)


def test_the_code_is_drawn_on_a_terminal_with_its_own_border_and_colours(env: dict[str, str]):
    with terminal(["serve", "new", "--core", "sandbox", "--port", "0", "--qr-code", "small"], env) as shown:
        text = shown.read_to("Listening on ")
        shown.process.send_signal(signal.SIGINT)
        shown.read_to("Stopped.")
        assert shown.process.wait(60) == 0
    before, _, code = text.partition("scan this code in the SimpleX app, or open the link on your phone.\n")
    assert before
    rows = [line for line in code.splitlines() if line.startswith("\x1b[38;5;16;48;5;231m")]
    assert len(rows) > 20
    assert all(line.endswith("\x1b[0m") for line in rows)
    assert set(COLOUR.sub("", rows[0])) == {" "}  # light, whatever the theme
    assert re.search(r"(?m)^https://\S+$", code)


@pytest.mark.parametrize("words", [[], ["--qr-code", "none"]], ids=["away from a terminal", "none"])
def test_without_a_code_the_link_is_there(words: list[str], env: dict[str, str]):
    command = ["serve", "new", "--core", "sandbox", "--port", "0", *words]
    if words:
        with terminal(command, env) as shown:
            text = shown.read_to("Listening on ")
    else:
        process = subprocess.Popen(
            [sys.executable, "-m", "simplexmcp", *command], env=env, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process:
            text = ""
            for line in process.stdout:
                text += line
                if line.startswith("Listening on "):
                    process.send_signal(signal.SIGINT)
    assert "Join the agent control chat: open this link on your phone, in the SimpleX app.\n" in text
    assert re.search(r"(?m)^https://\S+$", text)
    assert not re.search("[█▀▄\x1b]", text)


def test_a_download_shows_its_progress_on_a_terminal_and_one_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for tty in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda tty=tty: tty)
        said: list[str] = []
        report = libsimplex._Report(said.append, "Downloading, once ...")
        for text in ("Downloading x from y ...", "\r  download: 1 / 2 MiB (50%)", "\r  download: 2 / 2 MiB (100%)", ""):
            report(text, end="", file=sys.stderr, flush=True)
        report.end()
        assert said == ["Downloading, once ..."]
        expected = "\r  download: 1 / 2 MiB (50%)\r  download: 2 / 2 MiB (100%)\n" if tty else ""
        assert capsys.readouterr() == ("", expected)
