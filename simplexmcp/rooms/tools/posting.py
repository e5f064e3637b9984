"""The tool that posts, and what it tells about those who should read the message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.fields import AnyContent, Boolean, Integer, Text, Texts
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.store.members import resolve_room, touch
from simplexmcp.rooms.store.posting import Draft, Duplicate, Posted, Pruned, post
from simplexmcp.rooms.store.pruning import BATCH, apply_retention
from simplexmcp.rooms.store.rooms import lookup_room
from simplexmcp.rooms.texts import CAPS, MAX_BODY_BYTES, check_text, check_value, has_controls

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Runtime
    from simplexmcp.rooms.store.posting import Crossed

__all__ = ["TOOLS", "make_body"]

_STALLED_SECONDS = 1800  # a recipient who is idle for so long, and was behind already, may not come back
_RETENTION_SECONDS = 3600.0
_TWO_MINUTES = 120


def _post_message(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    binding = runtime.bound()
    room = _target(runtime, arguments["room"], arguments["expected_room"])
    to = _recipients(arguments["to"])
    draft = _draft(arguments, to)
    touch(runtime, room["id"])
    outcome = post(
        runtime.database,
        binding,
        room,
        draft,
        to=to,
        read_upto=arguments["if_last_read_seq"],
        preview_chars=arguments["crossed_preview_chars"],
    )
    where = {"room_id": room["id"], "room_name": room["name"]}
    if isinstance(outcome, Posted):
        _keep_rule(runtime, room["id"])
        return _posted(outcome, where, draft, to)
    if isinstance(outcome, Duplicate):
        return {
            "posted": True,
            "deduplicated": True,
            "seq": outcome.seq,
            **where,
            "client_message_id": draft.key,
            "note": "This message was stored by an earlier call with the same client_message_id. Nothing was added.",
        }
    if isinstance(outcome, Pruned):
        return {
            "posted": False,
            "rejected": "evidence_pruned",
            **where,
            "oldest_retained_seq": outcome.oldest,
            "pruned_through_seq": outcome.oldest - 1,
            "retry": (
                "Messages after if_last_read_seq were pruned, so the room cannot prove what you have not seen. Call "
                "catch_up, check your message against what is there, and use the new_last_read_seq that it returns."
            ),
        }
    return {
        "posted": False,
        "rejected": "stale_read",
        **where,
        **_crossed(outcome.crossed),
        "retry": (
            "Others wrote after if_last_read_seq. Read crossed_messages, then call catch_up and use its "
            "new_last_read_seq as if_last_read_seq: re-send the SAME content if it still holds (a "
            "client_message_id may stay), otherwise write a new message."
        ),
    }


def make_body(content: Any) -> tuple[str, str]:
    """The format (`text` or `json`) and the stored text of a content. Raises RoomsError for what cannot be stored."""
    if isinstance(content, str):
        form, body = "text", check_text("content", content)
    else:
        check_value("content", content)
        try:
            form, body = "json", dumps(content)
        except RecursionError:
            raise RoomsError("content is nested too deeply. Flatten it, or send it as a text.") from None
        except ValueError:
            raise RoomsError("content holds a number that JSON cannot express. Send it as a text.") from None
    length = len(body) if body.isascii() else len(body.encode())
    if length > MAX_BODY_BYTES:
        raise RoomsError(f"content is too large: {length} bytes, at most {MAX_BODY_BYTES}. Split it, or send a path.")
    return form, body


def _target(runtime: Runtime, reference: str | None, expected: str | None) -> sqlite3.Row:
    if reference is not None and expected is not None:
        raise RoomsError("room and expected_room cannot be combined: room names the target, expected_room only checks.")
    room = resolve_room(runtime, reference)
    found = None if expected is None else lookup_room(runtime.database, expected)
    if expected is not None and (found is None or found["id"] != room["id"]):
        raise RoomsError(
            f'expected_room "{expected}" does not match the active room "{room["name"]}". Nothing was posted. Call '
            "join_room to change the active room, or name the target with room."
        )
    return room


def _draft(arguments: dict[str, Any], to: list[str]) -> Draft:
    form, body = make_body(arguments["content"])
    key = arguments["client_message_id"]
    if key is not None:
        _check_plain("client_message_id", key, CAPS["client_message_id"])
    return Draft(
        format=form,
        body=body,
        priority=bool(arguments["priority"]),
        mentions=dumps(to) if to else None,
        reply_to=arguments["reply_to_seq"],
        supersedes=arguments["supersedes_seq"],
        key=key,
    )


def _recipients(to: list[str] | None) -> list[str]:
    ids = list(dict.fromkeys(to or ()))
    for agent_id in ids:
        _check_plain("to", agent_id, CAPS["agent_id"])
    return ids


def _check_plain(what: str, text: str, cap: int) -> None:
    check_text(what, text, cap)
    if not text or has_controls(text):
        raise RoomsError(f"{what} must have no control characters and not be empty.")


def _posted(outcome: Posted, where: dict[str, Any], draft: Draft, to: list[str]) -> dict[str, Any]:
    recipients = [_recipient(agent_id, presence, outcome.seq) for agent_id, presence in outcome.recipients]
    warnings = [text for each in recipients if (text := _warning(each, outcome.seq))]
    return {
        "posted": True,
        "seq": outcome.seq,
        **where,
        **({"delivery_warnings": warnings} if warnings else {}),
        "format": draft.format,
        "priority": draft.priority,
        **({} if draft.key is None else {"client_message_id": draft.key}),
        "to": to or None,
        "reply_to_seq": draft.reply_to,
        "supersedes_seq": draft.supersedes,
        **_crossed(outcome.crossed),
        "recipients": recipients,
    }


def _crossed(crossed: Crossed) -> dict[str, Any]:
    extent = {"from_seq": crossed.first, "to_seq": crossed.last} if crossed.total else None
    return {
        "crossed": crossed.total,
        "crossed_directed": crossed.directed,
        "crossed_range": extent,
        **({} if crossed.messages is None else {"crossed_messages": crossed.messages}),
        **({"crossed_remaining": crossed.remaining} if crossed.remaining else {}),
    }


def _recipient(agent_id: str, presence: dict[str, Any] | None, latest: int) -> dict[str, Any]:
    if presence is None:
        known = {"present": False, "idle_seconds": None, "last_read_seq": None, "marker_behind": None}
        return {"id": agent_id, "status": "unknown", **known, "watching": False}
    return {
        "id": agent_id,
        "status": "active" if presence["active"] else "idle" if presence["present"] else "left",
        "present": presence["present"],
        "idle_seconds": presence["idle_seconds"],
        "last_read_seq": presence["last_read_seq"],
        "marker_behind": max(0, latest - presence["last_read_seq"]),
        "watching": presence["watching"],
    }


def _warning(recipient: dict[str, Any], seq: int) -> str | None:
    name, watching = recipient["id"], recipient["watching"]
    if recipient["status"] == "unknown":
        return f"{name}: never joined this room, so the mention reaches nobody."
    if recipient["status"] == "left" and watching:
        return f"{name}: left this room. A wait of theirs is still recorded, but it may be over."
    if recipient["status"] == "left":
        return f"{name}: left this room. The message waits unread until they come back, if they do."
    idle = recipient["idle_seconds"] or 0
    behind = max(0, seq - 1 - recipient["last_read_seq"])
    if watching or idle < _STALLED_SECONDS or not behind:
        return None
    return (
        f"{name}: no MCP call or watcher heartbeat in this room for {_duration(idle)}; the marker was {behind} seq "
        "behind before this post."
    )


def _duration(seconds: int) -> str:
    if seconds < _TWO_MINUTES:
        return f"{seconds}s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m"


def _keep_rule(runtime: Runtime, room_id: int) -> None:
    """Applies the room's own rule on old messages, at most hourly, or again at once while much is left to delete."""
    now = time.monotonic()
    if now - runtime.pruned.get(room_id, -_RETENTION_SECONDS) < _RETENTION_SECONDS:
        return
    runtime.pruned[room_id] = now
    try:
        if apply_retention(runtime.database, room_id) == BATCH:
            del runtime.pruned[room_id]
    except DatabaseError:
        # The post itself is stored: what could not be deleted now is deleted an hour later.
        return


