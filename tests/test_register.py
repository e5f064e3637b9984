from __future__ import annotations

import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from simplexmcp import cli, register
from simplexmcp.folder import ServerInfo, open_folder

if TYPE_CHECKING:
    from pathlib import Path

FAKE = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
answer = json.load(open({answers!r})).get(sys.argv[2], [0, "", ""])
sys.stdout.write(answer[1])
sys.stderr.write(answer[2])
sys.exit(answer[0])
"""


class Claude:
    """A `claude` program that records its arguments and answers as it is told."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        self.log.write_text("")
        self.answers = folder / "answers"
        self.answer()
        script = self.bin / "claude"
        script.write_text(FAKE.format(python=sys.executable, log=str(self.log), answers=str(self.answers)))
        script.chmod(0o755)

    def answer(self, **answers: tuple[int, str, str]) -> None:
        self.answers.write_text(json.dumps({command.replace("_", "-"): list(a) for command, a in answers.items()}))

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    fake = Claude(tmp_path)
    monkeypatch.setenv("PATH", str(fake.bin))
    return fake


@pytest.fixture
def no_claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def started(data: Path, name: str = "my-agent", expire_hours: int = 23) -> Path:
    with open_folder(name, data, pytest.fail) as folder:
        now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        folder.write_server(ServerInfo("http://127.0.0.1:5226/mcp", 5226, expire_hours, "0.1.0", 4711, now))
    return data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return started(tmp_path / "agents" / "my-agent")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_flow_2_adds_the_agent_in_place_of_an_old_entry(claude: Claude, data: Path, capsys):
    assert said(capsys, "register", "my-agent", "--data", str(data)) == (
        0,
        "Added to Claude Code: scope user, server simplex-my-agent.\n",
        "",
    )
    entry = {
        "type": "http",
        "url": "http://127.0.0.1:5226/mcp",
        "headersHelper": f"cat {data}/headers.json",
        "timeout": 169800000,
    }
    remove, add = claude.calls()
    assert remove == ["mcp", "remove", "--scope", "user", "simplex-my-agent"]
    assert add == ["mcp", "add-json", "--scope", "user", "simplex-my-agent", json.dumps(entry, separators=(",", ":"))]


