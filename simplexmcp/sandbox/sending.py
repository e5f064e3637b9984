"""`/_send`: what is refused before anything is made, the new items, and the message that goes to each recipient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, files, items, limits, markdown, profiles, uploads
from simplexmcp.sandbox.composing import KNOWN, composed, ref_parts
from simplexmcp.sandbox.preferences import full_group_preferences
from simplexmcp.sandbox.roles import ACTIVE, PENDING, at_least
from simplexmcp.sandbox.shapes import members_of

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.composing import Composed
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Connection, Contact, FileRow, Group, Item, Member

__all__ = [
    "Recipient",
    "check_features",
    "group_scope",
    "mention_ids",
    "recipients",
    "require_contact",
    "require_sender",
    "send",
    "send_profile",
    "wire_mentions",
]

JsonObject = dict[str, Any]


@dataclass
class Recipient:
    """Who gets a message: a connection, and in a group the member behind it."""

    conn: Connection
    member: Member | None = None


def send(core: SimulatedCore, a: Arguments) -> Event:
    """`/_send REF …`."""
    sign, number, scope = ref_parts(a.text("ref"))
    messages = composed(a)
    live = a.on("live")
    if sign == "*":
        raise errors.not_modelled("notes to oneself")
    if a.has("ttl") and a.text("ttl") != "default":
        raise errors.not_modelled("disappearing messages")
    if a.has("as_group"):
        raise errors.not_modelled("sending as a group")
    if any(one.content["type"] == "report" for one in messages):
        raise errors.command_error("sending reports via this API is not supported")
    if len(messages) > 1 and (live or sum(one.quoted is not None for one in messages) > 1):
        raise errors.command_error("batch of messages must not be live and have at most one quote")
    if sign == "@":
        rows = _send_direct(core, core.contact(number), messages, live)
    else:
        rows = _send_group(core, core.group(number), scope, messages, live)
    return core.event("newChatItems", chatItems=[core.item_json(row) for row in rows])


# Direct


def require_contact(core: SimulatedCore, contact: Contact) -> Connection:
    """The connection of a contact that can get messages, or `contactNotReady`."""
    conn = core.conn_of(contact)
    if conn is None or conn.status not in ("ready", "sndReady") or contact.status != "active":
        raise errors.error("contactNotReady", contact=core.contact_json(contact))
    return conn


def _send_direct(core: SimulatedCore, contact: Contact, messages: list[Composed], live: bool) -> list[Item]:
    conn = require_contact(core, contact)
    if any(one.mentions for one in messages):
        raise errors.command_error("mentions are not supported in this chat")
    ref = f"@{contact.contact_id}"
    sent = uploads.begin(core, messages, [Recipient(conn)])
    bodies, made = _make(core, ref, None, messages, sent, live, None)
    conn.initiated = False
    rows = [items.add_item(core, ref, **fields) for fields in made]
    for row, file in zip(rows, sent, strict=True):
        files.attach(row, file)
    core.send(conn, bodies, items=[row.item_id for row in rows])
    return rows


# Groups


def require_sender(core: SimulatedCore, group: Group, scope: int | None) -> None:
    """Refuse a sender whose role or membership does not allow messages here."""
    own = core.membership(group)
    if scope is None and not at_least(own.role, "author"):
        raise errors.error("groupUserRole", groupInfo=core.group_json(group), requiredRole="author")
    pending = own.status in PENDING
    if own.status not in ACTIVE or (scope is None and pending):
        raise errors.command_error("not current member")


def group_scope(core: SimulatedCore, group: Group, scope: int | None) -> int | None:
    """Check a support scope: the own one (0), or that of a member, for moderators."""
    if not scope:
        return scope
    if not at_least(core.membership(group).role, "moderator"):
        raise errors.error("groupUserRole", groupInfo=core.group_json(group), requiredRole="moderator")
    member = core.state.members.get(scope)
    if member is None or member.group_id != group.group_id:
        raise errors.store_error("groupMemberNotFound", groupMemberId=scope)
    return scope


def recipients(core: SimulatedCore, group: Group, scope: int | None) -> list[Recipient]:
    """Members that a message goes to: all with a connection, or those of a support conversation."""
    out: list[Recipient] = []
    for member in members_of(core.state, group.group_id):
        conn = core.conn_of(member)
        if member.category == "user" or conn is None or conn.status != "ready":
            continue
        admin = at_least(member.role, "moderator")
        if scope is None:
            wanted = (member.status in ACTIVE and member.status not in PENDING) or member.status == "intro-inv"
        else:
            wanted = member.status in ACTIVE and (admin or member.member_key == scope)
        if wanted:
            out.append(Recipient(conn, member))
    return out


def check_features(core: SimulatedCore, group: Group, content: JsonObject, *, file: bool) -> None:
    """Refuse what the group's preferences do not allow to the own role."""
    if content["type"] == "voice":
        _feature(core, group, "voice", "Voice messages")
    elif file:
        _feature(core, group, "files", "Files and media")
    parts = markdown.parse(items.content_text(content)) or []
    if any(part.get("format", {}).get("type") == "simplexLink" for part in parts):
        _feature(core, group, "simplexLinks", "SimpleX links")


