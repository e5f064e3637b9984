"""Changing items: edits, deletions, moderation, reactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import composing, errors, files, items, itemshapes, limits, sending, shapes
from simplexmcp.sandbox.composing import ref_parts
from simplexmcp.sandbox.roles import at_least, require_role
from simplexmcp.sandbox.times import seconds_of

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Group, Item

__all__ = ["delete", "deletion", "find_item", "mark_deleted", "moderate", "react", "remove_item", "set_text", "update"]

JsonObject = dict[str, Any]

_DAY = 86400.0
_DELETE_GRACE = 6 * 3600.0
EMOJI = frozenset("👍👎😀😂😢❤🚀✅")
_REACTIONS = 3


def chat_of(core: SimulatedCore, ref: str) -> str:
    """The chat of a reference, which must exist."""
    sign, number, _ = ref_parts(ref)
    if sign == "@":
        core.contact(number)
    elif sign == "#":
        core.group(number)
    else:
        raise errors.not_modelled("this kind of chat")
    return f"{sign}{number}"


def find_item(core: SimulatedCore, chat: str, number: int) -> Item:
    """An item of this chat, or `chatItemNotFound`."""
    row = core.state.items.get(number)
    if row is None or row.chat != chat:
        raise errors.store_error("chatItemNotFound", itemId=number)
    return row


def _is_fresh(core: SimulatedCore, row: Item, limit: float) -> bool:
    return core.seconds() - seconds_of(row.ts) < limit


def update(core: SimulatedCore, a: Arguments) -> Event:
    """`/_update item REF I [live=on] json {…}`."""
    value = a.object()
    content = composing.message_content(value.get("msgContent"))
    wanted = composing.mentions_argument(value.get("mentions"))
    live = a.on("live")
    chat = chat_of(core, a.text("ref"))
    group = core.group(int(chat[1:])) if chat[0] == "#" else None
    if group is not None:
        require_role(core, group, "author")
    else:
        sending.require_contact(core, core.contact(int(chat[1:])))
    row = find_item(core, chat, a.number("item"))
    own = not row.received and row.content["type"] == "sndMsgContent"
    if not own or row.deleted is not None or row.shared_id is None or not _is_fresh(core, row, _DAY):
        raise errors.error("invalidChatItemUpdate")
    if group is not None:
        sending.check_features(core, group, content, file=False)
    if row.content["msgContent"] == content and not row.live:
        return core.event("chatItemNotChanged", chatItem=core.item_json(row))
    mentions = {} if group is None else sending.mention_ids(core, group, items.content_text(content), wanted)
    body = _edit_message(core, row, content, mentions, live)
    ended_live = row.live is not None
    set_text(core, row, content, mentions, core.now())
    row.live = live if ended_live else row.live
    row.edited = row.edited or not ended_live
    sending.tell(core, chat, row.scope, body)
    return core.event("chatItemUpdated", chatItem=core.item_json(row))


def _edit_message(
    core: SimulatedCore, row: Item, content: JsonObject, mentions: dict[str, str], live: bool
) -> JsonObject:
    params: JsonObject = {"msgId": row.shared_id, "content": content}
    if mentions:
        params["mentions"] = sending.wire_mentions(mentions)
    if row.live is not None:
        params["live"] = live
    if row.chat[0] == "#":
        params["asGroup"] = False
    if not limits.fits("x.msg.update", params):
        if row.chat[0] == "@":
            raise errors.store_error("largeMsg")
        text = "sendGroupMessage: expected 1 message"
        raise errors.error("internalError", message=text)
    body: JsonObject = {"x": "msg.update", "id": row.shared_id, "content": content, "mentions": mentions}
    if row.live is not None:
        body["live"] = live
    if row.scope is not None:
        group = core.state.groups[int(row.chat[1:])]
        body["scope"] = core.state.members[row.scope or group.membership].member_id
    return body


def set_text(core: SimulatedCore, row: Item, content: JsonObject, mentions: dict[str, str], version_ts: str) -> None:
    """Give an item a new content, and keep the old one among its versions."""
    if not row.versions:
        keep_version(core, row, row.content["msgContent"], row.ts)
    key = "rcvMsgContent" if row.received else "sndMsgContent"
    row.content = {"type": key, "msgContent": content}
    row.text = items.content_text(content)
    row.formatted, row.has_link = items.formatted(row.text)
    row.mentions = mentions
    row.updated = core.now()
    if row.live is not True:
        keep_version(core, row, content, version_ts)


def keep_version(core: SimulatedCore, row: Item, content: JsonObject, ts: str) -> None:
    """Remember a version of an item's content."""
    core.state.last_version += 1
    version: JsonObject = {"chatItemVersionId": core.state.last_version, "msgContent": content}
    parts, _ = items.formatted(items.content_text(content))
    if parts is not None:
        version["formattedText"] = parts
    row.versions.insert(0, {**version, "itemVersionTs": ts, "createdAt": ts})


