"""Claude Code's entry of an agent (flow 2): through the `claude` program, or printed for the person to add.

The program is run with an argument list, never through a shell. Only the helper command inside the entry is
meant for a shell, Claude Code's: its path is quoted.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from simplexmcp.errors import UserError
from simplexmcp.folder import read_server
from simplexmcp.programs import run_program, said
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    import subprocess

    from simplexmcp.folder import ServerInfo

__all__ = [
    "Scope",
    "command_line",
    "entry",
    "find_entries",
    "longest_call",
    "register",
    "server_name",
    "started_server",
    "unregister",
]

Scope: TypeAlias = Literal["user", "local", "project"]

_SCOPES: tuple[Scope, ...] = ("user", "local", "project")
_LIMIT = 60.0  # seconds for one call of the claude program; it takes about one
_KNOWS_NONE = re.compile(r"\bno\b.*\bmcp server", re.IGNORECASE)
_LONGEST = 2_147_483_647  # ms: above it Claude Code's timer ends at once


def register(name: str, scope: Scope, data: Path, *, given: bool) -> str:
    """Adds agent `name` to Claude Code, in place of an entry it had. Returns the line to print. Flow 2.

    `given`: whether `data` came from `--data`. Raises UserError: never started, no claude program (with the
    entry to add), or it refuses.
    """
    info = started_server(name, data, given=given)
    server = f"simplex-{name}"
    server_entry = json.dumps(entry(info, data), separators=(",", ":"))
    if shutil.which("claude") is None:
        raise UserError(f"Add this entry under {_place(scope)}: {{{json.dumps(server)}:{server_entry}}}")
    _claude("remove", "--scope", scope, server)
    added = _claude("add-json", "--scope", scope, server, server_entry)
    if added.returncode != 0:
        raise UserError(f"claude mcp add-json failed: {said(added)}")
    return f"Added to Claude Code: scope {scope}, server {server}."


def unregister(name: str) -> str:
    """Takes agent `name` out of Claude Code, in every scope that has it. Returns the line to print. Raises
    UserError."""
    server = f"simplex-{name}"
    if shutil.which("claude") is None:
        raise UserError(
            f'There is no claude program here. Delete {json.dumps(server)} under "mcpServers" '
            "in ~/.claude.json and .mcp.json."
        )
    done = {scope: _claude("remove", "--scope", scope, server) for scope in _SCOPES}
    scopes = [scope for scope, ended in done.items() if ended.returncode == 0]
    if not scopes:
        for ended in done.values():
            if not _KNOWS_NONE.search(words := said(ended)):
                raise UserError(f"claude mcp remove failed: {words}")
        raise UserError(f"Claude Code has no server {server} here: nothing to take out.")
    return f"Removed from Claude Code: scope {', '.join(scopes)}, server {server}."


def entry(info: ServerInfo, data: Path) -> dict[str, Any]:
    """Claude Code's entry: it reads the token from DATA at each connection, so that the entry holds no
    secret.

    `timeout` is in ms.
    """
    return {
        "type": "http",
        "url": info.url,
        "headersHelper": f"cat {shlex.quote(str(data / 'headers.json'))}",
        "timeout": longest_call(info),
    }


def longest_call(info: ServerInfo) -> int:
    """How long a client waits for a call, in ms: until its request expires, and a day more."""
    return min((info.expire_hours + 24) * 3_600_000 + 600_000, _LONGEST)


def server_name(name: str) -> str:
    """The name of the agent's server in configurations whose names are letters, digits, `-` and `_`."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"simplex-{name}")


def find_entries(name: str) -> dict[str, Any]:
    """What Claude Code's files say of agent `name`, by scope, as they are. Raises UserError for a file that can't be
    read."""
    server, found = f"simplex-{name}", dict[str, Any]()
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    config = _config_file((Path(folder) if folder else Path.home()) / ".claude.json")
    project = config.get("projects", {})
    places = {
        "user": config,
        "local": project.get(str(_project(Path.cwd()))) if isinstance(project, dict) else None,
        "project": _config_file(Path.cwd() / ".mcp.json"),
    }
    for scope, place in places.items():
        servers = place.get("mcpServers") if isinstance(place, dict) else None
        if isinstance(servers, dict) and server in servers:
            found[scope] = servers[server]
    return found


def _config_file(path: Path) -> dict[str, Any]:
    try:
        config: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{printable(str(path))} can't be read: {printable(str(error))}") from error
    return config if isinstance(config, dict) else {}


def started_server(name: str, data: Path, *, given: bool) -> ServerInfo:
    """What the server of agent `name` said at its last start; `given`: whether `--data` gave `data`. Raises UserError
    when it was never started, or can't be read."""
    info = read_server(name, data)
    if info is None:
        start = command_line("serve", name, data if given else None)
        raise UserError(f'Agent "{name}" was never started. Start it with: {start}')
    return info


def command_line(command: str, name: str, data: Path | None) -> str:
    """`simplexmcp COMMAND NAME [--data DIR]` for a person's shell."""
    words = ["simplexmcp", command, name]
    if data is not None:
        words += ["--data", str(data)]
    return shlex.join(words)


def _claude(*words: str) -> subprocess.CompletedProcess[str]:
    return run_program(["claude", "mcp", *words], _LIMIT)


def _place(scope: Scope) -> str:
    if scope == "project":
        return f'"mcpServers" in {printable(str(Path.cwd() / ".mcp.json"))}'
    if scope == "local":
        return f'"mcpServers" of projects[{json.dumps(str(_project(Path.cwd())))}] in ~/.claude.json'
    return '"mcpServers" in ~/.claude.json'


def _project(folder: Path) -> Path:
    """The folder that Claude Code files a local entry under: the root of the repository, the main repository
    of a worktree, or `folder` itself outside a repository."""
    for root in (folder, *folder.parents):
        mark = root / ".git"
        if mark.is_dir():
            return root
        if mark.is_file():
            return _main_repository(mark) or root
    return folder


def _main_repository(mark: Path) -> Path | None:
    """The main repository of the worktree whose `.git` file is `mark`; None for a submodule or what can't be
    read."""
    try:
        text = mark.read_text("utf-8").strip()
        if not text.startswith("gitdir: "):
            return None
        gitdir = (mark.parent / text.removeprefix("gitdir: ")).resolve()
        common = (gitdir / (gitdir / "commondir").read_text("utf-8").strip()).resolve()
    except (OSError, ValueError):
        return None
    return common.parent if common.name == ".git" else common
