"""The tool that removes old messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.fields import Boolean, Integer
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import target_room
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.store.pruning import prune

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]


def _prune_messages(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    db, binding = runtime.database, runtime.bound()
    with db.write():
        check_epoch(db, binding)
        room, _ = target_room(runtime, binding, None, present=True)
        done = prune(db, room["id"], arguments["keep_last"], force=bool(arguments["force"]))
    if done.deleted:
        db.shrink()
    result: dict[str, Any] = {"room_id": room["id"], "deleted": done.deleted, "kept": done.kept}
    if done.unread:
        result |= {"refused": True, "would_delete_unread": done.unread, "min_read_seq": done.lowest_marker}
    return result


TOOLS = (
    Tool(
        "prune_messages",
        "Deletes all but the newest messages of the active room, for everyone. Refused while a member, also one who "
        "left, has not read one of them; force deletes all the same. Numbers go on; nothing is renumbered.",
        {
            "keep_last": Integer("How many of the newest messages stay.", 1, required=True),
            "force": Boolean("Delete also what somebody has not read."),
        },
        _prune_messages,
    ),
)
