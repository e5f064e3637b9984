"""Which program text this server runs, and whether the one on disk is another by now.

An update replaces the files while servers run on. They work, with the old text, until their client starts them anew.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, final

from simplexmcp import __version__

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["Build", "Stamp", "build_fields", "server_stale", "stamps"]

GUIDANCE = (
    "The program on disk has changed since this server started. Everything works on with the old text. To get the new "
    "one, let the client reconnect this MCP server (or start a new session), then call resume_persona."
)


class Stamp(NamedTuple):
    """A program text: the hash of its files, and when the newest of them was written (UTC). `commit` is always a text,
    as clients of the reference expect; a build need not know it."""

    artifact_hash: str
    built_at: str
    commit: str = "unknown"


@final
class Build:
    """The files of a folder, as they were when this was made and as they are."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, int]] = {}
        self._latest: Stamp | None = None
        self.started = self.latest()

    def latest(self) -> Stamp | None:
        """The files as they are now; None when they cannot be read."""
        try:
            found = _look(self._folder)
            if self._latest is None or found != self._seen:
                self._latest = _stamp(self._folder, found)
                self._seen = found
        except OSError:
            self._latest = None
        return self._latest

    def is_stale(self) -> bool:
        """Whether the text on disk is another one. Unreadable files say nothing."""
        return _is_stale(self.started, self.latest())


def stamps() -> tuple[Stamp | None, Stamp | None, bool]:
    """What this process runs, what is on disk, and whether they differ."""
    latest = _BUILD.latest()
    return _BUILD.started, latest, _is_stale(_BUILD.started, latest)


def server_stale() -> bool:
    """Whether this process runs an older text than the one on disk."""
    return _BUILD.is_stale()


def build_fields(_runtime: Runtime) -> dict[str, Any]:
    """What results that hand out a watcher command say about the server: `server_build`, `server_stale`, and, where
    known, `latest_build` and `reconnect_guidance`."""
    started, latest, stale = stamps()
    fields: dict[str, Any] = {
        "server_build": {"version": __version__, **_fields(started)},
        "server_stale": stale,
    }
    if latest is not None:
        fields["latest_build"] = _fields(latest)
    if stale:
        fields["reconnect_guidance"] = GUIDANCE
    return fields


def _fields(stamp: Stamp | None) -> dict[str, Any]:
    if stamp is None:
        return {"commit": None, "built_at": None, "artifact_hash": None}
    return {"commit": stamp.commit, "built_at": stamp.built_at, "artifact_hash": stamp.artifact_hash}


def _is_stale(started: Stamp | None, latest: Stamp | None) -> bool:
    return started is not None and latest is not None and started.artifact_hash != latest.artifact_hash


def _look(folder: str) -> dict[str, tuple[int, int]]:
    """Size and time (ns) of each source file by its name."""
    found: dict[str, tuple[int, int]] = {}
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    found[entry.path] = (status.st_size, status.st_mtime_ns)
    return found


def _stamp(folder: str, found: dict[str, tuple[int, int]]) -> Stamp:
    from hashlib import sha256

    digest = sha256()
    for path in sorted(found):
        digest.update(f"{path.removeprefix(folder)}\0".encode("utf-8", "surrogateescape"))
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start time
            digest.update(sha256(file.read()).digest())
    newest = max((written for _, written in found.values()), default=0)
    built_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest // 1_000_000_000))
    return Stamp(digest.hexdigest(), built_at)


_BUILD = Build(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
