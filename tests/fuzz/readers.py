"""What reads objects of the core without asking it: nothing that a core says may raise, or make what cannot be sent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.chats import chat_of, chat_of_contact, chat_of_group, is_ref
from simplexmcp.core.decode import Answer, UnreadableError, event_text, frame, result_text
from simplexmcp.errors import CoreError, Refused
from simplexmcp.files import items
from simplexmcp.files.relays import known_relays
from simplexmcp.owners import member_of
from simplexmcp.said import commands_in, why_no_command
from simplexmcp.tools.joining import goal_of
from simplexmcp.tools.plan import classify
from simplexmcp.watch import Watch, changes_in
from tests.fuzz.mutate import as_text, changed, damaged, recorded

if TYPE_CHECKING:
    from random import Random

    from tests.fuzz.budget import Budget

__all__ = ["readers"]

_LINK = "https://smp.example.org/a#" + "A" * 43


async def readers(budget: Budget) -> None:
    """Mutated frames, read by everything that reads the core's objects."""
    frames = recorded()
    watch = Watch()
    watch.user_id = 1
    with watch.collect(None) as inbox, watch.joins() as joins:
        for random in budget:
            value = changed(random, random.choice(frames), frames)
            text = as_text(value)
            if random.randrange(4) == 0:
                _unreadable_or_read(damaged(random, text.encode()), random, watch)
            else:
                _unreadable_or_read(text, random, watch)
            inbox.drop(list(inbox._kept))
            joins.seen.clear()


def _unreadable_or_read(data: str | bytes, random: Random, watch: Watch) -> None:
    try:
        what = frame(data)
        result_text(data), event_text(data)
    except UnreadableError:
        return
    said: Any = what.outcome if isinstance(what, Answer) else what
    if isinstance(said, CoreError):
        items.unknown_servers(said.error)
        return
    _read_event(said, watch)
    _read_response(said)


def _read_event(event: dict[str, Any], watch: Watch) -> None:
    watch.on_event(event)
    changes_in(event)
    items.event_file_id(event)
    items.touched_items(event)
    items.deleted_entries(event)


def _read_response(said: dict[str, Any]) -> None:
    for node in _objects(said):
        chat = chat_of(node.get("chatInfo")) or chat_of_contact(node.get("contact")) or chat_of_group(node)
        member_of(node)
        if chat is not None:
            assert is_ref(chat.ref)
            _read_item(chat, node.get("chatItem", node))
    known_relays([said])
    for message in (True, False):
        with suppress(CoreError, Refused):
            assert json.dumps(classify(_LINK, said, message=message).kind)
    goal_of(said)


def _read_item(chat: Any, item: Any) -> None:
    shown = messages.message(chat, item)
    assert shown is None or isinstance(json.loads(json.dumps(shown))["text"], str)
    messages.quoted(item)
    file = messages.file_of(item, chat)
    if file is not None:
        items.ended_by(file)
    if isinstance(item, dict) and isinstance(item.get("meta"), dict):
        commands_in(item)
        why_no_command(item)


def _objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a value."""
    if isinstance(value, list):
        return [found for inner in value for found in _objects(inner)]
    if not isinstance(value, dict):
        return []
    return [value, *(found for inner in value.values() for found in _objects(inner))]
