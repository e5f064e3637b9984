"""`simplexmcp config`: how other MCP clients are told of an agent, each with its own keys and time limits.

No client gets the token in its configuration: it reads it from a file or from its environment, asks for it once, or
starts the bridge, which reads it itself.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from simplexmcp.register import longest_call, server_name, started_server

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLIENTS", "Snippet", "client_config", "own_command"]

_ZED_LONGEST = 600  # seconds
_AGAIN = "the same call, made again, goes on waiting"


@final
@dataclass(frozen=True)
class Snippet:
    """What a client reads, and what a person does with it."""

    text: str
    """For stdout; ends with a line break."""
    steps: tuple[str, ...]
    """For stderr, a line each."""


@final
@dataclass(frozen=True)
class _Agent:
    """What a configuration says of an agent."""

    key: str
    """The server's name: letters, digits, `-` and `_`, which every client takes."""
    name: str
    url: str
    data: Path
    seconds: int
    """The longest call."""

    @property
    def variable(self) -> str:
        """The environment variable for the token."""
        return f"{re.sub('[^A-Z0-9]', '_', self.key.upper())}_TOKEN"

    @property
    def bridge(self) -> list[str]:
        """The command that a client starts; with the folder, since it may have another environment."""
        return [*own_command(), "bridge", self.name, "--data", str(self.data)]

    def export(self, client: str) -> str:
        """How the variable is set, without the token on a command line."""
        token = shlex.quote(str(self.data / "token"))
        return f'2. In the shell that starts {client}: export {self.variable}="$(cat {token})"'


def client_config(client: str, name: str, data: Path, *, given: bool) -> Snippet:
    """The configuration of a client in CLIENTS for agent `name`; `given`: whether `--data` gave `data`. Raises
    UserError."""
    info = started_server(name, data, given=given)
    return CLIENTS[client](_Agent(server_name(name), name, info.url, data, longest_call(info) // 1000))


def own_command() -> list[str]:
    """The words that start this program from anywhere."""
    script = Path(sys.argv[0])
    if script.name == "simplexmcp" and script.is_file():
        return [str(Path.cwd() / script)]
    if found := shutil.which("simplexmcp"):
        return [str(Path.cwd() / found)]
    return [sys.executable, "-m", "simplexmcp"]


def _claude_desktop(agent: _Agent) -> Snippet:
    command, *words = agent.bridge
    home = "~/Library/Application Support/Claude" if sys.platform == "darwin" else "~/.config/Claude"
    return Snippet(
        _json({"mcpServers": {agent.key: {"command": command, "args": words}}}),
        (
            f"1. Put this into {home}/claude_desktop_config.json; start Claude Desktop again.",
            f"2. Keep the agent running. Claude Desktop ends a call after about a minute: {_AGAIN}.",
        ),
    )


def _codex(agent: _Agent) -> Snippet:
    lines = (
        f"[mcp_servers.{agent.key}]",
        f"url = {json.dumps(agent.url)}",
        f"bearer_token_env_var = {json.dumps(agent.variable)}",
        "startup_timeout_sec = 20",
        f"tool_timeout_sec = {agent.seconds}",
    )
    return Snippet(
        "".join(f"{line}\n" for line in lines),
        ("1. Add this to ~/.codex/config.toml.", agent.export("Codex"), "3. Start Codex again."),
    )


def _gemini(agent: _Agent) -> Snippet:
    server = {
        "httpUrl": agent.url,
        "headers": {"Authorization": f"Bearer ${{{agent.variable}}}"},
        "timeout": agent.seconds * 1000,
    }
    # Its rules for tools take what stands before the first `_` for the server.
    key = agent.key.replace("_", "-")
    return Snippet(
        _json({"mcpServers": {key: server}}),
        ("1. Add this to ~/.gemini/settings.json.", agent.export("Gemini CLI"), "3. Start Gemini CLI again."),
    )


def _cursor(agent: _Agent) -> Snippet:
    server = {"url": agent.url, "headers": {"Authorization": f"Bearer ${{env:{agent.variable}}}"}}
    return Snippet(
        _json({"mcpServers": {agent.key: server}}),
        (
            "1. Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project.",
            agent.export("Cursor"),
            f"3. Start Cursor again. If it ends a long call: {_AGAIN}.",
        ),
    )


def _vscode(agent: _Agent) -> Snippet:
    question = f"{agent.key}-token"
    server = {"type": "http", "url": agent.url, "headers": {"Authorization": f"Bearer ${{input:{question}}}"}}
    description = f"Token of the agent: the content of {agent.data / 'token'}"
    asked = {"type": "promptString", "id": question, "description": description, "password": True}
    return Snippet(
        _json({"inputs": [asked], "servers": {agent.key: server}}),
        (
            "1. Put this into .vscode/mcp.json of a project, or into your own (MCP: Open User Configuration).",
            f"2. VS Code asks once for the token and keeps it safe: paste the content of {agent.data / 'token'}",
        ),
    )


def _opencode(agent: _Agent) -> Snippet:
    file = str(agent.data / "token")
    # A closing brace would end the reference.
    token, steps = f"{{file:{file}}}", ["1. Add this to ~/.config/opencode/opencode.json."]
    if "}" in file:
        token = f"{{env:{agent.variable}}}"
        steps.append(agent.export("opencode"))
    server = {
        "type": "remote", "url": agent.url, "headers": {"Authorization": f"Bearer {token}"},
        "oauth": False, "enabled": True, "timeout": agent.seconds * 1000,
    }  # fmt: skip
    own = f'"mcp": {{"servers": …}}, without "enabled", with "timeout": {{"request": {server["timeout"]}}}'
    steps.append(f"{len(steps) + 1}. opencode 2 reads this, too. Its own form: the server in {own}.")
    steps.append(f"{len(steps) + 1}. Start opencode again. If it ends a call after 5 minutes: {_AGAIN}.")
    return Snippet(_json({"$schema": "https://opencode.ai/config.json", "mcp": {agent.key: server}}), tuple(steps))


def _zed(agent: _Agent) -> Snippet:
    command, *words = agent.bridge
    server = {"command": command, "args": words, "env": {}, "timeout": min(agent.seconds, _ZED_LONGEST)}
    return Snippet(
        _json({"context_servers": {agent.key: server}}),
        (
            "1. Add this to ~/.config/zed/settings.json (zed: open settings).",
            f"2. Keep the agent running. Zed ends a call after 10 minutes: {_AGAIN}.",
        ),
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


CLIENTS: dict[str, Callable[[_Agent], Snippet]] = {
    "claude-desktop": _claude_desktop,
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "vscode": _vscode,
    "opencode": _opencode,
    "zed": _zed,
}
"""How each client is told."""
