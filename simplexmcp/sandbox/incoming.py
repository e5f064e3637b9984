"""What comes from other people about messages: new ones, edits, deletions, reactions, profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import editing, invitations, items, profiles, sending, shapes
from simplexmcp.sandbox.roles import at_least
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Contact, Group, Item, Member

__all__ = ["contact_info", "forward", "group_quote", "on_direct", "on_forwarded", "on_group"]

JsonObject = dict[str, Any]


def on_direct(core: SimulatedCore, contact: Contact, body: JsonObject, ts: float) -> bool:
    """A message of a contact; whether it is to be acknowledged."""
    ref = f"@{contact.contact_id}"
    kind = body["x"]
    if kind == "msg.new":
        return _new_direct(core, contact, body, ts)
    if kind == "msg.update":
        _update(core, ref, None, body, ts)
    elif kind == "msg.del":
        _delete_direct(core, ref, body, ts)
    elif kind == "msg.react":
        _react(core, ref, None, body, ts)
    elif kind == "info":
        contact_info(core, contact, body["profile"])
    elif kind == "direct.del":
        _contact_deleted(core, contact, body, ts)
    elif kind == "group.inv":
        return invitations.on_invitation(core, contact, body, ts)
    return False


def on_group(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> bool:
    """A message of a member; whether it is to be acknowledged."""
    kind = body["x"]
    ref = f"#{group.group_id}"
    if kind == "fwd":
        on_forwarded(core, group, member, body)
        return False
    if kind == "msg.new":
        return _new_group(core, group, member, body, ts)
    if kind == "msg.update":
        _update(core, ref, member, body, ts)
    elif kind == "msg.del":
        _delete_group(core, group, member, body, ts)
    elif kind == "msg.react":
        _react(core, ref, member, body, ts)
    elif kind == "info":
        _member_info(core, group, member, body, ts)
    return False


# Forwarding to members that are not connected with the author yet


def forward(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> None:
    """As the host of a joiner: pass on what it and the others cannot send to each other yet."""
    if body["x"] == "fwd" or not member.forwards:
        return
    for key in member.forwards:
        other = core.state.members.get(key)
        conn = None if other is None else core.conn_of(other)
        if conn is not None and conn.status == "ready":
            core.send(conn, [{"x": "fwd", "memberId": member.member_id, "body": body, "ts": ts}])
    del group


def on_forwarded(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    """A message that the host passes on for its author."""
    from simplexmcp.sandbox import moderation

    author = next((m for m in shapes.members_of(core.state, group.group_id) if m.member_id == body["memberId"]), None)
    if author is None or author.category == "user":
        return
    inner: JsonObject = {**body["body"], "forwardedBy": host.member_key}
    change = moderation.CHANGES.get(inner["x"])
    if change is not None:
        change(core, group, author, inner, body["ts"])
    else:
        on_group(core, group, author, inner, body["ts"])


# New messages


def _new_direct(core: SimulatedCore, contact: Contact, body: JsonObject, ts: float) -> bool:
    ref = f"@{contact.contact_id}"
    conn = core.conn_of(contact)
    if conn is not None:
        conn.pq_rcv = True
    if body.get("welcome") and _welcome_known(core, ref, body["id"]):
        return False
    if core.index.by_shared_id(body["id"], ref):
        return False
    text = items.content_text(body["content"])
    parts, has_link = items.formatted(text)
    item = items.add_item(
        core,
        ref,
        {"type": "rcvMsgContent", "msgContent": body["content"]},
        text,
        ts=broker_time(ts),
        shared_id=body["id"],
        formatted=parts,
        has_link=has_link,
        live=True if body.get("live") else None,
        quote=_direct_quote(core, ref, body.get("quote")),
    )
    core.emit_items(item)
    return True


def _welcome_known(core: SimulatedCore, ref: str, shared: str) -> bool:
    """The auto-reply of an address whose welcome a prepared chat has shown already."""
    for item in core.index.by_shared_id(shared, ref):
        core.emit("chatItemNotChanged", chatItem=core.item_json(item))
        return True
    return False


def _direct_quote(core: SimulatedCore, ref: str, quote: JsonObject | None) -> JsonObject | None:
    if quote is None:
        return None
    reference = quote["msgRef"]
    shown: JsonObject = {"sharedMsgId": reference["msgId"], "sentAt": reference["sentAt"], "content": quote["content"]}
    shown["chatDir"] = {"type": "directRcv" if reference["sent"] else "directSnd"}
    known = core.index.by_shared_id(reference["msgId"], ref)
    if known:
        shown["itemId"] = known[0].item_id
    parts, _ = items.formatted(items.content_text(quote["content"]))
    if parts is not None:
        shown["formattedText"] = parts
    return shown


def group_quote(core: SimulatedCore, group: Group, quote: JsonObject | None) -> JsonObject | None:
    """A received quote as an item of this core keeps it."""
    if quote is None:
        return None
    reference = quote["msgRef"]
    shown: JsonObject = {"sentAt": reference["sentAt"], "content": quote["content"]}
    if reference.get("msgId") is not None:
        shown["sharedMsgId"] = reference["msgId"]
        known = core.index.by_shared_id(reference["msgId"], f"#{group.group_id}")
        if known:
            shown["itemId"] = known[0].item_id
    own = core.membership(group)
    if reference.get("memberId") == own.member_id:
        shown["chatDir"] = {"type": "groupSnd"}
    else:
        shown["chatDir"] = {"type": "groupRcv"}
        for member in shapes.members_of(core.state, group.group_id):
            if member.member_id == reference.get("memberId"):
                shown["member"] = member.member_key
    parts, _ = items.formatted(items.content_text(quote["content"]))
    if parts is not None:
        shown["formattedText"] = parts
    return shown


def local_scope(core: SimulatedCore, group: Group, body: JsonObject) -> int | None:
    """The support conversation that a message belongs to: 0 is the own one."""
    member_id = body.get("scope")
    if member_id is None:
        return None
    if core.membership(group).member_id == member_id:
        return 0
    return next((m.member_key for m in shapes.members_of(core.state, group.group_id) if m.member_id == member_id), None)


def _new_group(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> bool:
    ref = f"#{group.group_id}"
    if body.get("welcome") and _welcome_known(core, ref, body["id"]):
        return False
    if core.index.by_shared_id(body["id"], ref):
        return False
    scope = local_scope(core, group, body)
    if scope is None and not at_least(member.role, "author"):
        return False
    text = items.content_text(body["content"])
    parts, has_link = items.formatted(text)
    mentions: dict[str, str] = body.get("mentions", {})
    own = core.membership(group)
    quote = group_quote(core, group, body.get("quote"))
    quoted_own = quote is not None and quote["chatDir"]["type"] == "groupSnd"
    item = items.add_item(
        core,
        ref,
        {"type": "rcvMsgContent", "msgContent": body["content"]},
        text,
        ts=broker_time(ts),
        shared_id=body["id"],
        member=member.member_key,
        scope=scope,
        mentions=mentions,
        formatted=parts,
        has_link=has_link,
        live=True if body.get("live") else None,
        user_mention=own.member_id in mentions.values() or quoted_own,
        forwarded_by=body.get("forwardedBy"),
        quote=quote,
    )
    if member.blocked:
        item.deleted = {"type": "blockedByAdmin", "deletedTs": broker_time(ts)}
    if scope is None:
        core.emit_items(item)
        return True
    shown_member = core.member_json(member)
    _note_support(core, group, member, item, scope)
    shown = core.item_json(item, fresh=True)
    shown["chatItem"]["chatDir"]["groupMember"] = shown_member
    core.emit("newChatItems", chatItems=[shown])
    return True


def _note_support(core: SimulatedCore, group: Group, member: Member, item: Item, scope: int) -> None:
    """Count a message of a support conversation with the member it is about."""
    about = core.state.members[scope] if scope else core.membership(group)
    chat: JsonObject = about.support or {"unread": 0, "memberAttention": 0, "mentions": 0}
    chat = {**chat, "chatTs": item.created, "unread": chat["unread"] + 1}
    if scope and member.member_key == scope:
        group.attention += not chat["memberAttention"]
        chat["memberAttention"] += 1
        chat["lastMsgFromMemberTs"] = item.ts
    about.support = chat


# Edits and deletions


def _own_items(core: SimulatedCore, ref: str, member: Member | None, shared: str) -> Item | None:
    for row in core.index.by_shared_id(shared, ref):
        if row.received and (member is None or row.member == member.member_key):
            return row
    return None


def _update(core: SimulatedCore, ref: str, member: Member | None, body: JsonObject, ts: float) -> None:
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
    core.emit("chatItemsDeleted", chatItemDeletions=[entry], byUser=False, timed=False)


def _delete_direct(core: SimulatedCore, ref: str, body: JsonObject, ts: float) -> None:
    row = _own_items(core, ref, None, body["id"])
    if row is None:
        contact = core.state.contacts[int(ref[1:])]
        core.emit("chatItemDeletedNotFound", contact=core.contact_json(contact), sharedMsgId=body["id"])
        return
    merged = core.contact_json(core.state.contacts[int(ref[1:])])["mergedPreferences"]
    full = merged["fullDelete"]["enabled"]["forContact"]
    mark = {"type": "deleted", "deletedTs": broker_time(ts), "chatType": "direct"}
    _emit_deleted(core, row, None if full else mark)


def _delete_group(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> None:
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


def _react(core: SimulatedCore, ref: str, member: Member | None, body: JsonObject, ts: float) -> None:
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


# Profiles


def contact_info(core: SimulatedCore, contact: Contact, new: JsonObject) -> None:
    """A contact's new profile."""
    row = core.state.profiles[contact.profile_id]
    old = row.data
    if old == new:
        return
    before = core.contact_json(contact)
    row.data = new
    if old["displayName"] != new["displayName"]:
        previous = contact.name
        contact.name = ""
        core.free_name(previous)
        contact.name = core.take_name(new["displayName"])
        for member in core.state.members.values():
            if member.contact_id == contact.contact_id:
                member.name = contact.name
    contact.updated = core.now()
    names = ("displayName", "fullName", "shortDescr", "image")
    if any(old.get(key) != new.get(key) for key in names):
        event = {"type": "profileUpdated", "fromProfile": profiles.plain(old), "toProfile": profiles.plain(new)}
        content = {"type": "rcvDirectEvent", "rcvDirectEvent": event}
        core.emit_items(items.add_item(core, f"@{contact.contact_id}", content, "updated profile"))
    core.emit("newChatItems", chatItems=[])
    core.emit("contactUpdated", fromContact=before, toContact=core.contact_json(contact))


