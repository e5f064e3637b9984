"""The completion scripts in the real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simplexmcp import cli, completion
from simplexmcp.agents import default_data
from simplexmcp.arguments import PARSERS

NAMES = ["my agent", "my-agent", "other"]


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A home with three agents, and this Python's `simplexmcp` first on the PATH."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name in NAMES:
        default_data(name).mkdir(parents=True)
        (default_data(name) / "lock").touch()
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A file with what `simplexmcp completion` prints."""
    assert cli.run(["completion", shell]) == 0
    file = folder / completion.FILES[shell]
    file.write_text(capsys.readouterr().out)
    return file


@pytest.mark.parametrize("shell", list(completion.FILES))
def test_the_printed_script_is_the_generated_one(shell: str, tmp_path: Path, capsys):
    generated = Path(cli.__file__).parent.parent / "completions" / completion.FILES[shell]
    assert script(shell, tmp_path, capsys).read_text() == generated.read_text()


def test_an_installation_without_the_script_is_told(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(completion, "_FOLDERS", (tmp_path,))
    assert cli.run(["completion", "fish"]) == 1
    assert capsys.readouterr().err == (
        "The completion script of fish is missing in this installation. Install simplexmcp again.\n"
    )


CASES = [
    (["reg"], ["register"]),
    (["unregister", "o"], ["other"]),
    (["status", "my"], ["my agent", "my-agent"]),
    (["config", "g"], ["gemini"]),
    (["config", "zed", "ot"], ["other"]),
    (["serve", "--exp"], ["--expire-hours"]),
    (["register", "x", "--scope", "pro"], ["project"]),
    (["serve", "x", "--core", "sand"], ["sandbox"]),
    (["completion", "z"], ["zsh"]),
    (["rooms", "wa"], ["watch"]),
    (["rooms", "watch", "--fol"], ["--follow"]),
    (["rooms", "register", "co"], ["codex"]),
    (["rooms", "export", "design", "--format", "js"], ["jsonl"]),
    (["install-service", "o"], ["other"]),
    (["install-service", "x", "--un"], ["--uninstall"]),
]
IDS = [" ".join(words) for words, _ in CASES]


def bash(file: Path, env: dict[str, str], *words: str) -> list[str]:
    line = f"""
        source {shlex.quote(str(file))}
        COMP_WORDS=({shlex.join(["simplexmcp", *words])})
        COMP_CWORD={len(words)}
        $(complete -p simplexmcp | sed 's/.*-F \\([^ ]*\\).*/\\1/') simplexmcp "${{COMP_WORDS[-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=60, check=True)
    return [word for word in done.stdout.splitlines() if word]


@pytest.mark.needs("bash")
@pytest.mark.parametrize(("words", "found"), CASES, ids=IDS)
def test_bash_completes(words: list[str], found: list[str], env: dict[str, str], tmp_path: Path, capsys):
    assert bash(script("bash", tmp_path, capsys), env, *words) == [word.replace(" ", "\\ ") for word in found]


@pytest.mark.needs("bash")
def test_bash_offers_every_command(env: dict[str, str], tmp_path: Path, capsys):
    assert bash(script("bash", tmp_path, capsys), env, "") == [*PARSERS, "rooms"]


@pytest.mark.needs("fish")
@pytest.mark.parametrize(("words", "found"), CASES, ids=IDS)
def test_fish_completes(words: list[str], found: list[str], env: dict[str, str], tmp_path: Path, capsys):
    file = script("fish", tmp_path, capsys)
    line = " ".join(["simplexmcp", *words])
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {shlex.quote(str(file))}; complete -C '{line}'"],
        env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert [word.partition("\t")[0] for word in done.stdout.splitlines()] == found


class Zsh:
    """An interactive zsh with the script loaded."""

    def __init__(self, file: Path, env: dict[str, str]) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**env, "TERM": "dumb"})
        self._said = b""
        self._write(
            "PS1=; unsetopt zle_bracketed_paste prompt_cr prompt_sp; autoload -Uz compinit; compinit -u -D\n"
            f'eval "$(cat {shlex.quote(str(file))})"\n'
            'show() { print -r -- "<<<${(j:|:)${(@u)found}}>>>"; BUFFER=; found=() }; zle -N show; bindkey "^T" show\n'
            'compadd() { local -a here; builtin compadd -O here "$@"; found+=($here); builtin compadd "$@" }\n'
            'print "re""ady"\n'
        )
        self._until(rb"ready")

    def tab(self, line: str) -> list[str]:
        """What the Tab key finds for a line."""
        self._write(f"{line}\t\x14")
        return sorted(filter(None, self._until(rb"<<<(.*?)>>>")[1].decode().split("|")))

    def end(self) -> None:
        os.close(self._fd)
        os.waitpid(self.pid, 0)

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def _until(self, pattern: bytes) -> re.Match[bytes]:
        deadline = time.monotonic() + 30
        while not (found := re.search(pattern, self._said, re.DOTALL)):
            assert select.select([self._fd], [], [], max(0, deadline - time.monotonic()))[0], self._said
            self._said += os.read(self._fd, 65536)
        self._said = self._said[found.end() :]
        return found


@pytest.mark.needs("zsh")
def test_zsh_completes(env: dict[str, str], tmp_path: Path, capsys):
    zsh = Zsh(script("zsh", tmp_path, capsys), env)
    try:
        for words, found in CASES:
            assert zsh.tab(" ".join(["simplexmcp", *words])) == found
    finally:
        zsh.end()
