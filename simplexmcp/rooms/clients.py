"""The programs that agents run in, and how each is told of the rooms: its server entry and its hooks.

Facts about other programs are all here: where their settings are, and in which form.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.clients import own_command
from simplexmcp.errors import UserError
from simplexmcp.rooms.edits import Edit, json_edit, parse_toml, read_json, read_toml, toml_edit
from simplexmcp.rooms.watcher_command import LAUNCHER, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CLIENTS",
    "Client",
    "client_named",
    "hooks_edit",
    "is_hooked",
    "named",
    "registered",
    "server_command",
    "server_edit",
    "server_name",
    "wait_edit",
]

_NAME = "agent-chat"
_HOOK_SECONDS = 10
# An agent may wait this long (ms) for a command in the background; otherwise Codex ends it after minutes.
_WAIT, _WAIT_MS = "background_terminal_max_timeout", 3_600_000


class Client(NamedTuple):
    """A client: its program, the words that add and remove the server there (before and after the command), the files
    of its server entries and hooks, and its hooks' events, each with a matcher or None."""

    name: str
    title: str
    program: str
    add: tuple[str, ...]
    remove: tuple[str, ...]
    servers: Callable[[], Path]
    hooks: Callable[[], Path] | None = None
    events: tuple[tuple[str, str | None], ...] = ()
    hook_timeout: int = _HOOK_SECONDS
    stdio: bool = False
    note: str = ""


def _home(variable: str, folder: str) -> Path:
    given = os.environ.get(variable)
    return Path(given) if given else Path.home() / folder


def _claude_servers() -> Path:
    given = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(given) if given else Path.home()) / ".claude.json"


def _agy_servers() -> Path:
    given = os.environ.get("AGENT_CHAT_AGY_CONFIG")
    return Path(given) if given else Path.home() / ".gemini" / "config" / "mcp_config.json"


_CLAUDE_EVENTS = (("PostToolUse", "*"), ("UserPromptSubmit", None), ("Stop", None))
CLIENTS = (
    Client(
        "claude",
        "Claude Code",
        "claude",
        ("mcp", "add", "--scope", "user", "--transport", "stdio", _NAME, "--"),
        ("mcp", "remove", "--scope", "user", _NAME),
        _claude_servers,
        lambda: _home("CLAUDE_CONFIG_DIR", ".claude") / "settings.json",
        _CLAUDE_EVENTS,
        stdio=True,
    ),
    Client(
        "codex",
        "Codex",
        "codex",
        ("mcp", "add", _NAME, "--"),
        ("mcp", "remove", _NAME),
        lambda: _home("CODEX_HOME", ".codex") / "config.toml",
        lambda: _home("CODEX_HOME", ".codex") / "hooks.json",
        _CLAUDE_EVENTS,
        note="Codex runs new hooks only after you trusted them: type /hooks in it. Older versions need "
        '"codex_hooks = true" under [features] in config.toml, too.',
    ),
    Client(
        "gemini",
        "Gemini CLI",
        "gemini",
        ("mcp", "add", "--scope", "user", _NAME),
        ("mcp", "remove", "--scope", "user", _NAME),
        lambda: Path.home() / ".gemini" / "settings.json",
        lambda: Path.home() / ".gemini" / "settings.json",
        (("AfterTool", "*"), ("BeforeAgent", None), ("AfterAgent", None)),
        hook_timeout=_HOOK_SECONDS * 1000,
        note='Older versions run hooks only with "hooksConfig": {"enabled": true} in the same file.',
    ),
    Client(
        "agy",
        "Antigravity",
        "",
        (),
        (),
        _agy_servers,
    ),
)


def client_named(name: str) -> Client:
    """The client of this name. Raises UserError."""
    for client in CLIENTS:
        if client.name == name:
            return client
    names = ", ".join(client.name for client in CLIENTS)
    raise UserError(f'There is no client "{name}" that this program knows. It knows {names}.', 2)


def server_name() -> str:
    """What the server is called in the clients' settings. Raises UserError for a name that they cannot hold."""
    name = os.environ.get("AGENT_CHAT_MCP_NAME", _NAME).strip()
    if not (name.isascii() and name.replace("-", "").replace("_", "").isalnum()) or name.startswith("-"):
        raise UserError("AGENT_CHAT_MCP_NAME holds letters, digits, - and _ alone.", 2)
    return name


def named(words: tuple[str, ...]) -> list[str]:
    """The words that add or remove the server, with what it is called."""
    return [server_name() if word == _NAME else word for word in words]


def server_command() -> list[str]:
    """What a client runs to start the server: this installation, by its full path."""
    return [*own_command(), "rooms", "mcp"]


