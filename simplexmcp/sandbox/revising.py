"""What others do to messages that are there: edits, deletions, reactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import editing, files, items, sending, shapes
from simplexmcp.sandbox.roles import at_least
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Group, Item, Member

__all__ = ["delete_direct", "delete_in_group", "local_scope", "react", "update"]

JsonObject = dict[str, Any]


def local_scope(core: SimulatedCore, group: Group, body: JsonObject) -> int | None:
    """The support conversation that a message belongs to: 0 is the own one."""
    member_id = body.get("scope")
    if member_id is None:
        return None
    if core.membership(group).member_id == member_id:
        return 0
    return next((m.member_key for m in shapes.members_of(core.state, group.group_id) if m.member_id == member_id), None)


def _own_items(core: SimulatedCore, ref: str, member: Member | None, shared: str) -> Item | None:
    for row in core.index.by_shared_id(shared, ref):
        if row.received and (member is None or row.member == member.member_key):
            return row
    return None


def update(core: SimulatedCore, ref: str, member: Member | None, body: JsonObject, ts: float) -> None:
    """An edit by the author (`member` None: a contact)."""
    row = _own_items(core, ref, member, body["id"])
    if row is None:
        _update_unknown(core, ref, member, body, ts)
        return
    if row.deleted is not None:
        return
    live = body.get("live")
    was_live = row.live is not None
    if row.content["msgContent"] == body["content"] and not row.live:
        core.emit("chatItemNotChanged", chatItem=core.item_json(row))
        return
    editing.set_text(core, row, body["content"], body.get("mentions", {}), broker_time(ts))
    row.updated = core.now()
    if was_live:
        row.live = bool(live)
    else:
        row.edited = True
    core.emit("chatItemUpdated", chatItem=core.item_json(row))


def _update_unknown(core: SimulatedCore, ref: str, member: Member | None, body: JsonObject, ts: float) -> None:
    """An edit of an item that is not here makes a new one, which comes as an update."""
    text = items.content_text(body["content"])
    parts, has_link = items.formatted(text)
    scope = None if ref[0] == "@" else local_scope(core, core.state.groups[int(ref[1:])], body)
    item = items.add_item(
        core,
        ref,
        {"type": "rcvMsgContent", "msgContent": body["content"]},
        text,
        ts=broker_time(ts),
        shared_id=body["id"],
        member=None if member is None else member.member_key,
        mentions=body.get("mentions", {}),
        formatted=parts,
        has_link=has_link,
        live=True if body.get("live") else None,
        scope=scope,
    )
    item.edited = not body.get("live")
    core.emit("chatItemUpdated", chatItem=core.item_json(item))


def _emit_deleted(core: SimulatedCore, row: Item, mark: JsonObject | None, by: Member | None = None) -> None:
    before = core.item_json(row)
    if mark is None:
        editing.remove_item(core, row)
        entry = editing.deletion(core, before, None)
    else:
        editing.mark_deleted(row, mark)
        entry = editing.deletion(core, before, row)
        if by is not None:
            entry["toChatItem"]["chatItem"]["meta"]["itemDeleted"]["byGroupMember"] = core.member_json(by)
        files.cancelled_by_sender(core, row)
    core.emit("chatItemsDeleted", chatItemDeletions=[entry], byUser=False, timed=False)


def delete_direct(core: SimulatedCore, ref: str, body: JsonObject, ts: float) -> None:
    """A contact deletes its own message."""
    row = _own_items(core, ref, None, body["id"])
    if row is None:
        contact = core.state.contacts[int(ref[1:])]
        core.emit("chatItemDeletedNotFound", contact=core.contact_json(contact), sharedMsgId=body["id"])
        return
    merged = core.contact_json(core.state.contacts[int(ref[1:])])["mergedPreferences"]
    full = merged["fullDelete"]["enabled"]["forContact"]
    mark = {"type": "deleted", "deletedTs": broker_time(ts), "chatType": "direct"}
    _emit_deleted(core, row, None if full else mark)


def delete_in_group(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> None:
    """A member deletes its own message, or a moderator that of somebody else."""
    ref = f"#{group.group_id}"
    author_id = body.get("memberId")
    rows = core.index.by_shared_id(body["id"], ref)
    if not rows:
        return
    row = rows[0]
    if author_id is None:
        if row.member == member.member_key and row.received:
            full = sending.allowed(core, group, "fullDelete", member)
            mark = {"type": "deleted", "deletedTs": broker_time(ts), "chatType": "group"}
            _emit_deleted(core, row, None if full else mark)
        return
    author = core.state.members.get(row.member if row.member is not None else group.membership)
    if author is None or author.member_id != author_id or not at_least(member.role, "moderator"):
        return
    if not at_least(member.role, author.role):
        return
    full = sending.allowed(core, group, "fullDelete", member)
    moderated: JsonObject = {"type": "moderated", "deletedTs": broker_time(ts), "by": member.member_key}
    _emit_deleted(core, row, None if full else moderated, by=member)


def react(core: SimulatedCore, ref: str, member: Member | None, body: JsonObject, ts: float) -> None:
    """A reaction is put on a message or taken away."""
    rows = core.index.by_shared_id(body["id"], ref)
    if not rows:
        return
    row = rows[0]
    who = "peer" if member is None else member.member_id
    entry = [body["emoji"], who]
    if body["add"] == (entry in row.reactions):
        return
    if body["add"]:
        row.reactions.append(entry)
    else:
        row.reactions.remove(entry)
    direction: JsonObject = {"type": "directRcv"}
    if member is not None:
        direction = {"type": "groupRcv", "groupMember": core.member_json(member)}
    shown = editing.reaction_json(core, row, direction, body["emoji"], broker_time(ts))
    core.emit("chatItemReaction", added=body["add"], reaction=shown)
