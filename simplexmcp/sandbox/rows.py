"""Making rows that several verbs need: contacts, connections, own messages that go with a handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import items, shapes
from simplexmcp.sandbox.state import Connection, Contact, free_id

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Group, Item, Member

__all__ = ["add_contact", "host_of", "new_connection", "own_message"]

JsonObject = dict[str, Any]


def add_contact(core: SimulatedCore, profile: JsonObject) -> Contact:
    """A new contact row with its own profile row and local name."""
    row_profile = core.add_profile(profile)
    now = core.now()
    number = free_id(core.state.contacts)
    name = core.take_name(profile["displayName"])
    contact = Contact(number, core.user.user_id, name, row_profile.profile_id, now, now, now)
    core.state.contacts[number] = contact
    return contact


def new_connection(core: SimulatedCore, kind: str, status: str, **fields: Any) -> Connection:
    """A new connection row of the active user."""
    conn = Connection(
        conn_id=free_id(core.state.connections),
        agent_id=core.network.new_id(),
        user_id=core.user.user_id,
        kind=kind,
        status=status,
        created=core.now(),
        **fields,
    )
    core.state.connections[conn.conn_id] = conn
    return conn


def host_of(core: SimulatedCore, group: Group) -> Member:
    """The member through whom one joined."""
    return next(m for m in shapes.members_of(core.state, group.group_id) if m.category == "host")


def own_message(core: SimulatedCore, ref: str, message: JsonObject, shared: str | None = None) -> Item:
    """An own message that was sent with a request or as an automatic reply."""
    text = items.content_text(message)
    parts, has_link = items.formatted(text)
    content = {"type": "sndMsgContent", "msgContent": message}
    return items.add_item(core, ref, content, text, formatted=parts, has_link=has_link, shared_id=shared)
