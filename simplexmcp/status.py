"""What `simplexmcp status` says of an agent: read from its data folder, in which nothing is changed, and how many
messages wait from the server while one runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.agents import agent_names, default_data
from simplexmcp.auditlines import moment_of, owners_of, parse_entry, sentence_of
from simplexmcp.auditlog import newest_lines
from simplexmcp.clock import hhmm, iso
from simplexmcp.errors import UserError
from simplexmcp.folder import ServerInfo, read_token, running_pid
from simplexmcp.journal import read_journal
from simplexmcp.register import command_line, started_server
from simplexmcp.terminal import plain, printable

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from simplexmcp.terminal import Paint

__all__ = ["Backlog", "Overview", "Status", "read_all", "read_status"]

_AUDIT_LIMIT = 8 << 20  # bytes of the audit log's end that are looked through
_WANTED = (b'"event":"owners"', b'"event":"link-', b'"event":"core-shared"')
_ASK_WAIT = 2.0  # seconds
_ANSWER_LIMIT = 1 << 20  # bytes


@final
@dataclass(frozen=True)
class Backlog:
    """Messages that the agent has not read yet."""

    messages: int
    chats: int


@final
@dataclass(frozen=True)
class Status:
    """One look at an agent."""

    name: str
    start: str
    """The command that starts it."""
    now: datetime
    server: ServerInfo
    """The server that runs, or ran last."""
    pid: int | None
    """The process that runs; 0 when unknown, None when none does."""
    actions: dict[str, int]
    """How many actions are open, by state."""
    owners: list[dict[str, Any]] | None
    """Who decides, as the log knows it; None when it does not say."""
    link_down: datetime | None
    """Since when the running server has no link to the core."""
    others: int
    """How many other programs are connected to the port of the running server's core."""
    backlog: Backlog | None
    """None when no server runs, or it does not answer."""
    last: dict[str, Any] | None
    """The last entry of the audit log."""

    @property
    def running(self) -> bool:
        """Whether a server holds the folder's lock now."""
        return self.pid is not None

    def as_json(self) -> str:
        """One JSON object on one line; its keys stay."""
        return json.dumps(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """What is in the JSON object."""
        backlog = None if self.backlog is None else {"messages": self.backlog.messages, "chats": self.backlog.chats}
        return {
            "agent": self.name,
            "running": self.running,
            "pid": self.pid,
            "url": self.server.url,
            "version": self.server.version,
            "started": iso(self.server.started),
            "owners": self.owners,
            "linkDownSince": None if self.link_down is None else iso(self.link_down),
            "othersAtCore": self.others,
            "backlog": backlog,
            "actions": self.actions,
            "last": self.last,
        }

    def as_text(self, paint: Paint = plain) -> str:
        """A few lines for a person."""
        since = hhmm(self.server.started, self.now)
        if self.running:
            process = f" (process {self.pid})" if self.pid else ""
            lines = [
                f"Agent {self.name} is running{process} since {since}.",
                f"Version {self.server.version}, {self.server.url}",
            ]
        else:
            lines = [f"Agent {self.name} is not running; its last start was {since}. Start it with: {self.start}"]
        if self.owners is not None:
            lines.append(f"Owners: {', '.join(map(_owner, self.owners)) or 'none'}")
        lines += self._link_lines()
        if self.others:
            who = "Another program is" if self.others == 1 else f"{self.others} other programs are"
            lines.append(
                f"Warning: {who} connected to the port of the SimpleX core: messages can be missing here, and it can "
                "send as the agent without approval."
            )
        counts = ", ".join(f"{count} {state}" for state, count in sorted(self.actions.items())) or "none"
        left = "" if self.running or not self.actions else " (the next start finishes their cards)"
        lines.append(f"Open actions: {counts}{left}")
        if self.last is not None:
            at = moment_of(self.last)
            lines.append(f"Last event: {'' if at is None else hhmm(at, self.now) + ' '}{sentence_of(self.last)}")
        first, *rest = map(printable, lines)
        return "\n".join([paint(first, "good" if self.running else "doubtful"), *rest])

    def _link_lines(self) -> list[str]:
        if self.link_down is not None:
            return [f"The link to the SimpleX core is down since {hhmm(self.link_down, self.now)}."]
        if self.backlog is not None:
            if not self.backlog.messages:
                return ["Unread: nothing"]
            return [f"Unread: {_count(self.backlog.messages, 'message')} in {_count(self.backlog.chats, 'chat')}"]
        return ["The server does not answer, or is still starting."] if self.running else []


@final
@dataclass(frozen=True)
class Overview:
    """One look at every agent in the user's data folder."""

    agents: list[Status]
    unread: dict[str, str]
    """Why the others could not be read, by name."""

    @property
    def running(self) -> bool:
        """Whether at least one of them runs."""
        return any(status.running for status in self.agents)

    def as_json(self) -> str:
        """One JSON object on one line: `agents`, each as for one agent or with `agent` and `error` only."""
        errors = [{"agent": name, "error": error} for name, error in self.unread.items()]
        return json.dumps({"agents": [*(status.as_dict() for status in self.agents), *errors]})

    def as_text(self, paint: Paint = plain) -> str:
        """A few lines for each agent."""
        errors = [paint(printable(error), "bad") for error in self.unread.values()]
        return "\n\n".join([*(status.as_text(paint) for status in self.agents), *errors])


def read_all(now: datetime) -> Overview:
    """The state of every agent in the user's data folder. Raises UserError when there is none."""
    found, unread = list[Status](), dict[str, str]()
    for name in agent_names():
        try:
            found.append(read_status(name, default_data(name), now, given=False))
        except UserError as error:
            unread[name] = str(error)
    if not found and not unread:
        raise UserError("No agent was ever started. Start one with: simplexmcp serve my-agent")
    return Overview(found, unread)


def read_status(name: str, data: Path, now: datetime, *, given: bool) -> Status:
    """The state of agent `name` in DATA at `data`; `given`: whether `--data` gave it. Raises UserError when
    it was never started, or can't be read."""
    start = command_line("serve", name, data if given else None)
    server = started_server(name, data, given=given)
    pid = running_pid(data)
    try:
        actions = Counter(str(entry.get("state")) for entry in read_journal(data / "actions.jsonl"))
        found = _read_audit(data / "audit.jsonl")
    except OSError as error:
        raise UserError(f"{printable(str(data))} can't be read: {error.strerror}.") from error
    link_down, others = (found.link_down, found.others) if pid is not None else (None, 0)
    if link_down is not None and link_down < server.started:
        link_down = None
    if found.others_at is None or found.others_at < server.started:
        others = 0
    backlog = _ask_backlog(server, data) if pid is not None and link_down is None else None
    return Status(name, start, now, server, pid, dict(actions), found.owners, link_down, others, backlog, found.last)


@final
@dataclass
class _Found:
    owners: list[dict[str, Any]] | None = None
    link_down: datetime | None = None
    others: int = 0
    others_at: datetime | None = None
    last: dict[str, Any] | None = None


def _read_audit(path: Path) -> _Found:
    """The newest words of the log on each matter. Raises OSError."""
    found, link_known = _Found(), False
    try:
        for line in newest_lines(path, _AUDIT_LIMIT):
            # Most lines need no look inside.
            if found.last is not None and not any(word in line for word in _WANTED):
                continue
            if (entry := parse_entry(line)) is None:
                continue
            found.last = found.last or entry
            event = entry.get("event")
            if event == "owners" and found.owners is None:
                found.owners = owners_of(entry)
            elif event in ("link-lost", "link-back") and not link_known:
                link_known = True
                found.link_down = moment_of(entry) if event == "link-lost" else None
            elif event == "core-shared" and found.others_at is None:
                found.others, found.others_at = _clients(entry), moment_of(entry)
            if link_known and found.owners is not None and found.others_at is not None:
                break
    except FileNotFoundError:
        pass  # nothing happened yet
    return found


def _clients(entry: dict[str, Any]) -> int:
    clients = entry.get("clients")
    return clients if isinstance(clients, int) else 0


def _ask_backlog(server: ServerInfo, data: Path) -> Backlog | None:
    """What the running server's `list` says is unread; None when it does not answer in time. Only the process that
    holds the lock sees the token: another one may have got the port of the last start."""
    if running_pid(data) not in (0, server.pid):
        return None
    import http.client

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list", "arguments": {}}}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ASK_WAIT)
    try:
        headers = {
            "Authorization": f"Bearer {read_token(data)}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        connection.request("POST", "/mcp", json.dumps(call), headers)
        body = connection.getresponse().read(_ANSWER_LIMIT)
        answer: Any = json.loads(body if body.startswith(b"{") else body.rpartition(b"\ndata: ")[2])
        unread = [int(chat["unread"]) for chat in answer["result"]["structuredContent"]["chats"]]
    except (OSError, http.client.HTTPException, UserError, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()
    return Backlog(sum(unread), sum(1 for count in unread if count))


def _owner(owner: dict[str, Any]) -> str:
    return f"{owner.get('name')} (member {owner.get('member')})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
