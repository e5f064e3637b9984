"""Connections between two people: requests through an address, one-time invitations, and how both sides get ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import associating, business, items, itemshapes, profiles, rows, shapes
from simplexmcp.sandbox.network import HOP
from simplexmcp.sandbox.state import ContactRequest, free_id

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Connection, Contact, Item, LinkRow

__all__ = [
    "accept_request",
    "on_accepted",
    "on_address_request",
    "on_confirm",
    "on_confirm_ok",
    "on_confirmed",
    "on_owner_ready",
    "on_ready",
]

JsonObject = dict[str, Any]


# The owner of an address


def on_address_request(core: SimulatedCore, link: LinkRow, data: JsonObject) -> None:
    """Somebody asks through the address: a new contact, accepted at once or waiting for the user."""
    settings = link.settings
    if settings.get("businessAddress") and settings.get("autoAccept") is not None:
        business.on_business_request(core, link, data)
        return
    request = _store_request(core, link, data)
    assert request.contact_id is not None
    contact = core.state.contacts[request.contact_id]
    auto = settings.get("autoAccept") is not None
    reply = settings.get("autoReply") if auto else None
    welcome_known = data["welcomeId"] is not None
    if reply is not None and welcome_known:
        _reply_item(core, contact, reply, data["welcomeId"])
    message = _request_item(core, contact, data)
    if not auto:
        _announce_request(core, request, contact, message)
        return
    if message is not None:
        core.emit_items(message)
    accept_request(core, request, "new")
    core.emit("acceptingContactRequest", contact=core.contact_json(contact))
    conn = core.conn_of(contact)
    assert conn is not None
    conn.status = "sndReady"
    core.emit("contactSndReady", contact=core.contact_json(contact))
    if reply is not None:
        _send_reply(core, contact, conn, reply, data["welcomeId"])


def _store_request(core: SimulatedCore, link: LinkRow, data: JsonObject) -> ContactRequest:
    contact = rows.add_contact(core, data["profile"])
    number = free_id(core.state.requests)
    request = ContactRequest(
        request_id=number,
        user_id=core.user.user_id,
        invitation_id=core.network.new_id(),
        link_id=link.link_id,
        name=contact.name,
        profile_id=contact.profile_id,
        peer=data["from"],
        x_contact_id=data["xContactId"],
        created=contact.created,
        updated=contact.created,
        contact_id=contact.contact_id,
        message_id=data["messageId"],
    )
    core.state.requests[number] = request
    contact.request_id = number
    items.banner(core, f"@{contact.contact_id}")
    items.direct_e2ee(core, contact, pq=None)
    items.contact_features(core, contact)
    return request


def _request_item(core: SimulatedCore, contact: Contact, data: JsonObject) -> Item | None:
    message = data["message"]
    if message is None:
        return None
    text = items.content_text(message)
    parts, has_link = items.formatted(text)
    content = {"type": "rcvMsgContent", "msgContent": message}
    ref = f"@{contact.contact_id}"
    return items.add_item(core, ref, content, text, formatted=parts, has_link=has_link)


def _announce_request(core: SimulatedCore, request: ContactRequest, contact: Contact, message: Item | None) -> None:
    stats = dict(shapes.ZERO_STATS)
    shown: list[JsonObject] = []
    if message is not None:
        core.emit_items(message)
        stats.update(unreadCount=1, minUnreadItemId=message.item_id)
        shown.append(itemshapes.chat_item(core.state, message, core.seconds()))
    chat = {"chatInfo": shapes.chat_info(core.state, f"@{contact.contact_id}"), "chatItems": shown, "chatStats": stats}
    core.emit("receivedContactRequest", contactRequest=shapes.contact_request(core.state, request), chat_=chat)


def accept_request(core: SimulatedCore, request: ContactRequest, status: str) -> Contact:
    """Make the connection for a request and tell the other side."""
    assert request.contact_id is not None
    contact = core.state.contacts[request.contact_id]
    conn = rows.new_connection(core, "contact", status, pq_support=True, pq_encryption=True)
    conn.via_link = request.link_id if request.link_id in core.state.links else None
    conn.entity_id = contact.contact_id
    conn.peer = request.peer
    contact.conn_id = conn.conn_id
    request.open = False
    profile = profiles.contact_profile(core, conn, kind=True)
    core.post(conn, {"x": "accepted", "from": [core.name, conn.agent_id], "profile": profile})
    return contact


def _reply_item(core: SimulatedCore, contact: Contact, reply: JsonObject, shared: str) -> Item:
    text = items.content_text(reply)
    parts, has_link = items.formatted(text)
    content = {"type": "sndMsgContent", "msgContent": reply}
    ref = f"@{contact.contact_id}"
    return items.add_item(core, ref, content, text, formatted=parts, has_link=has_link, shared_id=shared)


def _send_reply(
    core: SimulatedCore, contact: Contact, conn: Connection, reply: JsonObject, welcome_id: str | None
) -> None:
    """The auto-reply: a message to those who did not see it as the welcome of a prepared chat."""
    if welcome_id is not None:
        core.send(conn, [{"x": "msg.new", "id": welcome_id, "content": reply, "welcome": True}])
        return
    shared = core.network.new_id()
    item = _reply_item(core, contact, reply, shared)
    core.emit_items(item)
    core.send(conn, [{"x": "msg.new", "id": shared, "content": reply}], items=[item.item_id])


# The one who asked


def on_accepted(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The owner of the address accepted; both sides are ready a moment later."""
    conn.peer = body["from"]
    contact = _contact_of(core, conn)
    if contact is None:
        conn.status = "requested"
        conn.chat_version = conn.peer_version = 19
        contact = rows.add_contact(core, body["profile"])
        contact.conn_id = conn.conn_id
        contact.via_address = conn.target
        conn.entity_id = contact.contact_id
        core.emit("contactConnecting", contact=core.contact_json(contact))
        conn.status = "accepted"
        features = True
    elif contact.prepared is None:
        conn.status = "requested"
        _card_profile(core, contact, body["profile"])
        conn.chat_version = conn.peer_version = 19
        features = True
    else:
        conn.chat_version = conn.peer_version = 19
        conn.status = "accepted"
        features = False
    core.after("ready", HOP * 1.5, conn=conn.agent_id, features=features)
    profile = None if conn.incognito_profile is not None else profiles.contact_profile(core, conn, kind=True)
    core.post(conn, {"x": "confirmed", "profile": profile}, after=HOP * 2)


