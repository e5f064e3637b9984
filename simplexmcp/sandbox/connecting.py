"""Connecting to a link: starting the connection of a prepared chat, connecting without one, one-time invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from simplexmcp.sandbox import errors, planning, profiles, shapes
from simplexmcp.sandbox.arguments import Arguments
from simplexmcp.sandbox.composing import message_content
from simplexmcp.sandbox.network import HOP, LinkEntry
from simplexmcp.sandbox.rows import host_of, new_connection, own_message
from simplexmcp.sandbox.targets import full_link, link_identity, parse_target, short_link

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Connection, Contact, Group

__all__ = [
    "connect_card",
    "connect_contact",
    "connect_group",
    "connect_interactive",
    "connect_link",
]

JsonObject = dict[str, Any]


def _message(a: Arguments) -> JsonObject | None:
    if a.has("json"):
        return message_content(a.json())
    return {"type": "text", "text": a.text("text")} if a.has("text") else None


def _incognito(core: SimulatedCore, conn: Connection, wanted: bool) -> JsonObject | None:
    """Give the connection an incognito profile; the profile for the response."""
    if not wanted:
        return None
    row = core.add_profile(profiles.random_profile(core), incognito=True)
    conn.incognito_profile = row.profile_id
    return row.data


def connect_contact(core: SimulatedCore, a: Arguments) -> Event:
    """`/_connect contact @C`: start the connection of a prepared contact."""
    contact = core.contact(a.number("c"))
    conn = core.conn_of(contact)
    if conn is not None and conn.status != "prepared":
        return core.event("contactAlreadyExists", contact=core.contact_json(contact))
    if contact.prepared is None:
        raise errors.command_error("contact doesn't have link to connect")
    try:
        return _connect_contact(core, contact, conn, a)
    except errors.CommandFailed:
        core.emit_later("chatInfoUpdated", chatInfo=shapes.chat_info(core.state, f"@{contact.contact_id}"))
        raise


def _connect_contact(core: SimulatedCore, contact: Contact, conn: Connection | None, a: Arguments) -> Event:
    assert contact.prepared is not None
    core.network.require_relay()
    wanted = a.on("incognito")
    if contact.incognito is not None and contact.incognito != wanted:
        raise errors.command_error("incognito mode is different from prepared connection")
    pair = contact.prepared["connLinkToConnect"]
    entry = core.network.find_link(pair["connFullLink"])
    if contact.prepared["uiConnLinkType"] == "inv":
        return _connect_prepared_invitation(core, contact, entry, wanted, _message(a))
    if conn is None:
        conn = new_connection(core, "contact", "prepared", initiated=True, chat_version=8, peer_version=1)
        _pq_contact(conn)
        conn.entity_id = contact.contact_id
        conn.target = pair["connFullLink"]
        conn.x_contact_id = core.network.new_key(16) + "=="
        contact.conn_id = conn.conn_id
    contact.incognito = wanted
    if entry is None:
        raise errors.smp_auth()
    custom = _incognito(core, conn, wanted)
    conn.status = "joined"
    message = _message(a)
    request_id = None if message is None else core.network.new_id()
    if request_id is not None:
        contact.prepared["requestSharedMsgId"] = request_id
    _request(core, conn, entry, message, request_id, contact.prepared.get("welcomeSharedMsgId"))
    if custom is not None:
        core.emit("newChatItems", chatItems=[])
    response = core.event("startedConnectionToContact", contact=core.contact_json(contact))
    if custom is not None:
        response["customUserProfile"] = custom
    if message is not None and request_id is not None:
        item = own_message(core, f"@{contact.contact_id}", message)
        core.emit_items_later(item)
        core.index.share(item, request_id)
    return response


def _pq_contact(conn: Connection) -> None:
    conn.pq_support = conn.pq_encryption = True


def _request(
    core: SimulatedCore,
    conn: Connection,
    entry: LinkEntry,
    message: JsonObject | None,
    request_id: str | None,
    welcome_id: str | None,
    *,
    prepared_group: bool = False,
) -> None:
    """Send the request through an address or group link."""
    group = entry.kind == "group" or prepared_group
    make = profiles.member_profile if group else profiles.contact_profile
    data = {
        "link": entry.agent_id,
        "from": [core.name, conn.agent_id],
        "profile": make(core, conn, kind=False),
        "kind": profiles.own_profile(core, conn).get("peerType"),
        "xContactId": conn.x_contact_id,
        "message": message,
        "messageId": request_id,
        "welcomeId": welcome_id,
    }
    core.network.schedule(entry.core, "request", data, after=HOP)


def connect_group(core: SimulatedCore, a: Arguments) -> Event:
    """`/_connect group #G`: start the connection of a prepared group or business chat."""
    group = core.group(a.number("g"))
    if group.prepared is None:
        raise errors.command_error("group doesn't have link to connect")
    try:
        return _connect_group(core, group, a)
    except errors.CommandFailed:
        core.emit_later("chatInfoUpdated", chatInfo=shapes.chat_info(core.state, f"#{group.group_id}"))
        raise


def _connect_group(core: SimulatedCore, group: Group, a: Arguments) -> Event:
    assert group.prepared is not None
    message = _message(a)
    request_id = None if message is None else core.network.new_id()
    if request_id is not None:
        group.prepared["requestSharedMsgId"] = request_id
    if message is not None and group.business is None:
        raise errors.error("connReqMessageProhibited")
    core.network.require_relay()
    host = host_of(core, group)
    conn = core.conn_of(host)
    if conn is not None and conn.status == "ready":
        text = "SQLite3 returned ErrorConstraint while attempting to perform step: UNIQUE constraint failed: "
        raise errors.store_error("dBException", message=text + "connections.group_member_id")
    pair = group.prepared["connLinkToConnect"]
    entry = core.network.find_link(pair["connFullLink"])
    if conn is None:
        conn = new_connection(core, "member", "joined", initiated=True)
        conn.via_group_link = group.business is None
        conn.pq_support = conn.pq_encryption = group.business is not None
        conn.group_link_id = _group_link_id(pair["connFullLink"])
        conn.target = pair["connFullLink"]
        conn.x_contact_id = core.network.new_key(16) + "=="
        conn.entity_id = host.member_key
        host.conn_id = conn.conn_id
    group.prepared["connLinkPreparedConnection"] = True
    group.link_uri = pair["connFullLink"]
    if entry is None:
        raise errors.smp_auth()
    custom = _incognito(core, conn, a.on("incognito"))
    if custom is not None:
        own = core.membership(group)
        own.profile_id = conn.incognito_profile or own.profile_id
    group.prepared["connLinkStartedConnection"] = True
    group.updated = core.now()
    welcome = group.prepared.get("welcomeSharedMsgId")
    _request(core, conn, entry, message, request_id, welcome, prepared_group=True)
    response = core.event("startedConnectionToGroup", groupInfo=core.group_json(group), relayResults=[])
    if custom is not None:
        response["customUserProfile"] = custom
    if message is not None and request_id is not None:
        item = own_message(core, f"#{group.group_id}", message)
        core.emit_items_later(item)
        core.index.share(item, request_id)
    return response


def _group_link_id(full: str) -> str | None:
    _, _, data = unquote(full).partition('"groupLinkId":"')
    return data.partition('"')[0] or None


def connect_link(core: SimulatedCore, a: Arguments) -> Event:
    """`/_connect U [LINKS]`: connect without preparing; without a link, make an invitation."""
    if not a.has("full"):
        return _invitation(core, a.on("incognito"))
    target = parse_target(a.text("full"))
    if target is None or target.form != "full":
        raise errors.error("invalidConnReq")
    if target.kind == "invitation":
        return _accept_invitation(core, a)
    known = planning.known_contact(core, target.text)
    if known is not None and known.conn_id is not None:
        return core.event("contactAlreadyExists", contact=core.contact_json(known))
    entry = core.network.find_link(target.text)
    conn = _attempt(core, target.text) or new_connection(
        core, "contact", "prepared", initiated=True, chat_version=8, peer_version=1
    )
    _pq_contact(conn)
    conn.via_contact_uri = True
    conn.target = target.text
    if entry is None:
        raise errors.smp_auth()
    conn.status = "joined"
    conn.x_contact_id = core.network.new_key(16) + "=="
    conn.group_link_id = _group_link_id(target.text)
    custom = _incognito(core, conn, a.on("incognito"))
    _request(core, conn, entry, None, None, None)
    response = core.event("sentInvitation", connection=shapes.pending_connection(conn))
    if custom is not None:
        response["customUserProfile"] = custom
    return response


def connect_interactive(core: SimulatedCore, a: Arguments) -> Event:
    """`/c LINK`, the interactive client's command: a short link or a name is looked up first."""
    entry = core.network.find_link(a.text("target"))
    if entry is None:
        raise errors.smp_auth()
    return connect_link(core, Arguments({"full": entry.full}))