def _member_info(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> None:
    row = core.state.profiles[member.profile_id]
    old, new = row.data, body["profile"]
    if old == new or member.contact_id is not None:
        return
    before = core.member_json(member)
    if old["displayName"] != new["displayName"]:
        previous = member.name
        member.name = ""
        core.free_name(previous)
        member.name = core.take_name(new["displayName"])
    if body.get("quiet"):
        member.max_version = 19
    else:
        event = {"type": "memberProfileUpdated", "fromProfile": profiles.plain(old), "toProfile": profiles.plain(new)}
        row.data = new
        fields = {"ts": broker_time(ts), "shared_id": body["shared"]}
        core.emit_items(items.group_event(core, group, event, "updated profile", member, **fields))
    member.updated = core.now()
    core.emit(
        "groupMemberUpdated", groupInfo=core.group_json(group), fromMember=before, toMember=core.member_json(member)
    )
    # The real core does not keep the kind of a member's profile: it is in the event only.
    row.data = {key: value for key, value in row.data.items() if key != "peerType"}


def _contact_deleted(core: SimulatedCore, contact: Contact, body: JsonObject, ts: float) -> None:
    """The contact has deleted us: the chat stays, disconnected."""
    from simplexmcp.sandbox import deleting

    content = {"type": "rcvDirectEvent", "rcvDirectEvent": {"type": "contactDeleted"}}
    contact.status = "deleted"
    conn = core.conn_of(contact)
    if conn is not None:
        conn.status = "deleted"
    ref = f"@{contact.contact_id}"
    core.emit_items(items.add_item(core, ref, content, "contact deleted", ts=broker_time(ts), shared_id=body["id"]))
    core.emit("contactDeletedByContact", contact=core.contact_json(contact))
    if conn is not None:
        deleting.peer_gone(core, [conn])
