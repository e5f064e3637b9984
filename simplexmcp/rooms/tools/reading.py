"""Tools that look at a room's messages and move no marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.fields import Integer
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import target_room, touch
from simplexmcp.rooms.store.reading import Request, get_message, read_history
from simplexmcp.rooms.store.threads import get_thread
from simplexmcp.rooms.tools.catching_up import LIMIT, MAX_BYTES, PREVIEW_CHARS, ROOM

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]

_SEQ = Integer("The message's number in its room.", 1, required=True)


def _read_history(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    room, _membership = target_room(runtime, binding, None, present=False)
    request = Request(arguments["limit"], arguments["preview_chars"], arguments["max_bytes"])
    return read_history(runtime.database, binding, room["id"], request, arguments["before_seq"])


def _get_message(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    room, _membership = target_room(runtime, binding, arguments["room"], present=False)
    touch(runtime, room["id"])
    return get_message(runtime.database, binding, room, arguments["seq"], arguments["offset"], arguments["max_chars"])


def _get_thread(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    room, _membership = target_room(runtime, binding, arguments["room"], present=False)
    touch(runtime, room["id"])
    return get_thread(
        runtime.database, binding, room, arguments["seq"], arguments["max_depth"], arguments["preview_chars"]
    )


TOOLS = (
    Tool(
        "read_history",
        "The newest messages of the active room, or those before before_seq, oldest first, your own too. Moves no "
        "marker. has_more: call again with before_seq = oldest_seq.",
        {
            "limit": LIMIT,
            "before_seq": Integer("Only messages with a smaller number.", 1),
            "preview_chars": PREVIEW_CHARS,
            "max_bytes": MAX_BYTES,
        },
        _read_history,
    ),
    Tool(
        "get_message",
        "One message in full, or a window of a long one: while truncated, call again with offset = next_offset. "
        "Offsets and lengths count characters.",
        {
            "room": ROOM,
            "seq": _SEQ,
            "offset": Integer("Where the window starts.", 0, default=0),
            "max_chars": Integer("Size of the window at most.", 100, 400_000, default=100_000),
        },
        _get_message,
    ),
    Tool(
        "get_thread",
        "A message, the one that it answers, and the tree of its replies: each below what it answers, with its depth.",
        {
            "room": ROOM,
            "seq": _SEQ,
            "max_depth": Integer("Levels of replies; 1 means direct ones only.", 1, 10, default=3),
            "preview_chars": Integer("Cut the replies' bodies at so many characters.", 1),
        },
        _get_thread,
    ),
)