def connect_card(core: SimulatedCore, a: Arguments) -> Event:
    """`/_connect contact U C`: a card with an address."""
    contact = core.contact(a.number("contact"))
    address = core.state.profiles[contact.profile_id].data.get("contactLink")
    if contact.conn_id is not None or contact.prepared is not None or not address:
        raise errors.command_error("no address in contact profile")
    entry = core.network.find_link(address)
    if entry is None:
        raise errors.smp_auth()
    conn = new_connection(core, "contact", "joined", initiated=True, chat_version=8, peer_version=1)
    _pq_contact(conn)
    conn.entity_id = contact.contact_id
    conn.target = contact.via_address = entry.full
    conn.x_contact_id = core.network.new_key(16) + "=="
    contact.conn_id = conn.conn_id
    custom = _incognito(core, conn, a.on("incognito"))
    _request(core, conn, entry, None, None, None)
    response = core.event("sentInvitationToContact", contact=core.contact_json(contact))
    if custom is not None:
        response["customUserProfile"] = custom
    return response


# One-time invitations


def _attempt(core: SimulatedCore, full: str) -> Connection | None:
    """The connection that an earlier attempt with this link left behind when it failed."""
    for conn in core.state.connections.values():
        failed = conn.status == "prepared" and conn.entity_id is None
        if failed and conn.target is not None and link_identity(conn.target) == link_identity(full):
            return conn
    return None


