"""Which persona a client's session holds: each server notes it, for the hooks that the same client runs.

A server is its client's child, and so is the shell of a hook: the client's process ID brings them together. Nothing is
guessed: a hook whose client has no server with a persona hears of none.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.errors import UserError
from simplexmcp.rooms.lock import alive
from simplexmcp.rooms.state import file_in, folders, read, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simplexmcp.rooms.runtime import Binding

__all__ = ["Seat", "note_seat", "seat_of_client", "seated"]

_FOLDER = "seats"
_STARTERS = frozenset({"uv", "uvx", "pipx"})  # they start a server for a client, and wait for it
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "timeout", "env"}) | _STARTERS
_LONGEST_CHAIN = 8


class Seat(NamedTuple):
    """A persona that a living server holds, at its epoch, in the database at `path`."""

    agent_id: str
    epoch: int
    path: str


def note_seat(path: str, binding: Binding | None) -> None:
    """Notes the persona that this server holds now, or that it holds none. Best effort: only hooks read it."""
    file = file_in(_FOLDER, f"{os.getpid()}.json")
    with suppress(UserError, OSError):
        if binding is None:
            _remove(file)
        else:
            seat = {"agent_id": binding.agent_id, "epoch": binding.epoch, "database": path}
            write(file, {**seat, "pid": os.getpid(), "client": _client(os.getpid(), _STARTERS)})


def seat_of_client() -> Seat | None:
    """What the client that runs this hook holds; the newest of several. Notes of servers that ended are removed."""
    client = _client(os.getpid(), _SHELLS)
    mine = [(os.stat(file).st_mtime, note) for file, note in _notes() if note.get("client") == client]  # noqa: PTH116
    if not mine:
        return None
    _written, note = max(mine, key=lambda noted: noted[0])
    return Seat(str(note["agent_id"]), int(note["epoch"]), str(note["database"]))


def seated(path: str, agent_id: str) -> int | None:
    """The process of the living server that holds this persona in the database at `path`; None without one."""
    for _file, note in _notes():
        if (note.get("database"), note.get("agent_id")) == (path, agent_id):
            return int(note["pid"])
    return None


def _notes() -> Iterator[tuple[str, dict[str, Any]]]:
    """The notes of living servers, with their files. Those of servers that ended are removed."""
    files: list[str] = []
    for folder in folders(_FOLDER):
        with suppress(OSError):
            files += [f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".json")]  # noqa: PTH208
    for file in files:
        with suppress(UserError, OSError):
            note = read(file)
            if _is_living(note):
                yield file, note
            elif note:
                _remove(file)


def _is_living(note: dict[str, Any]) -> bool:
    pid = note.get("pid")
    return isinstance(pid, int) and pid > 0 and alive(pid)


def _remove(file: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(file)  # noqa: PTH108


def _client(pid: int, between: frozenset[str]) -> int:
    """The nearest ancestor of a process that is none of those that only start others."""
    for _step in range(_LONGEST_CHAIN):
        pid = _parent(pid)
        if pid <= 1 or _name(pid) not in between:
            break
    return pid


def _parent(pid: int) -> int:
    if pid == os.getpid():
        return os.getppid()
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return int(_ps(pid, "ppid") or 0)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return os.path.basename(_ps(pid, "comm")).lstrip("-")  # noqa: PTH119


def _ps(pid: int, column: str) -> str:
    """One fact about a process where there is no /proc."""
    import subprocess  # costs start time that only systems without /proc need

    words = ["ps", "-o", f"{column}=", "-p", str(pid)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 - no shell
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