_ROOM = "Post there instead of in the active room: its id or name."
_EXPECTED = "A check that the active room is this one (id or name); not together with room."
_IF_READ = (
    "Post only if nobody else wrote after this number (your new_last_read_seq); otherwise nothing is posted and the "
    "result says what you have not read."
)
_ID = Text("", CAPS["agent_id"], shortest=1)

TOOLS = (
    Tool(
        "post_message",
        "Posts a message to the active room (or to room). Content is a text, or an object or list that readers get as "
        "JSON. The result says how many messages of others you had not read (crossed) and whether those in to can be "
        "reached. posted:true means stored: not that anybody was woken or agrees. With client_message_id a repeated "
        "call stores the message once.",
        {
            "content": AnyContent("The message: a text, an object or a list; at most 10 MB.", required=True),
            "to": Texts("The ids of those whom it is directed at.", _ID, CAPS["mentions_per_post"]),
            "reply_to_seq": Integer("The number of the message that this answers.", 1),
            "supersedes_seq": Integer("The number of your own message that this corrects.", 1),
            "priority": Boolean("A checkpoint that also reaches those who skip the rest."),
            "client_message_id": Text(
                "Your own key for this message: the same key and payload again posts nothing.",
                CAPS["client_message_id"],
                shortest=1,
            ),
            "room": Text(_ROOM, CAPS["room_reference"], shortest=1),
            "expected_room": Text(_EXPECTED, CAPS["room_reference"], shortest=1),
            "if_last_read_seq": Integer(_IF_READ, 0),
            "crossed_preview_chars": Integer(
                "Show the messages you had not read, each cut to so many characters.", 1, 2000
            ),
        },
        _post_message,
    ),
)