def allowed(core: SimulatedCore, group: Group, name: str, member: Member | None = None) -> bool:
    """Whether a feature is on for a member (None: for oneself)."""
    preference = full_group_preferences(group.profile.get("groupPreferences"))[name]
    role = (member or core.membership(group)).role
    return preference["enable"] == "on" and at_least(role, preference.get("role", "observer"))


def _feature(core: SimulatedCore, group: Group, name: str, shown: str) -> None:
    if not allowed(core, group, name):
        raise errors.command_error(f"feature not allowed {shown}")


def mention_ids(core: SimulatedCore, group: Group, text: str, wanted: dict[str, int]) -> dict[str, str]:
    """NAME → memberId of a message's mentions; dropped when the text has no markdown at all."""
    if not wanted:
        return {}
    parts = markdown.parse(text)
    if parts is None:
        return {}
    shown = [p["format"]["memberName"] for p in parts if p.get("format", {}).get("type") == "mention"]
    if len(wanted) > limits.MENTIONS_SENT or len(set(wanted.values())) < len(wanted):
        raise errors.store_error("invalidMention")
    if any(name not in shown for name in wanted):
        raise errors.store_error("invalidMention")
    out: dict[str, str] = {}
    for name, key in sorted(wanted.items()):
        member = core.state.members.get(key)
        if member is None or member.group_id != group.group_id:
            raise errors.store_error("groupMemberNotFound", groupMemberId=key)
        out[name] = member.member_id
    return out


def wire_mentions(mentions: dict[str, str]) -> JsonObject:
    """Mentions as they stand in a message."""
    return {name: {"memberId": member_id} for name, member_id in mentions.items()}


def send_profile(core: SimulatedCore, group: Group, to: list[Recipient]) -> None:
    """Before the first message after a change, members get the user's new profile."""
    changed = core.user.profile_updated
    own = core.membership(group)
    if changed is None or changed <= group.profile_sent or own.profile_id != core.user.profile_id:
        return
    group.profile_sent = core.now()
    body = {"x": "info", "profile": profiles.member_profile(core, None, kind=True), "shared": core.network.new_id()}
    for one in to:
        core.send(one.conn, [body])


def _send_group(
    core: SimulatedCore, group: Group, scope: int | None, messages: list[Composed], live: bool
) -> list[Item]:
    require_sender(core, group, scope)
    scope = group_scope(core, group, scope)
    for one in messages:
        check_features(core, group, one.content, file=one.file is not None)
    ref = f"#{group.group_id}"
    to = recipients(core, group, scope)
    sent = uploads.begin(core, messages, to)
    bodies, made = _make(core, ref, group, messages, sent, live, scope)
    send_profile(core, group, to)
    if scope is not None:
        _note_support(core, group, scope)
    rows = [items.add_item(core, ref, scope=scope, **fields) for fields in made]
    for row, file in zip(rows, sent, strict=True):
        files.attach(row, file)
    for row in rows:
        row.delivery = {str(r.member.member_key): "new" for r in to if r.member is not None}
    for recipient in to:
        core.send(recipient.conn, bodies, items=[row.item_id for row in rows])
    return rows


def _note_support(core: SimulatedCore, group: Group, scope: int) -> None:
    """An own message in a support conversation begins it."""
    about = core.state.members[scope or group.membership]
    about.support = {**(about.support or {"unread": 0, "memberAttention": 0, "mentions": 0}), "chatTs": core.now()}


def tell(core: SimulatedCore, ref: str, scope: int | None, body: JsonObject) -> None:
    """Send something about an item (an edit, a deletion, a reaction) to all who have it."""
    number = int(ref[1:])
    if ref[0] == "@":
        core.send(require_contact(core, core.contact(number)), [body])
        return
    group = core.group(number)
    to = recipients(core, group, scope)
    send_profile(core, group, to)
    for one in to:
        core.send(one.conn, [body])