# Deleting


def deletion(core: SimulatedCore, before: JsonObject, row: Item | None) -> JsonObject:
    """One entry of chatItemDeletions; `row` is the item that is left, marked."""
    out: JsonObject = {"deletedChatItem": before}
    if row is not None:
        out["toChatItem"] = core.item_json(row)
    return out


def mark_deleted(row: Item, deleted: JsonObject) -> None:
    """Mark an item; its row and status stay."""
    row.deleted = deleted


def remove_item(core: SimulatedCore, row: Item) -> None:
    """An item is gone for good."""
    core.index.remove(row)
    del core.state.items[row.item_id]
    files.drop(core, row)


def _full_delete(core: SimulatedCore, chat: str) -> bool:
    number = int(chat[1:])
    if chat[0] == "#":
        return sending.allowed(core, core.group(number), "fullDelete")
    merged = core.contact_json(core.contact(number))["mergedPreferences"]
    enabled: bool = merged["fullDelete"]["enabled"]["forUser"]
    return enabled


def delete(core: SimulatedCore, a: Arguments) -> Event:
    """`/_delete item REF IDS MODE`."""
    chat = chat_of(core, a.text("ref"))
    mode = a.text("mode")
    if mode == "history":
        raise errors.not_modelled("deleting from history")
    found, missing = _find_all(core, chat, a.numbers("ids"))
    if mode == "broadcast":
        _require_broadcast(core, chat, found)
    if missing:
        problems = [errors.store_error("chatItemNotFound", itemId=n).chat_error for n in missing]
        core.emit_raw({"type": "chatErrors", "chatErrors": problems})
    deletions = [_delete_one(core, chat, row, mode) for row in found]
    return core.event("chatItemsDeleted", chatItemDeletions=deletions, byUser=True, timed=False)


def _find_all(core: SimulatedCore, chat: str, numbers: list[int]) -> tuple[list[Item], list[int]]:
    found: list[Item] = []
    missing: list[int] = []
    for number in dict.fromkeys(numbers):
        row = core.state.items.get(number)
        if row is None or row.chat != chat:
            missing.append(number)
        else:
            found.append(row)
    return found, missing


def _require_broadcast(core: SimulatedCore, chat: str, rows: list[Item]) -> None:
    if chat[0] == "#":
        require_role(core, core.group(int(chat[1:])), "observer")
    elif rows:
        sending.require_contact(core, core.contact(int(chat[1:])))
    for row in rows:
        own = not row.received and row.content["type"] == "sndMsgContent" and row.shared_id is not None
        if not own or row.deleted is not None or not _is_fresh(core, row, _DAY + _DELETE_GRACE):
            raise errors.error("invalidChatItemDelete")


def _delete_one(core: SimulatedCore, chat: str, row: Item, mode: str) -> JsonObject:
    before = core.item_json(row)
    keep = mode == "internalMark" or (mode == "broadcast" and not _full_delete(core, chat))
    if mode == "broadcast":
        sending.tell(core, chat, row.scope, {"x": "msg.del", "id": row.shared_id})
    if not keep:
        remove_item(core, row)
        return deletion(core, before, None)
    kind = "direct" if chat[0] == "@" else "group"
    now = core.now()
    mark_deleted(row, {"type": "deleted", "deletedTs": now, "chatType": kind})
    row.updated = core.now()
    shown = deletion(core, before, row)
    if mode == "broadcast":
        files.cancelled_by_sender(core, row)
    return shown


