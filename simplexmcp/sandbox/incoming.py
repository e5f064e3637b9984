"""What comes from other people: new messages, forwarded ones, profiles, and the end of a contact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import downloads, files, invitations, items, profiles, revising, shapes
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
        revising.update(core, ref, None, body, ts)
    elif kind == "msg.del":
        revising.delete_direct(core, ref, body, ts)
    elif kind == "msg.react":
        revising.react(core, ref, None, body, ts)
    elif kind == "file.descr":
        downloads.on_description(core, ref, body, None)
    elif kind == "file.cancel":
        downloads.on_cancelled(core, ref, body, None)
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
        revising.update(core, ref, member, body, ts)
    elif kind == "msg.del":
        revising.delete_in_group(core, group, member, body, ts)
    elif kind == "msg.react":
        revising.react(core, ref, member, body, ts)
    elif kind == "file.descr":
        downloads.on_description(core, ref, body, member.member_key)
    elif kind == "file.cancel":
        downloads.on_cancelled(core, ref, body, member.member_key)
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
    file = files.receive_announced(core, body.get("file"), None)
    if file is None and "file" in body:
        return True
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
    files.attach(item, file)
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


def _new_group(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> bool:
    ref = f"#{group.group_id}"
    if body.get("welcome") and _welcome_known(core, ref, body["id"]):
        return False
    if core.index.by_shared_id(body["id"], ref):
        return False
    scope = revising.local_scope(core, group, body)
    if scope is None and not at_least(member.role, "author"):
        return False
    file = files.receive_announced(core, body.get("file"), member.member_key)
    if file is None and "file" in body:
        return True
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
    files.attach(item, file)
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
