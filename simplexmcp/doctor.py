"""`simplexmcp doctor`: looks at everything that an agent needs, changes nothing, downloads nothing. A line for each
check; one that is not `ok` says what to do."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from simplexmcp.agents import agent_names, data_root, default_data
from simplexmcp.auditlines import moment_of, parse_entry
from simplexmcp.auditlog import newest_lines
from simplexmcp.clock import hhmm
from simplexmcp.errors import CoreError, UserError
from simplexmcp.folder import ServerInfo, loose_modes, read_private, read_server, read_token, running_pid
from simplexmcp.options import shown_core
from simplexmcp.register import command_line, entry, find_entries
from simplexmcp.status import read_status
from simplexmcp.terminal import plain, printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from simplexmcp.terminal import Paint

__all__ = ["Agent", "Check", "as_json", "as_text", "examine", "failed"]

Result: TypeAlias = Literal["ok", "warn", "fail"]

_LOOKS: dict[Result, str] = {"ok": "good", "warn": "doubtful", "fail": "bad"}
_OLDEST_PYTHON = (3, 11)
_PORT = 5226
_LITTLE_ROOM, _NO_ROOM = 1 << 30, 50 << 20  # bytes
_CORE_WAIT = 10.0  # seconds
_LOG_END = 1 << 16  # bytes of the audit log that hold its last entry


@final
@dataclass(frozen=True)
class Check:
    """What one look found."""

    check: str
    result: Result
    text: str


@final
@dataclass(frozen=True)
class Agent:
    """The agent to look at; `given`: whether `--data` gave its folder."""

    name: str
    data: Path
    given: bool

    def command(self, command: str) -> str:
        """A command for a person's shell."""
        return command_line(command, self.name, self.data if self.given else None)


def examine(agent: Agent | None, core: str | None, port: int | None, now: datetime) -> list[Check]:
    """Every check in its order. `core` as `--core` takes it, None the usual one; `port` None is the agent's, or the
    usual one."""
    server, found = None, None
    if agent is not None:
        server, found = _folder(agent)
    running = agent is not None and running_pid(agent.data) is not None
    checks = [_python(), _core(core, running=running), _clock(agent, server, now), _disk(agent)]
    if found is not None:
        checks.append(found)
    if agent is None or server is None:
        checks += [_port(port or _PORT), _claude()]
        return [check if check.text.isprintable() else _inert(check) for check in checks]
    checks += [_token(agent), _running(agent, server, now, running=running)]
    checks += _answers(agent, now) if running else [_port(server.port if port is None else port)]
    checks += [_claude(), *_registrations(agent, server)]
    return [check if check.text.isprintable() else _inert(check) for check in checks]


def failed(checks: list[Check]) -> bool:
    """Whether one of them found what keeps an agent from working."""
    return any(check.result == "fail" for check in checks)


def as_text(checks: list[Check], paint: Paint = plain) -> str:
    """A line for each check, and what comes of them."""
    bad, doubtful = (sum(check.result == result for check in checks) for result in ("fail", "warn"))
    end = f"{bad} failed, {doubtful} to look at." if bad or doubtful else "Everything is as it should be."
    lines = [f"{paint(f'{check.result:4}', _LOOKS[check.result])}  {check.check}: {check.text}" for check in checks]
    return "\n".join([*lines, end])


def as_json(checks: list[Check]) -> str:
    """One JSON object on one line; its keys stay."""
    return json.dumps({"ok": not failed(checks), "checks": [asdict(check) for check in checks]})


def _python() -> Check:
    found = sys.version.split()[0]
    if sys.version_info < _OLDEST_PYTHON:
        return Check("python", "fail", f"Python {found} is too old. Install 3.11 or later.")
    return Check("python", "ok", f"Python {found}")


def _core(core: str | None, *, running: bool) -> Check:
    if running:
        # A second client of the same core would take messages away.
        return Check("core", "ok", "The running agent has it")
    if core == "sandbox":
        return Check("core", "ok", "The sandbox is a simulation: nobody real can be reached.")
    if core is None or core == "native":
        return _library()
    try:
        return Check("core", "ok", f"simplex-chat {_core_version(core)} answers at {shown_core(core)}")
    except (UserError, CoreError) as error:
        return Check("core", "fail", str(error))


def _library() -> Check:
    from simplexmcp.core.libsimplex import check_library, find_library

    try:
        file = find_library()
        if file.exists():
            check_library(file)
            return Check("core", "ok", f"libsimplex loads from {file}")
    except UserError as error:
        return Check("core", "fail", str(error))
    text = f"libsimplex is not at {file} yet: the first start downloads it from github.com."
    return Check("core", "warn", text)


def _core_version(core: str) -> str:
    """The version of a running simplex-chat. Raises UserError, CoreError."""
    import trio

    from simplexmcp.core.api import ChatApi
    from simplexmcp.core.websocket import open_websocket

    async def ask() -> str:
        with trio.move_on_after(_CORE_WAIT):
            async with open_websocket(core) as link:
                return await ChatApi(link).version()
        raise UserError(f"{shown_core(core)} does not answer within {_CORE_WAIT:.0f} s. Restart simplex-chat.")

    try:
        version = trio.run(ask)
    except* (UserError, CoreError) as group:
        raise _first(group) from None
    if int("0" + version.partition(".")[0]) < 7:
        raise UserError(f"simplex-chat {version} is too old: simplexmcp needs 7.0 or later. Update it.")
    return version


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _clock(agent: Agent | None, server: ServerInfo | None, now: datetime) -> Check:
    """Cards expire by the clock; it must not be before what was written already."""
    known = [server.started] if server is not None else []
    if agent is not None:
        known += [at for entry in _last_entries(agent.data / "audit.jsonl") if (at := moment_of(entry)) is not None]
    latest = max(known, default=None)
    installed = Path(__file__).stat().st_mtime
    if (latest is not None and now < latest) or now.timestamp() < installed:
        return Check("clock", "fail", f"It shows {now.astimezone():%Y-%m-%d %H:%M}, which was before. Set the clock.")
    return Check("clock", "ok", f"{now.astimezone():%Y-%m-%d %H:%M %Z}")


