"""What comes with the program for others to run it: the container, its compose file, the entry of the MCP registry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from simplexmcp import __version__
from simplexmcp.arguments import PARSERS, Serve, serve_options

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instruction(name: str) -> str:
    """The last instruction of this name in the last stage."""
    return re.findall(rf"(?m)^{name} (.*)$", DOCKERFILE.rpartition("\nFROM ")[2])[-1]


@pytest.fixture
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_container_serves_as_a_user_of_its_own_with_its_data_in_the_volume(monkeypatch, tmp_path: Path):
    assert json.loads(instruction("ENTRYPOINT")) == ["simplexmcp"]
    words = json.loads(instruction("CMD"))
    monkeypatch.setenv("XDG_DATA_HOME", re.findall(r"XDG_DATA_HOME=(\S+)", DOCKERFILE)[0])
    options = serve_options(Serve(prog="simplexmcp serve").parse_args(words[1:]))
    assert options.data.is_relative_to(instruction("VOLUME"))
    assert instruction("USER") == "agent"
    assert "EXPOSE" not in DOCKERFILE  # the server listens on the container's own 127.0.0.1


def test_the_container_is_healthy_while_its_agent_runs():
    check = instruction("HEALTHCHECK").partition("CMD ")[2]
    program, *words = json.loads(check)
    assert program == "simplexmcp"
    assert PARSERS[words[0]](prog="x").parse_args(words[1:]).name is None


def test_what_the_image_is_built_from_is_not_left_out_of_its_context():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    project = (ROOT / "pyproject.toml").read_text()
    assert kept == {"simplexmcp", "completions", "man", "pyproject.toml", "README.md", "LICENSE"}
    for name in kept - {"pyproject.toml"}:
        assert name in project
        assert (ROOT / name).exists()


def test_compose_gives_nothing_away(compose: dict[str, Any]):
    agent = compose["services"]["agent"]
    assert "ports" not in agent
    assert "network_mode" not in agent
    assert agent["read_only"]
    assert agent["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in agent["security_opt"]
    (volume,) = agent["volumes"]
    name, _, place = volume.partition(":")
    assert place == instruction("VOLUME")
    assert name in compose["volumes"]


def test_compose_stops_with_more_patience_than_the_server(compose: dict[str, Any]):
    agent = compose["services"]["agent"]
    options = serve_options(Serve(prog="simplexmcp serve").parse_args(agent["command"][1:]))
    assert int(agent["stop_grace_period"].removesuffix("s")) > options.stop_wait


def test_the_registry_entry_is_of_this_version_and_the_readme_proves_whose_it_is():
    entry = json.loads((ROOT / "server.json").read_text())
    (package,) = entry["packages"]
    assert entry["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert entry["version"] == package["version"] == __version__
    assert package["identifier"] == "simplexmcp"
    assert package["transport"] == {"type": "stdio"}
    assert 1 <= len(entry["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert f"mcp-name: {entry['name']}" in (ROOT / "README.md").read_text()


def test_the_command_of_the_registry_entry_is_taken():
    (package,) = json.loads((ROOT / "server.json").read_text())["packages"]
    words = [argument.get("value") or argument["default"] for argument in package["packageArguments"]]
    assert PARSERS[words[0]](prog="x").parse_args(words[1:]).name == "my-agent"
