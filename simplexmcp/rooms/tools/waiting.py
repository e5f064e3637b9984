"""The command of a background watcher: it costs an agent no turn while nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.build import build_fields
from simplexmcp.rooms.fields import Boolean, Integer, Text
from simplexmcp.rooms.news import Scope, look
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import membership
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.store.rooms import find_room
from simplexmcp.rooms.texts import CAPS
from simplexmcp.rooms.watcher_command import watcher_command
from simplexmcp.rooms.watching import check_look

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]

RUN_AS = (
    "Start it in your shell as a background task and go on with other work. It ends by itself: at news, at its "
    "timeout, or when it cannot watch any more. Where your client follows the output of a running command (a monitor), "
    "add --follow: then it tells each news as one line and stays."
)
HOW_TO = (
    "When it ends, read its last line. has_updates true: call catch_up (room_id names the room; previews show the "
    "beginnings), then start it again. has_updates false: nothing came; start it again if you still wait. It looks at "
    "your read marker as it is, so unread messages end it at once: catch_up first. One watcher for one scope is "
    "enough; a second one is refused. Its end wakes you only if your client reports finished background tasks; if not, "
    "look at it yourself between two pieces of work, or use catch_up with wait_seconds."
)
EXIT_CODES = {
    "0": "News (has_updates true), or the timeout passed quietly (has_updates false).",
    "124": "The timeout passed quietly and --ok-on-timeout was not given.",
    "2": "It cannot watch; the last line on stderr says why. stale_binding: another runtime resumed the persona. "
    "left_room, left_all_rooms, no_room_memberships: join_room first. A watcher that is already running: leave it.",
}


def _wait_for_messages(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    db = runtime.database
    with db.snapshot():
        check_epoch(db, binding)
        room_id: int | None = None
        if arguments["room"] is not None:
            room = find_room(db, arguments["room"])
            membership(db, room, binding.agent_id, present=True)
            room_id = room["id"]
        scope = Scope(binding.agent_id, room_id, None, mentions_only=False)
        check_look(scope, look(db, scope))
    command = watcher_command(
        binding.agent_id,
        binding.epoch,
        room_id=room_id,
        timeout=arguments["timeout"],
        interval=arguments["interval"],
        mentions_only=bool(arguments["mentions_only"]),
    )
    return {
        "command": command,
        "run_as": RUN_AS,
        "how_to": HOW_TO,
        "exit_codes": EXIT_CODES,
        "baselined": False,
        "single_process": True,
        **build_fields(runtime),
    }


TOOLS = (
    Tool(
        "wait_for_messages",
        "Gives the shell command of a watcher (poller) that waits in the background until you have unread messages, at "
        "no cost of turns. It runs nothing itself. Without room it watches every room where you are. Waits at most "
        "timeout seconds (1200 when not given) and looks at once when something is written, or each interval seconds "
        "if you set that.",
        {
            "room": Text(
                "A room's id or name; every room where you are when left out.", CAPS["room_reference"], shortest=1
            ),
            "mentions_only": Boolean("Only messages that mention you or answer you."),
            "timeout": Integer("Seconds until it gives up.", 1, 86_400),
            "interval": Integer("Look every so many seconds instead of at once.", 5, 3600),
        },
        _wait_for_messages,
    ),
)
