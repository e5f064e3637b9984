"""The command line of a background watcher, for the shell of an agent (POSIX)."""

from __future__ import annotations

import os
import sys

__all__ = ["LAUNCHER", "quoted", "watcher_command"]

# Run by its path: that starts faster than a console script, and needs nothing of the agent's PATH.
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.py")  # noqa: PTH100, PTH118, PTH120


def watcher_command(
    agent_id: str,
    epoch: int,
    *,
    room_id: int | None = None,
    timeout: int | None = None,
    interval: int | None = None,
    mentions_only: bool = False,
) -> str:
    """The watcher of this runtime's persona: one room or (None) all rooms; `timeout` and `interval` in seconds. Every
    value is quoted for a shell."""
    # The option means nothing to Python. By this name watchers are told from other commands, the reference's as ours.
    words = [quoted(sys.executable), "-X", "poller.js", quoted(LAUNCHER), "--agent", quoted(agent_id)]
    words += ["--owner-pid", quoted(str(os.getpid()))]
    if room_id is not None:
        words += ["--room", quoted(str(room_id))]
    words += ["--epoch", quoted(str(epoch))]
    if timeout is not None:
        words += ["--timeout", quoted(str(timeout))]
    if interval is not None:
        words += ["--interval", quoted(str(interval))]
    words.append("--ok-on-timeout")
    if mentions_only:
        words.append("--mentions-only")
    return " ".join(words)


def quoted(word: str) -> str:
    """The word in single quotes, as any POSIX shell reads it."""
    return "'" + word.replace("'", "'\\''") + "'"