def _last_entries(log: Path) -> Iterator[dict[str, object]]:
    try:
        found = next(filter(None, map(parse_entry, newest_lines(log, _LOG_END))), None)
    except (OSError, UserError):
        return  # the check of the folder tells it
    if found is not None:
        yield found


def _disk(agent: Agent | None) -> Check:
    place = data_root() if agent is None else agent.data
    place = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    text = f"{free >> 20:,} MB free at {place}"
    if free < _NO_ROOM:
        return Check("disk", "fail", f"{text}: nothing can be kept. Make room.")
    return Check("disk", "warn", f"{text}: make room.") if free < _LITTLE_ROOM else Check("disk", "ok", text)


def _folder(agent: Agent) -> tuple[ServerInfo | None, Check]:
    try:
        server = read_server(agent.name, agent.data)
        if server is None:
            text = f"The agent was never started. Start it with: {agent.command('serve')}"
            return None, Check("folder", "fail", text)
        loose = loose_modes(agent.data)
    except UserError as error:
        return None, Check("folder", "fail", str(error))
    if loose:
        text = f"In {agent.data} others have rights to {', '.join(loose)}. Start the agent again: it repairs that."
        return server, Check("folder", "warn", text)
    return server, Check("folder", "ok", f"{agent.data} is yours alone")


def _token(agent: Agent) -> Check:
    try:
        wanted = {"Authorization": f"Bearer {read_token(agent.data)}"}
        same = json.loads(read_private(agent.data / "headers.json")) == wanted
    except UserError as error:
        return Check("token", "fail", str(error))
    except (OSError, ValueError):
        same = False
    if not same:
        return Check("token", "fail", "headers.json does not hold the token. Start the agent again: it writes it.")
    return Check("token", "ok", "token and headers.json agree")


def _running(agent: Agent, server: ServerInfo, now: datetime, *, running: bool) -> Check:
    since = hhmm(server.started, now)
    if not running:
        text = f"The agent is not running; its last start was {since}. Start it with: {agent.command('serve')}"
        return Check("server", "warn", text)
    return Check("server", "ok", f"The agent is running since {since}, version {server.version}")


def _answers(agent: Agent, now: datetime) -> list[Check]:
    """What a running server says."""
    status = read_status(agent.name, agent.data, now, given=agent.given)
    if status.link_down is not None:
        since = hhmm(status.link_down, now)
        return [Check("link", "fail", f"The link to the SimpleX core is down since {since}. Start simplex-chat again.")]
    if status.backlog is None:
        text = f"The server does not answer at {status.server.url}. If it is not starting, stop it and start it again."
        return [Check("port", "fail", text)]
    if not status.owners and status.owners is not None:
        text = "Nobody approves yet: join the control chat by the link that the server printed."
        return [Check("port", "ok", f"The server answers at {status.server.url}"), Check("owners", "warn", text)]
    return [Check("port", "ok", f"The server answers at {status.server.url}")]


def _port(port: int) -> Check:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
            return Check("port", "ok", f"Port {port} is free")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                text = f"Port {port} can't be opened ({error.strerror}). Choose another with --port."
                return Check("port", "fail", text)
    for name in agent_names():
        if _has_port(name, port):
            return Check("port", "warn", f"Port {port} is used by agent {name}. Give a second agent another --port.")
    text = f"Port {port} is used by another program. End that, or choose another port with --port."
    return Check("port", "fail", text)


def _has_port(name: str, port: int) -> bool:
    data = default_data(name)
    try:
        server = read_server(name, data)
    except UserError:
        return False  # `doctor` with that name tells it
    return server is not None and server.port == port and running_pid(data) is not None


def _claude() -> Check:
    if found := shutil.which("claude"):
        return Check("claude", "ok", found)
    return Check("claude", "warn", "There is no claude program on PATH. Install Claude Code if you want to use it.")


def _registrations(agent: Agent, server: ServerInfo) -> list[Check]:
    try:
        entries = find_entries(agent.name)
    except UserError as error:
        return [Check("registration", "fail", f"{error}. Repair that file.")]
    if not entries:
        text = f"Claude Code does not know the agent here. Add it with: {agent.command('register')}"
        return [Check("registration", "warn", text)]
    wanted = entry(server, agent.data)
    checks: list[Check] = []
    for scope, found in entries.items():
        told = found if isinstance(found, dict) else {}
        odd = [key for key, value in wanted.items() if told.get(key) != value]
        again = f"{agent.command('register')} --scope {scope}"
        if odd:
            result: Result = "warn" if odd == ["timeout"] else "fail"
            text = f"Claude Code (scope {scope}) has another {', '.join(odd)} than the agent. Add it again: {again}"
            checks.append(Check("registration", result, text))
        else:
            checks.append(Check("registration", "ok", f"Claude Code knows the agent (scope {scope})"))
    return checks


def _inert(check: Check) -> Check:
    return Check(check.check, check.result, printable(check.text))