def test_the_default_folder_is_used_without_data(claude: Claude, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("HOME", str(tmp_path))
    started(register_data())
    assert said(capsys, "register", "my-agent")[0] == 0
    assert len(claude.calls()) == 2


def register_data() -> Path:
    from simplexmcp.agents import default_data

    return default_data("my-agent")


@pytest.mark.parametrize("scope", ["user", "local", "project"])
def test_flow_2_writes_to_the_scope_that_was_asked_for(claude: Claude, data: Path, capsys, scope: str):
    code, out, _ = said(capsys, "register", "my-agent", "--data", str(data), "--scope", scope)
    assert (code, out) == (0, f"Added to Claude Code: scope {scope}, server simplex-my-agent.\n")
    assert [call[2:4] for call in claude.calls()] == [["--scope", scope]] * 2


def test_flow_2_an_agent_that_was_never_started_says_how_to_start_it(claude: Claude, tmp_path: Path, capsys):
    folder = tmp_path / "it's new"
    assert said(capsys, "register", "my-agent", "--data", str(folder)) == (
        1,
        "",
        (
            'Agent "my-agent" was never started. Start it with: simplexmcp serve my-agent --data '
            f"{shlex.quote(str(folder))}\n"
        ),
    )
    assert claude.calls() == []
    assert not folder.exists()


def test_flow_2_the_result_of_remove_does_not_matter(claude: Claude, data: Path, capsys):
    claude.answer(remove=(1, "", "No MCP server named simplex-my-agent in user scope"))
    assert said(capsys, "register", "my-agent", "--data", str(data))[0] == 0


def test_flow_2_what_add_json_says_is_passed_on_in_one_inert_line(claude: Claude, data: Path, capsys):
    claude.answer(add_json=(1, "noise", "Invalid name\x1b[2J\n  Names can only contain letters\n"))
    assert said(capsys, "register", "my-agent", "--data", str(data)) == (
        1,
        "",
        "claude mcp add-json failed: Invalid name<U+001B>[2J Names can only contain letters\n",
    )


@pytest.mark.parametrize(("answer", "says"), [((3, "", ""), "exit status 3"), ((1, "on stdout", ""), "on stdout")])
def test_a_failure_without_words_on_stderr_is_told_too(claude: Claude, data: Path, capsys, answer, says: str):
    claude.answer(add_json=answer)
    assert said(capsys, "register", "my-agent", "--data", str(data))[2] == f"claude mcp add-json failed: {says}\n"


def test_flow_2_without_the_program_the_entry_is_printed(no_claude: None, data: Path, capsys):
    code, out, err = said(capsys, "register", "my-agent", "--data", str(data))
    head, _, entry = err.partition(": ")
    assert (code, out, head) == (1, "", 'Add this entry under "mcpServers" in ~/.claude.json')
    assert json.loads(entry) == {
        "simplex-my-agent": {
            "type": "http",
            "url": "http://127.0.0.1:5226/mcp",
            "headersHelper": f"cat {data}/headers.json",
            "timeout": 169800000,
        }
    }


def test_flow_2_the_entry_of_a_project_goes_to_its_own_file(no_claude: None, data: Path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    err = said(capsys, "register", "my-agent", "--data", str(data), "--scope", "project")[2]
    assert err.startswith(f'Add this entry under "mcpServers" in {tmp_path}/.mcp.json: {{')


def local_project(data: Path, capsys) -> str:
    err = said(capsys, "register", "my-agent", "--data", str(data), "--scope", "local")[2]
    head, _, rest = err.partition("projects[")
    assert head == 'Add this entry under "mcpServers" of '
    return json.loads(rest.partition("]")[0])


@pytest.fixture
def git(tmp_path: Path):
    def run(*words: str) -> None:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        config = ["-c", "user.name=x", "-c", "user.email=x@y.example", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *config, *words], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60)

    return run


def test_flow_2_a_local_entry_outside_a_repository_is_for_the_folder(no_claude, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert local_project(data, capsys) == str(tmp_path)


def test_flow_2_a_local_entry_is_for_the_root_of_the_repository(no_claude, data, tmp_path, monkeypatch, capsys, git):
    git("init", "repo")
    (tmp_path / "repo" / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo" / "a" / "b")
    assert local_project(data, capsys) == str(tmp_path / "repo")


def test_flow_2_a_local_entry_of_a_worktree_is_for_the_main_repository(
    no_claude, data, tmp_path, monkeypatch, capsys, git
):
    git("init", "repo")
    git("-C", "repo", "commit", "--allow-empty", "-m", "x")
    git("-C", "repo", "worktree", "add", "../tree")
    monkeypatch.chdir(tmp_path / "tree")
    assert local_project(data, capsys) == str(tmp_path / "repo")


def test_flow_2_a_local_entry_of_a_submodule_is_for_the_submodule(no_claude, data, tmp_path, monkeypatch, capsys, git):
    for name in ("repo", "part"):
        git("init", name)
        git("-C", name, "commit", "--allow-empty", "-m", "x")
    git("-C", "repo", "submodule", "add", str(tmp_path / "part"), "sub")
    monkeypatch.chdir(tmp_path / "repo" / "sub")
    assert local_project(data, capsys) == str(tmp_path / "repo" / "sub")


@pytest.mark.parametrize("mark", ["rubbish", "gitdir: /nowhere", "gitdir: a\0b"])
def test_a_damaged_mark_of_a_repository_is_taken_as_its_root(no_claude, data, tmp_path, monkeypatch, capsys, mark: str):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ".git").write_text(mark)
    monkeypatch.chdir(tmp_path / "x")
    assert local_project(data, capsys) == str(tmp_path / "x")


NASTY = ["with space", 'it\'s "quoted"', "$(touch pwned)", "`touch pwned`", "a\nb", "-rf", ";touch pwned", "ünï"]


@pytest.mark.parametrize("part", NASTY)
def test_s14_a_nasty_folder_reaches_the_program_and_its_helper_as_it_is(
    claude: Claude, tmp_path: Path, monkeypatch, capsys, part: str
):
    data = started(tmp_path / part)
    monkeypatch.chdir(tmp_path)
    assert said(capsys, "register", "my-agent", f"--data={part}")[0] == 0
    entry = json.loads(claude.calls()[1][-1])
    done = subprocess.run(
        ["/bin/sh", "-c", entry["headersHelper"]], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert json.loads(done.stdout) == json.loads((data / "headers.json").read_text())
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted"', "$(touch pwned)", ";touch pwned"])
def test_s14_a_nasty_name_is_one_argument(claude: Claude, tmp_path: Path, monkeypatch, capsys, name: str):
    data = started(tmp_path / "data", name)
    monkeypatch.chdir(tmp_path)
    assert said(capsys, "register", name, "--data", str(data))[0] == 0
    assert [call[4] for call in claude.calls()] == [f"simplex-{name}"] * 2
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", ["a\nb", "-rf", "--scope"])
def test_s14_names_that_could_be_options_or_lines_are_refused(claude: Claude, capsys, name: str):
    code, _, err = said(capsys, "register", "--", name)
    assert (code, err.count("\n")) == (2, 1)
    assert claude.calls() == []


def test_the_timeout_of_a_damaged_or_future_server_is_capped(claude: Claude, tmp_path: Path, capsys):
    data = started(tmp_path / "data", expire_hours=10_000)
    said(capsys, "register", "my-agent", "--data", str(data))
    assert json.loads(claude.calls()[1][-1])["timeout"] == 2147483647


def test_no_secret_is_in_the_entry(claude: Claude, data: Path, capsys):
    said(capsys, "register", "my-agent", "--data", str(data))
    assert (data / "token").read_text().strip() not in claude.log.read_text()


def test_a_program_that_hangs_is_ended(claude: Claude, data: Path, monkeypatch, capsys):
    script = claude.bin / "claude"
    script.write_text("#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(register, "_LIMIT", 0.05)
    assert said(capsys, "register", "my-agent", "--data", str(data)) == (
        1,
        "",
        "claude mcp remove did not end within 0 s. Try again.\n",
    )


def test_a_program_that_can_not_run_is_told(claude: Claude, data: Path, capsys):
    (claude.bin / "claude").write_text("#!/no/such/interpreter\n")
    assert said(capsys, "register", "my-agent", "--data", str(data))[2].startswith("The claude program can't be run")


def test_unregister_takes_the_agent_out_of_every_scope(claude: Claude, capsys):
    assert said(capsys, "unregister", "my-agent") == (
        0,
        "Removed from Claude Code: scope user, local, project, server simplex-my-agent.\n",
        "",
    )
    assert claude.calls() == [
        ["mcp", "remove", "--scope", scope, "simplex-my-agent"] for scope in ("user", "local", "project")
    ]


def test_unregister_of_what_is_not_there_says_so(claude: Claude, capsys):
    claude.answer(remove=(1, "", "No MCP server named"))
    assert said(capsys, "unregister", "my-agent")[::2] == (
        1,
        "Claude Code has no server simplex-my-agent here: nothing to take out.\n",
    )


def test_unregister_passes_on_why_the_program_failed(claude: Claude, capsys):
    claude.answer(remove=(1, "", "Config file\x1b[2J is damaged\n"))
    assert said(capsys, "unregister", "my-agent") == (
        1,
        "",
        "claude mcp remove failed: Config file<U+001B>[2J is damaged\n",
    )


@pytest.mark.parametrize("words", [[], ["../x"], ["my-agent", "--scope", "user"]])
def test_unregister_in_a_wrong_form_asks_the_program_nothing(claude: Claude, capsys, words: list[str]):
    assert said(capsys, "unregister", *words)[0] == 2
    assert claude.calls() == []


def test_unregister_takes_out_what_register_added(claude: Claude, data: Path, capsys):
    said(capsys, "register", "my-agent", "--data", str(data), "--scope", "project")
    assert said(capsys, "unregister", "my-agent")[0] == 0
    added = claude.calls()[1]
    assert ["mcp", "remove", "--scope", added[3], added[4]] in claude.calls()[2:]


def test_unregister_without_the_program_says_where_to_delete_it(no_claude: None, capsys):
    code, _, err = said(capsys, "unregister", "my-agent")
    assert code == 1
    assert err.startswith('There is no claude program here. Delete "simplex-my-agent" under "mcpServers"')