def moderate(core: SimulatedCore, a: Arguments) -> Event:
    """`/_delete member item #G IDS`: a moderator removes messages of others for all."""
    group = core.group(a.number("g"))
    chat = f"#{group.group_id}"
    rows, _ = _find_all(core, chat, a.numbers("ids"))
    require_role(core, group, "moderator")
    own = core.membership(group)
    for row in rows:
        author = core.state.members.get(row.member) if row.member is not None else None
        if author is None or row.shared_id is None or row.deleted is not None:
            raise errors.error("invalidChatItemDelete")
        if not at_least(own.role, author.role):
            raise errors.error("groupUserRole", groupInfo=core.group_json(group), requiredRole=author.role)
    deletions = [_moderate_one(core, group, row) for row in rows]
    return core.event("chatItemsDeleted", chatItemDeletions=deletions, byUser=True, timed=False)


def _moderate_one(core: SimulatedCore, group: Group, row: Item) -> JsonObject:
    before = core.item_json(row)
    assert row.member is not None
    author = core.state.members[row.member]
    body = {"x": "msg.del", "id": row.shared_id, "memberId": author.member_id}
    sending.tell(core, row.chat, row.scope, body)
    if sending.allowed(core, group, "fullDelete"):
        remove_item(core, row)
        return deletion(core, before, None)
    mark_deleted(row, {"type": "moderated", "deletedTs": core.now(), "by": group.membership})
    return deletion(core, before, row)


# Reactions


def _known(emoji: Any) -> bool:
    return isinstance(emoji, str) and emoji in EMOJI


def reaction_argument(value: Any) -> str:
    """The emoji of a reaction; others than the known ones are a parse error."""
    if not isinstance(value, dict) or value.get("type") != "emoji" or not _known(value.get("emoji")):
        raise errors.parse_error()
    emoji: str = value["emoji"]
    return emoji


def react(core: SimulatedCore, a: Arguments) -> Event:
    """`/_reaction REF I on|off {…}`."""
    emoji = reaction_argument(a.json())
    chat = chat_of(core, a.text("ref"))
    add = a.text("add") == "on"
    row = find_item(core, chat, a.number("item"))
    _require_reactions(core, chat, row)
    mine = [entry for entry in row.reactions if entry[1] == "me"]
    if add and [emoji, "me"] in mine:
        raise errors.command_error("reaction already added")
    if add and len(mine) >= _REACTIONS:
        raise errors.command_error("too many reactions")
    if add:
        row.reactions.append([emoji, "me"])
    elif [emoji, "me"] not in row.reactions:
        raise errors.command_error("reaction already removed")
    else:
        row.reactions.remove([emoji, "me"])
    body: JsonObject = {"x": "msg.react", "id": row.shared_id, "emoji": emoji, "add": add}
    if chat[0] == "#":
        body["memberId"] = _author_id(core, row)
    else:
        body["own"] = not row.received
    sending.tell(core, chat, row.scope, body)
    kind = "direct" if chat[0] == "@" else "group"
    shown = reaction_json(core, row, {"type": f"{kind}Snd"}, emoji, core.now())
    return core.event("chatItemReaction", added=add, reaction=shown)


def _author_id(core: SimulatedCore, row: Item) -> str:
    group = core.state.groups[int(row.chat[1:])]
    key = row.member if row.member is not None else group.membership
    return core.state.members[key].member_id


def _require_reactions(core: SimulatedCore, chat: str, row: Item) -> None:
    number = int(chat[1:])
    if chat[0] == "#":
        on = sending.allowed(core, core.group(number), "reactions")
    else:
        merged = core.contact_json(core.contact(number))["mergedPreferences"]
        on = merged["reactions"]["enabled"]["forUser"]
    if not on:
        raise errors.command_error("feature not allowed Message reactions")
    if row.shared_id is None or "msgContent" not in row.content or row.deleted is not None:
        raise errors.command_error("reaction not allowed - chat item has no content")


def reaction_json(core: SimulatedCore, row: Item, direction: JsonObject, emoji: str, sent_at: str) -> JsonObject:
    """The `reaction` of chatItemReaction."""
    return {
        "chatInfo": shapes.chat_info(core.state, row.chat, row.scope),
        "chatReaction": {
            "chatDir": direction,
            "chatItem": itemshapes.chat_item(core.state, row, core.seconds()),
            "sentAt": sent_at,
            "reaction": {"type": "emoji", "emoji": emoji},
        },
    }
