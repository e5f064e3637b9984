"""`search_messages`: full-text search in the active room, or in all rooms of the persona."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

from simplexmcp.rooms.fields import Choice, Integer, Text
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import target_room
from simplexmcp.rooms.store.search import Filter, search
from simplexmcp.rooms.texts import CAPS, check_text

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]

_LATEST = 253_402_300_799  # the end of the year 9999, as far as SQLite counts


@final
class _Moment:
    """A point in time: epoch seconds, or a date with or without a time (local unless it says otherwise)."""

    required = False
    default = None

    def schema(self) -> dict[str, Any]:
        description = "Only messages since then: epoch seconds, or ISO 8601 (local time without an offset)."
        return {"anyOf": [{"type": "number"}, {"type": "string"}], "description": description}

    def check(self, value: Any, path: list[Any], issues: list[dict[str, Any]]) -> Any:
        seconds = _seconds(value)
        if seconds is None or not 0 <= seconds <= _LATEST:
            message = "since: Expected epoch seconds or an ISO 8601 time, like 2026-07-01T12:00:00+02:00"
            issues.append({"code": "custom", "path": path, "message": message})
            return None
        return seconds


def _seconds(value: Any) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.floor(value) if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    from datetime import datetime  # costs start time that only this needs

    try:
        return math.floor(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _search_messages(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    room_id = None
    if arguments["rooms"] is None:
        room, _membership = target_room(runtime, binding, None, present=False)
        room_id = room["id"]
    if (author := arguments["from"]) is not None:
        check_text("from", author)
    which = Filter(room_id, author, arguments["since"])
    limit, offset = arguments["limit"], arguments["offset"] or 0
    return search(runtime.database, binding, arguments["query"], which, limit=limit, offset=offset)


TOOLS = (
    Tool(
        "search_messages",
        'Full-text search (SQLite FTS5), best matches first: words must all occur; OR, NOT, "a phrase", prefix*, '
        "NEAR(a b). Ordinary text with signs, like src/db.ts or a-b, is searched for word by word "
        "(interpreted_as). Searches the active room. Moves no marker. next_offset gives the next page.",
        {
            "query": Text("What to look for.", CAPS["search_query"], shortest=1, required=True),
            "limit": Integer("Matches in one answer at most.", 1, 100, default=20),
            "offset": Integer("Skip so many matches.", 0),
            "rooms": Choice("All rooms where you are present, instead of the active one.", ("all",)),
            "from": Text("Only messages of this persona.", CAPS["agent_id"], shortest=1),
            "since": _Moment(),
        },
        _search_messages,
    ),
)