def registered(client: Client) -> list[str] | None:
    """The command of the server entry in the client's settings; None without an entry. Raises UserError."""
    path = client.servers()
    entry = _servers(path).get(server_name())
    if not isinstance(entry, dict):
        return None
    arguments = entry.get("args", [])
    return [str(entry.get("command", "")), *(map(str, arguments) if isinstance(arguments, list) else ())]


def server_edit(client: Client, command: list[str] | None) -> Edit:
    """The edit of the client's settings that adds the server with this command, or (None) takes it out. Raises
    UserError."""
    path = client.servers()
    if path.suffix == ".toml":
        return _toml_server(path, command)
    settings = read_json(path)
    servers, mine = _table(path, settings, "mcpServers"), server_name()
    if command is None:
        servers = {name: entry for name, entry in servers.items() if name != mine}
    else:
        kept = servers.get(mine)
        form = {"type": "stdio"} if client.stdio else {}
        entry = form | (kept if isinstance(kept, dict) else {}) | {"command": command[0], "args": command[1:]}
        servers = servers | {mine: entry}
    return json_edit(path, _with(settings, "mcpServers", servers))


def wait_edit(client: Client, *, wanted: bool) -> Edit | None:
    """The edit that lets an agent wait for a watcher as long as it likes, where the client must be told; a value of the
    user's own stays. Raises UserError."""
    path = client.servers()
    if path.suffix != ".toml":
        return None
    mine = toml_edit(path, "wait", "", first=True)
    if wanted and (mine.after is None or _WAIT not in parse_toml(path, mine.after)):
        return toml_edit(path, "wait", f"{_WAIT} = {_WAIT_MS}\n", first=True)
    return mine


def hooks_edit(client: Client, *, wanted: bool) -> Edit | None:
    """The edit that adds our hooks or takes them out; None for a client without hooks. Raises UserError."""
    if client.hooks is None:
        return None
    path = client.hooks()
    settings = read_json(path)
    hooks = _table(path, settings, "hooks")
    for event, matcher in client.events:
        groups = hooks.get(event, [])
        if not isinstance(groups, list):
            raise UserError(f'"{event}" of the hooks in {path} is no list, so it was left alone. Repair it first.')
        kept = [rest for group in groups if (rest := _without_ours(client, group)) is not None]
        hooks = _with(hooks, event, [*kept, _group(client, matcher)] if wanted else kept)
    return json_edit(path, _with(settings, "hooks", hooks))


def is_hooked(client: Client) -> bool:
    """Whether all our hooks are in the client's settings, as this installation writes them. Raises UserError."""
    edit = hooks_edit(client, wanted=True)
    return edit is not None and edit.before == edit.after


def _servers(path: Path) -> dict[str, Any]:
    if path.suffix == ".toml":
        return _table(path, read_toml(path), "mcp_servers")
    return _table(path, read_json(path), "mcpServers")


def _toml_server(path: Path, command: list[str] | None) -> Edit:
    without, name = toml_edit(path, "server", "", first=False), server_name()
    if name in _table(path, parse_toml(path, without.after or ""), "mcp_servers"):
        raise UserError(f"[mcp_servers.{name}] in {path} was not written by this program. Change it by hand.")
    if command is None:
        return without
    words = [json.dumps(word, ensure_ascii=False) for word in command]
    text = f"[mcp_servers.{name}]\ncommand = {words[0]}\nargs = [{', '.join(words[1:])}]\n"
    return toml_edit(path, "server", text, first=False)


def _group(client: Client, matcher: str | None) -> dict[str, Any]:
    command = f"{quoted(sys.executable)} {quoted(LAUNCHER)} hook {client.name}"
    hook = {"type": "command", "command": command, "timeout": client.hook_timeout}
    return ({} if matcher is None else {"matcher": matcher}) | {"hooks": [hook]}


def _without_ours(client: Client, group: Any) -> Any:
    """A group of hooks without ours; None when nothing is left of it."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    hooks = [hook for hook in group["hooks"] if not _is_ours(client, hook)]
    if len(hooks) == len(group["hooks"]):
        return group
    return group | {"hooks": hooks} if hooks else None


def _is_ours(client: Client, hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and command.endswith(f"launcher.py' hook {client.name}")


def _table(path: Path, settings: dict[str, Any], key: str) -> dict[str, Any]:
    value = settings.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f'"{key}" in {path} is no table, so it was left alone. Repair it first.')
    return value


def _with(table: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The table with this value under the key, at its old place; without the key when the value is empty."""
    if not value:
        return {name: inner for name, inner in table.items() if name != key}
    return table | {key: value}
