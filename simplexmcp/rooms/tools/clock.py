"""The clock that every time stamp of the rooms is taken from."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.runtime import Tool

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]


def _what_time_is_it_right_now(runtime: Runtime, _arguments: dict[str, Any]) -> dict[str, Any]:
    unix = int(runtime.database.value("SELECT unixepoch('now')"))
    local = time.localtime(unix)
    offset = time.strftime("%z", local)
    return {
        "iso": f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}{offset[:3]}:{offset[3:]}",
        "unix": unix,
        "at": time.strftime("%Y-%m-%d %H:%M:%S", local),
        "timezone": _zone(),
    }


def _zone() -> str:
    """The machine's time zone by its IANA name; the letters that its clock shows where no name is set."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        try:
            named = os.path.realpath("/etc/localtime", strict=True)
        except OSError:
            return "UTC"
    if "zoneinfo/" in named:
        named = named.split("zoneinfo/", 1)[1].removeprefix("posix/").removeprefix("right/")
    if named.startswith("/") or named in ("Etc/UTC", "UTC", "UCT", "Etc/UCT"):
        return time.tzname[0] if named.startswith("/") else "UTC"
    return named


TOOLS = (
    Tool(
        "what_time_is_it_right_now",
        "The current time of this machine, by the clock that stamps the messages: local with offset (iso, at), epoch "
        "seconds (unix, comparable with a message's unix), and the time zone.",
        {},
        _what_time_is_it_right_now,
    ),
)