def _invitation(core: SimulatedCore, incognito: bool) -> Event:
    network = core.network
    network.require_relay()
    queue, key, number = network.new_key(24), network.new_key(), network.new_key(24)
    e2e = f"{network.new_key(56)}%2C{network.new_key(56)}"
    pair = {
        "connFullLink": full_link("invitation", queue, network.new_key(), e2e=e2e),
        "connShortLink": short_link("i", key, number),
    }
    conn = new_connection(core, "contact", "new", initiated=True)
    _pq_contact(conn)
    conn.link = pair
    _incognito(core, conn, incognito)
    data = {"profile": profiles.contact_profile(core, conn, kind=True), "business": False, "kem": network.new_key(96)}
    network.publish(
        LinkEntry(pair["connFullLink"], pair["connShortLink"], "invitation", core.name, conn.agent_id, data)
    )
    shown = shapes.pending_connection(conn)
    return core.event("invitation", connLinkInvitation=pair, connection=shown)


def _confirm(core: SimulatedCore, conn: Connection, entry: LinkEntry) -> None:
    conn.peer = [entry.core, entry.agent_id]
    core.network.withdraw(entry.full)
    body = {
        "x": "confirm",
        "from": [core.name, conn.agent_id],
        "profile": profiles.contact_profile(core, conn, kind=True),
    }
    core.post(conn, body)


def _accept_invitation(core: SimulatedCore, a: Arguments) -> Event:
    entry = core.network.find_link(a.text("full"))
    conn = _attempt(core, a.text("full")) or new_connection(core, "contact", "prepared", chat_version=19)
    _pq_contact(conn)
    conn.target = a.text("full")
    if entry is None:
        raise errors.smp_auth()
    conn.status = "sndReady"
    conn.link = {"connFullLink": a.text("full")}
    if a.has("short"):
        conn.link["connShortLink"] = a.text("short")
    custom = _incognito(core, conn, a.on("incognito"))
    _confirm(core, conn, entry)
    response = core.event("sentConfirmation", connection=shapes.pending_connection(conn))
    if custom is not None:
        response["customUserProfile"] = custom
    return response


def _connect_prepared_invitation(
    core: SimulatedCore, contact: Contact, entry: LinkEntry | None, incognito: bool, message: JsonObject | None
) -> Event:
    if entry is None:
        raise errors.smp_auth()
    conn = new_connection(core, "contact", "sndReady", chat_version=8, peer_version=1)
    _pq_contact(conn)
    conn.entity_id = contact.contact_id
    conn.target = entry.full
    contact.conn_id = conn.conn_id
    custom = _incognito(core, conn, incognito)
    _confirm(core, conn, entry)
    response = core.event("startedConnectionToContact", contact=core.contact_json(contact))
    if custom is not None:
        response["customUserProfile"] = custom
    if message is not None:
        shared = core.network.new_id()
        item = own_message(core, f"@{contact.contact_id}", message, shared)
        core.emit_items_later(item)
        body = {"x": "msg.new", "id": shared, "content": message}
        core.send(conn, [body], items=[item.item_id], after=HOP)
    return response
