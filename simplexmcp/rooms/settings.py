"""What the environment says: where the database is, and how long a call may wait.

The reference's variables are honoured; `SIMPLEXMCP_ROOMS_DB` goes before its `AGENT_CHAT_DB`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from simplexmcp.errors import UserError

__all__ = ["DEFAULT_WAIT", "LONGEST_WAIT", "Settings", "database_path", "read_settings"]

DEFAULT_WAIT = 25
LONGEST_WAIT = 120


class Settings(NamedTuple):
    """`path`: absolute, or `:memory:`. `max_wait`: the longest `wait_seconds`. `reference_tools`: no tool that the
    reference program has not."""

    path: str
    max_wait: int = DEFAULT_WAIT
    reference_tools: bool = False


def read_settings() -> Settings:
    """The settings of a server. Raises UserError before anything is opened."""
    return Settings(database_path(), _max_wait(), _reference_tools())


def database_path(given: str | None = None) -> str:
    """The database's path: `given`, the environment's, or the default that all programs share."""
    for value in (given, os.environ.get("SIMPLEXMCP_ROOMS_DB"), os.environ.get("AGENT_CHAT_DB")):
        if value is not None and (text := value.strip()):
            return text if text == ":memory:" else os.path.abspath(text)  # noqa: PTH100 - pathlib costs start time
    return os.path.join(os.path.expanduser("~"), ".agent-chat-mcp", "chat.db")  # noqa: PTH111, PTH118


def _max_wait() -> int:
    text = os.environ.get("AGENT_CHAT_MAX_WAIT_SECONDS", "")
    if not text:
        return DEFAULT_WAIT
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LONGEST_WAIT):
        raise UserError(f"AGENT_CHAT_MAX_WAIT_SECONDS is a whole number of seconds from 1 to {LONGEST_WAIT}.", 1)
    return int(text)


def _reference_tools() -> bool:
    text = os.environ.get("SIMPLEXMCP_ROOMS_TOOLS", "").strip()
    if text not in ("", "all", "reference"):
        raise UserError("SIMPLEXMCP_ROOMS_TOOLS is all, or reference for the tools of the reference program alone.", 1)
    return text == "reference"
