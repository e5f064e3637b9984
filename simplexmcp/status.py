"""What `simplexmcp status` says of an agent: read from its data folder alone, nothing in it is changed."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.audit import read_audit
from simplexmcp.clock import hhmm, iso
from simplexmcp.errors import UserError
from simplexmcp.folder import ServerInfo, read_server, running_pid
from simplexmcp.journal import read_journal
from simplexmcp.register import command_line
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

__all__ = ["Status", "read_status"]


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
    last: dict[str, Any] | None
    """The last entry of the audit log."""

    @property
    def running(self) -> bool:
        """Whether a server holds the folder's lock now."""
        return self.pid is not None

    def as_json(self) -> str:
        """One JSON object on one line; its keys stay."""
        return json.dumps(
            {
                "agent": self.name,
                "running": self.running,
                "pid": self.pid,
                "url": self.server.url,
                "version": self.server.version,
                "started": iso(self.server.started),
                "actions": self.actions,
                "last": self.last,
            }
        )

    def as_text(self) -> str:
        """A few lines for a person."""
        since = hhmm(self.server.started, self.now)
        if self.running:
            lines = [
                f"Agent {self.name} is running (process {self.pid}) since {since}.",
                f"Version {self.server.version}, {self.server.url}",
            ]
        else:
            lines = [f"Agent {self.name} is not running; its last start was {since}. Start it with: {self.start}"]
        counts = ", ".join(f"{count} {state}" for state, count in sorted(self.actions.items())) or "none"
        left = "" if self.running or not self.actions else " (the next start finishes their cards)"
        lines.append(f"Open actions: {counts}{left}")
        if self.last is not None:
            fields = ", ".join(f"{key} {value}" for key, value in self.last.items() if key not in ("at", "event"))
            lines.append(f"Last event: {self.last.get('at')} {self.last.get('event')}{fields and ', '}{fields}")
        return "\n".join(printable(line) for line in lines)


def read_status(name: str, data: Path, now: datetime, *, given: bool) -> Status:
    """The state of agent `name` in DATA at `data`; `given`: whether `--data` gave it. Raises UserError when
    it was never started, or can't be read."""
    start = command_line("serve", name, data if given else None)
    server = read_server(name, data)
    if server is None:
        raise UserError(f'Agent "{name}" was never started. Start it with: {start}')
    try:
        actions = Counter(str(entry.get("state")) for entry in read_journal(data / "actions.jsonl"))
        last = deque(read_audit(data / "audit.jsonl"), maxlen=1) if (data / "audit.jsonl").exists() else ()
    except OSError as error:
        raise UserError(f"{printable(str(data))} can't be read: {error.strerror}.") from error
    return Status(name, start, now, server, running_pid(data), dict(actions), last[0] if last else None)
