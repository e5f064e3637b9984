"""Tools that look at what waits for somebody in all rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.fields import Integer, Number, Record, Text
from simplexmcp.rooms.pages import trim
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.inbox import Place, my_mentions, pending_work
from simplexmcp.rooms.store.reading import Request
from simplexmcp.rooms.texts import CAPS
from simplexmcp.rooms.tools.catching_up import LIMIT, MAX_BYTES, PREVIEW_CHARS

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]


def _my_mentions(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    request = Request(arguments["limit"], arguments["preview_chars"], arguments["max_bytes"])
    return my_mentions(runtime.database, runtime.bound(), request, arguments["after_id"] or 0)


def _pending_work(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    after = arguments["after"]
    rows, more = pending_work(runtime.database, Place(**after) if after else None, arguments["limit"])
    rows, trimmed = trim(rows)
    result: dict[str, Any] = {"pending": rows}
    if more or trimmed:
        result["truncated"] = True
        result["next_after"] = {key: rows[-1][key] for key in Place._fields}
    return {**result, "size_trimmed": True} if trimmed else result


TOOLS = (
    Tool(
        "my_mentions",
        "Unread messages directed at you (they name you, or answer a message of yours) in all rooms where you are "
        "present, and by_room how much is unread where. Only looks: catch_up in the room reads them. For the next "
        "page call with after_id = next_after_id.",
        {
            "limit": LIMIT,
            "preview_chars": PREVIEW_CHARS,
            "max_bytes": MAX_BYTES,
            "after_id": Integer("Only messages after this one of an earlier answer (next_after_id).", 0),
        },
        _my_mentions,
    ),
    Tool(
        "pending_work",
        "For whoever supervises: which present members have unread messages directed at them, longest waiting first. "
        "Needs no persona.",
        {
            "limit": Integer("Rows in one answer at most.", 1, 500, default=50),
            "after": Record(
                "next_after of the answer before.",
                {
                    "oldest_unix": Number("Time of the row's oldest message.", 0, required=True),
                    "agent_id": Text("The row's persona.", CAPS["agent_id"], shortest=1, required=True),
                    "room_id": Integer("The row's room.", 1, required=True),
                },
            ),
        },
        _pending_work,
    ),
)