def _card_profile(core: SimulatedCore, contact: Contact, profile: JsonObject) -> None:
    """A card's contact gets the profile of who is behind the address."""
    before = core.contact_json(contact)
    core.state.profiles[contact.profile_id].data = profile
    previous, contact.name = contact.name, ""
    core.free_name(previous)
    contact.name = core.take_name(profile["displayName"])
    core.emit("contactUpdated", fromContact=before, toContact=core.contact_json(contact))


def _contact_of(core: SimulatedCore, conn: Connection) -> Contact | None:
    return None if conn.entity_id is None else core.state.contacts.get(conn.entity_id)


def on_ready(core: SimulatedCore, data: JsonObject) -> None:
    """This side of a contact is connected."""
    conn = core.conn_by_agent_id(data["conn"])
    contact = None if conn is None else _contact_of(core, conn)
    if conn is None or contact is None:
        return
    conn.status = "ready"
    conn.pq_snd = conn.pq_rcv = True
    _connected(core, contact, conn)
    ref = f"@{contact.contact_id}"
    if data["features"] and core.index.last(ref) is None:
        core.emit_items(items.banner(core, ref))
    if data["features"] is not None:
        core.emit_items(items.direct_e2ee(core, contact, pq=True))
    if data["features"]:
        core.emit_items(*items.contact_features(core, contact))
    conn.initiated = False
    associating.contact_ready(core, contact)


def _connected(core: SimulatedCore, contact: Contact, conn: Connection) -> None:
    fields: JsonObject = {"contact": core.contact_json(contact)}
    if conn.incognito_profile is not None:
        fields["userCustomProfile"] = core.state.profiles[conn.incognito_profile].data
    core.emit("contactConnected", **fields)


def on_confirmed(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The owner of the address learns that the other side is ready, and its whole profile."""
    from simplexmcp.sandbox import incoming

    contact = _contact_of(core, conn)
    if contact is None:
        return
    link = core.state.links.get(conn.via_link or 0)
    if link is not None and "autoReply" in link.settings:
        conn.pq_snd = True  # the reply went out already
    if body["profile"] is not None:
        incoming.contact_info(core, contact, body["profile"])
    core.after("owner_ready", 0.0, conn=conn.agent_id)


def on_owner_ready(core: SimulatedCore, data: JsonObject) -> None:
    """The owner's side of a contact is connected."""
    conn = core.conn_by_agent_id(data["conn"])
    contact = None if conn is None else _contact_of(core, conn)
    if conn is None or contact is None:
        return
    conn.status = "ready"
    conn.pq_snd = conn.pq_rcv = True
    _connected(core, contact, conn)
    associating.contact_ready(core, contact)


# One-time invitations


def on_confirm(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """Somebody used the own invitation."""
    conn.peer = body["from"]
    conn.link = None
    conn.status = "requested"
    contact = rows.add_contact(core, body["profile"])
    contact.conn_id = conn.conn_id
    conn.entity_id = contact.contact_id
    core.emit("contactConnecting", contact=core.contact_json(contact))
    conn.status = "accepted"
    core.post(conn, {"x": "confirm.ok", "profile": profiles.contact_profile(core, conn, kind=True)})
    core.after("ready", HOP * 2, conn=conn.agent_id, features=True)


def on_confirm_ok(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The own use of an invitation was taken."""
    contact = _contact_of(core, conn)
    if contact is None:
        conn.link = None
        contact = rows.add_contact(core, body["profile"])
        contact.conn_id = conn.conn_id
        contact.via_address = None
        conn.entity_id = contact.contact_id
        core.emit("contactConnecting", contact=core.contact_json(contact))
        core.after("ready", HOP, conn=conn.agent_id, features=True)
        return
    conn.chat_version = conn.peer_version = 19
    core.after("ready", HOP, conn=conn.agent_id, features=None)