# Making items and messages


def _make(
    core: SimulatedCore,
    ref: str,
    group: Group | None,
    messages: list[Composed],
    sent: list[FileRow | None],
    live: bool,
    scope: int | None,
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The messages for the recipients and the fields of the own items; refuses before anything is stored."""
    quotes = [None if one.quoted is None else _quote(core, ref, one) for one in messages]
    now = core.now()
    bodies: list[JsonObject] = []
    made: list[JsonObject] = []
    for one, file, quote in zip(messages, sent, quotes, strict=True):
        text = items.content_text(one.content)
        mentions = {} if group is None else mention_ids(core, group, text, one.mentions)
        parts, has_link = items.formatted(text)
        shared = core.network.new_id()
        body: JsonObject = {"x": "msg.new", "id": shared, "content": one.content}
        if quote is not None:
            body["quote"] = quote[0]
        if file is not None:
            body["file"] = files.announced(file, core.network.faults.announced.get(core.name))
        if mentions:
            body["mentions"] = mentions
        if live:
            body["live"] = True
        if scope is not None:
            body["scope"] = _wire_scope(core, group, scope)
        if not limits.fits("x.msg.new", _params(body)):
            raise errors.store_error("largeMsg")
        bodies.append(body)
        made.append(
            {
                "content": {"type": "sndMsgContent", "msgContent": one.content},
                "text": text,
                "created": now,
                "shared_id": shared,
                "formatted": parts,
                "has_link": has_link,
                "mentions": mentions,
                "quote": None if quote is None else quote[1],
                "live": True if live else None,
            }
        )
    return bodies, made


def _params(body: JsonObject) -> JsonObject:
    """The parameters of the message on the wire, for its length."""
    params: JsonObject = {"content": body["content"]}
    if "mentions" in body:
        params["mentions"] = wire_mentions(body["mentions"])
    if "quote" in body:
        params["quote"] = body["quote"]
    if (file := body.get("file")) is not None:
        parts = {"fileDescrText": "", "fileDescrPartNo": 0, "fileDescrComplete": False}
        params["file"] = {"fileName": file["name"], "fileSize": file["size"], "fileDescr": parts}
    if body.get("live"):
        params["live"] = True
    if "scope" in body:
        params["scope"] = {"type": "member", "memberId": body["scope"]}
    return params


def _wire_scope(core: SimulatedCore, group: Group | None, scope: int) -> str:
    """The member whose support conversation it is, by its memberId."""
    assert group is not None
    return core.state.members[scope or group.membership].member_id


def _quote(core: SimulatedCore, ref: str, one: Composed) -> tuple[JsonObject, JsonObject]:
    """A quote as it goes over the wire, and as the own item shows it."""
    assert one.quoted is not None
    row = core.state.items.get(one.quoted)
    if row is None or row.chat != ref:
        raise errors.store_error("chatItemNotFound", itemId=one.quoted)
    content = row.content.get("msgContent")
    if content is None or row.deleted is not None or row.shared_id is None:
        raise errors.store_error("invalidQuote")
    file = core.state.files.get(row.file or 0)
    reduced = _quoted_content(one.content, content, row.text or ("" if file is None else file.name))
    sent_at = row.ts
    reference: JsonObject = {"msgId": row.shared_id, "sentAt": sent_at, "sent": not row.received}
    shown: JsonObject = {"itemId": row.item_id, "sharedMsgId": row.shared_id, "sentAt": sent_at, "content": reduced}
    kind = "direct" if ref[0] == "@" else "group"
    shown["chatDir"] = {"type": f"{kind}{'Rcv' if row.received else 'Snd'}"}
    if kind == "group":
        own = core.state.groups[int(ref[1:])].membership
        author = row.member if row.received and row.member is not None else own
        reference["memberId"] = core.state.members[author].member_id
        reference["sent"] = not row.received
        if row.received and row.member is not None:
            shown["member"] = row.member
    parts, _ = items.formatted(items.content_text(reduced))
    if parts is not None:
        shown["formattedText"] = parts
    return {"msgRef": reference, "content": reduced}, shown


_HEAVY = frozenset({"link", "image", "video", "chat"})


def _quoted_content(new: JsonObject, quoted: JsonObject, text: str) -> JsonObject:
    """What is left of a quoted message inside the new one; `text` is its text, or the name of its file."""
    if new["type"] in _HEAVY or new["type"] not in KNOWN:
        return {"type": "text", "text": text}
    return {**quoted, "text": text} if quoted["type"] in ("image", "file") else quoted
