"""Each client's configuration is read by that client's rules: the keys that it knows, and their types."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from simplexmcp import cli
from simplexmcp.clients import CLIENTS
from simplexmcp.folder import ServerInfo, open_folder

URL = "http://127.0.0.1:5226/mcp"
TEXT = {"type": "string", "minLength": 1}
WORDS = {"type": "array", "items": {"type": "string"}}


def closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object", "properties": required | optional, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


def named(server: dict[str, Any]) -> dict[str, Any]:
    """One server under a name that every client takes."""
    return {
        "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False,
        "patternProperties": {"^[A-Za-z0-9_-]+$": server},
    }  # fmt: skip


HEADERS = closed({"Authorization": TEXT})
RULES: dict[str, dict[str, Any]] = {
    "claude-desktop": closed({"mcpServers": named(closed({"command": TEXT, "args": WORDS}, env={"type": "object"}))}),
    "codex": closed({"mcp_servers": named(closed(
        {"url": TEXT, "bearer_token_env_var": {"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}},
        startup_timeout_sec={"type": "integer", "minimum": 1}, tool_timeout_sec={"type": "integer", "minimum": 1},
        enabled={"type": "boolean"}, http_headers={"type": "object"}, env_http_headers={"type": "object"},
    ))}),
    "gemini": closed({"mcpServers": named(closed(
        {"httpUrl": TEXT}, headers=HEADERS, timeout={"type": "integer", "maximum": 2**31 - 1}, trust={"const": False}
    ))}),
    "cursor": closed({"mcpServers": named(closed({"url": TEXT}, headers=HEADERS))}),
    "vscode": closed(
        {"servers": named(closed({"type": {"const": "http"}, "url": TEXT}, headers=HEADERS))},
        inputs={"type": "array", "items": closed(
            {"type": {"const": "promptString"}, "id": TEXT, "description": TEXT}, password={"const": True}
        )},
    ),
    "opencode": closed(
        {"mcp": named(closed(
            {"type": {"const": "remote"}, "url": TEXT}, headers=HEADERS, enabled={"type": "boolean"},
            oauth={"const": False}, timeout={"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        ))},
        **{"$schema": {"const": "https://opencode.ai/config.json"}},
    ),
    "zed": closed({"context_servers": named(closed(
        {"command": TEXT, "args": WORDS}, env={"type": "object"},
        timeout={"type": "integer", "minimum": 1, "maximum": 600},
    ))}),
}  # fmt: skip


def started(data: Path, name: str = "my-agent", expire_hours: int = 23) -> Path:
    with open_folder(name, data, pytest.fail) as folder:
        folder.write_server(ServerInfo(URL, 5226, expire_hours, "0.1.0", 1, datetime(2026, 11, 30, tzinfo=UTC)))
    return data


def config(capsys: pytest.CaptureFixture[str], client: str, data: Path, name: str = "my-agent") -> tuple[Any, str]:
    """What the client reads, checked by its rules, and the steps for a person."""
    assert cli.run(["config", client, name, "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    token = (data / "token").read_text().strip()
    assert token not in out + err
    found = tomllib.loads(out) if client == "codex" else json.loads(out)
    jsonschema.validate(found, RULES[client])
    for number, line in enumerate(err.splitlines(), 1):
        assert line.startswith(f"{number}. ")
    return found, err


def server_of(found: dict[str, Any]) -> dict[str, Any]:
    """The only server of a configuration."""
    servers = next(value for key, value in found.items() if key not in ("$schema", "inputs"))
    return servers["simplex-my-agent"]


def test_every_client_has_rules_here():
    assert set(RULES) == set(CLIENTS)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_every_client_finds_the_server_and_is_told_what_to_do(client: str, tmp_path: Path, capsys):
    found, steps = config(capsys, client, started(tmp_path / "data"))
    server = server_of(found)
    if "command" not in server:
        assert URL in server.values()
    assert len(steps.splitlines()) >= 2


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_nasty_name_and_folder_stay_what_they_are(client: str, tmp_path: Path, capsys):
    name = 'a]b "c" {d} $(e) é'
    data = started(tmp_path / 'it\'s {a} "folder" $(x) é', name)
    found, steps = config(capsys, client, data, name)
    server = next(iter(next(value for key, value in found.items() if key not in ("$schema", "inputs")).values()))
    if "command" in server:
        assert server["args"][-4:] == ["bridge", name, "--data", str(data)]
    assert steps.replace("\n", "").isprintable()


def test_gemini_gets_a_name_without_underscores_which_its_rules_for_tools_would_split(tmp_path: Path, capsys):
    found, _ = config(capsys, "gemini", started(tmp_path / "data", "my_agent"), "my_agent")
    assert list(found["mcpServers"]) == ["simplex-my-agent"]


@pytest.mark.parametrize("client", ["claude-desktop", "zed"])
def test_a_client_that_speaks_only_stdio_starts_the_bridge_from_anywhere(client: str, tmp_path: Path, capsys):
    data = started(tmp_path / "data")
    server = server_of(config(capsys, client, data)[0])
    assert server["args"][-4:] == ["bridge", "my-agent", "--data", str(data)]
    assert Path(server["command"]).is_absolute()
    done = subprocess.run(
        [server["command"], *server["args"]], input="", capture_output=True, text=True, timeout=60, check=False,
        cwd="/", env={},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_script_on_the_path_the_bridge_is_a_module_of_this_python(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["pytest"])
    server = server_of(config(capsys, "zed", started(tmp_path / "data"))[0])
    assert [server["command"], *server["args"]][:3] == [sys.executable, "-m", "simplexmcp"]


def test_the_script_that_runs_is_the_one_that_the_client_starts(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "simplexmcp").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["./simplexmcp", "config"])
    assert server_of(config(capsys, "zed", started(tmp_path / "data"))[0])["command"] == f"{tmp_path}/simplexmcp"


@pytest.mark.parametrize("client", ["codex", "gemini", "cursor"])
def test_the_variable_that_the_steps_set_is_the_one_that_the_client_reads(client: str, tmp_path: Path, capsys):
    data = started(tmp_path / "it's")
    found, steps = config(capsys, client, data)
    command = re.search(r": (export .*)", steps)
    assert command is not None
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command[1]}; env"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=dict(os.environ),
    )
    environment = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    server = server_of(found)
    if client == "codex":
        sent = f"Bearer {environment[server['bearer_token_env_var']]}"
    else:
        sent = re.sub(r"\$\{(?:env:)?(\w+)\}", lambda name: environment[name[1]], server["headers"]["Authorization"])
    assert sent == f"Bearer {(data / 'token').read_text().strip()}"


def test_opencode_reads_the_token_from_its_file(tmp_path: Path, capsys):
    data = started(tmp_path / "data")
    header = server_of(config(capsys, "opencode", data)[0])["headers"]["Authorization"]
    read = re.sub(r"\{file:([^}]+)\}", lambda file: Path(file[1]).read_text().strip(), header)
    assert read == f"Bearer {(data / 'token').read_text().strip()}"


def test_opencode_gets_a_variable_when_its_form_for_files_cannot_hold_the_path(tmp_path: Path, capsys):
    data = started(tmp_path / "a}b")
    found, steps = config(capsys, "opencode", data)
    assert server_of(found)["headers"]["Authorization"] == "Bearer {env:SIMPLEX_MY_AGENT_TOKEN}"
    assert f'export SIMPLEX_MY_AGENT_TOKEN="$(cat {shlex.quote(str(data / "token"))})"' in steps


def test_vs_code_asks_for_the_token_that_its_header_names(tmp_path: Path, capsys):
    found, steps = config(capsys, "vscode", started(tmp_path / "data"))
    assert server_of(found)["headers"]["Authorization"] == f"Bearer ${{input:{found['inputs'][0]['id']}}}"
    assert str(tmp_path / "data" / "token") in steps


@pytest.mark.parametrize(
    ("client", "key", "value"),
    [
        ("codex", "tool_timeout_sec", 169_800),
        ("gemini", "timeout", 169_800_000),
        ("opencode", "timeout", 169_800_000),
        ("zed", "timeout", 600),
    ],
)
def test_each_client_waits_as_long_as_it_can_for_an_approval(client: str, key: str, value: int, tmp_path: Path, capsys):
    assert server_of(config(capsys, client, started(tmp_path / "data"))[0])[key] == value


def test_an_agent_that_was_never_started_says_how_to_start_it(tmp_path: Path, capsys):
    assert cli.run(["config", "zed", "my-agent", "--data", str(tmp_path / "x")]) == 1
    assert capsys.readouterr() == (
        "",
        f'Agent "my-agent" was never started. Start it with: simplexmcp serve my-agent --data {tmp_path}/x\n',
    )
