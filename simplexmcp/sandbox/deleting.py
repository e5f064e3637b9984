"""Leaving groups and deleting chats, and the routine events that follow on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, files, groups, items, shapes
from simplexmcp.sandbox.roles import REMOVED

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Connection, Contact, Group

__all__ = ["close_group", "delete", "leave", "peer_gone"]

JsonObject = dict[str, Any]


def peer_gone(core: SimulatedCore, conns: list[Connection]) -> None:
    """The routine events after the other side has gone."""
    problem = {"type": "CONN", "connErr": {"type": "NOT_FOUND"}, "errContext": ""}
    core.emit_raw_later({"type": "chatError", "chatError": errors.agent_error(problem).chat_error})
    groups.queues_deleted(core, conns)


def _own_deletion(core: SimulatedCore, conns: list[Connection]) -> None:
    """The routine events after own connections were deleted."""
    for conn in conns:
        problem = errors.error("noConnectionUser", agentConnId=conn.agent_id).chat_error
        core.emit_raw_later({"type": "chatError", "chatError": problem})
    groups.queues_deleted(core, conns)


def member_connections(core: SimulatedCore, group: Group) -> list[Connection]:
    """The connections to the members of a group."""
    out: list[Connection] = []
    for member in shapes.members_of(core.state, group.group_id):
        conn = core.conn_of(member)
        if conn is not None:
            out.append(conn)
    return out


def _drop_connections(core: SimulatedCore, group: Group) -> list[Connection]:
    """Forget all connections of a group; those that were still open."""
    conns = member_connections(core, group)
    for conn in conns:
        core.forget_connection(conn)
    return [conn for conn in conns if conn.status != "deleted"]


def close_group(core: SimulatedCore, group: Group) -> None:
    """One is out of a group: its connections are closed, members and messages stay."""
    conns = _drop_connections(core, group)
    row = groups.link_of(core, group)
    if row is not None:
        groups.drop_link(core, row)
    groups.queues_deleted(core, conns)


def leave(core: SimulatedCore, a: Arguments) -> Event:
    """`/_leave #G`: without a check of the membership, as in the real core."""
    group = core.group(a.number("g"))
    before = shapes.current_members(core.state, group.group_id)
    shared = core.network.new_id()
    groups.tell_members(core, group, {"x": "grp.leave", "shared": shared})
    row = groups.link_of(core, group)
    if row is not None:
        groups.drop_link(core, row)
    event = {"type": "userLeft"}
    item = items.group_event(core, group, event, "left", None, shared_id=shared)
    core.emit_items(item, members=before)
    files.cancel_all(core, f"#{group.group_id}")
    own = core.membership(group)
    own.status = "left"
    own.updated = core.now()
    conns = _drop_connections(core, group)
    response = core.event("leftMemberUser", groupInfo=core.group_json(group, members=before))
    if conns:
        _own_deletion(core, conns)
    return response


def delete(core: SimulatedCore, a: Arguments) -> Event:
    """`/_delete REF [MODE] [notify=…]`."""
    ref = a.text("ref")
    number = int(ref[1:])
    if ref[0] == ":":
        return _delete_pending(core, number)
    if ref[0] == "#":
        return _delete_group(core, core.group(number))
    contact = core.contact(number)
    if number == core.user.contact_id:
        raise errors.not_modelled("deleting the contact that stands for the user")
    mode = a.text("mode", "full")
    if mode != "full":
        return _empty_contact(core, contact, mode, notify=a.on("notify", default=True))
    return _delete_contact(core, contact, notify=a.on("notify", default=True))


def _delete_pending(core: SimulatedCore, number: int) -> Event:
    conn = core.state.connections.get(number)
    if conn is None or conn.entity_id is not None or conn.kind == "user_contact":
        raise errors.store_error("pendingConnectionNotFound", connId=number)
    if conn.link is not None:
        core.network.withdraw(conn.link["connFullLink"])
    response = core.event("contactConnectionDeleted", connection=shapes.pending_connection(conn))
    core.forget_connection(conn)
    groups.queues_deleted(core, [conn])
    return response


def _delete_contact(core: SimulatedCore, contact: Contact, *, notify: bool) -> Event:
    conn = core.conn_of(contact)
    response = core.event("contactDeleted", contact=core.contact_json(contact))
    ready = conn is not None and conn.status in ("ready", "sndReady")
    if conn is not None and ready and contact.status == "active" and notify:
        core.send(conn, [{"x": "direct.del", "id": core.network.new_id()}])
    core.drop_contact(contact)
    if conn is not None:
        core.forget_connection(conn)
        core.drop_profile(conn.incognito_profile)
        if conn.status == "deleted":
            return response
        if ready:
            _own_deletion(core, [conn])
        else:
            groups.queues_deleted(core, [conn])
    return response


def _empty_contact(core: SimulatedCore, contact: Contact, mode: str, *, notify: bool) -> Event:
    """Delete the messages of a contact, or (`entity`) the connection and keep the chat."""
    conn = core.conn_of(contact)
    if mode == "messages":
        core.drop_chat(f"@{contact.contact_id}", banner=False)
        contact.deleted_chat = True
        return core.event("contactDeleted", contact=core.contact_json(contact))
    if conn is not None:
        if contact.status == "active" and notify and conn.status in ("ready", "sndReady"):
            core.send(conn, [{"x": "direct.del", "id": core.network.new_id()}])
        core.forget_connection(conn)
        groups.queues_deleted(core, [conn])
    contact.conn_id = None
    contact.status = "deletedByUser"
    return core.event("contactDeleted", contact=core.contact_json(contact))


def _delete_group(core: SimulatedCore, group: Group) -> Event:
    own = core.membership(group)
    owner = own.role == "owner"
    current = own.status in shapes.CURRENT
    if current and not owner:
        raise errors.error("groupUserRole", groupInfo=core.group_json(group), requiredRole="owner")
    if current and owner:
        groups.tell_members(core, group, {"x": "grp.del", "shared": core.network.new_id()})
    response = core.event("groupDeletedUser", groupInfo=core.group_json(group), msgSigned=False)
    _drop_group(core, group)
    return response


def _drop_group(core: SimulatedCore, group: Group) -> None:
    state = core.state
    conns = member_connections(core, group)
    row = groups.link_of(core, group)
    if row is not None:
        groups.drop_link(core, row)
    core.drop_chat(f"#{group.group_id}")
    rows = shapes.members_of(state, group.group_id)
    del state.groups[group.group_id]
    for member in rows:
        del state.members[member.member_key]
    for conn in conns:
        core.forget_connection(conn)
    for name in {group.name, *(m.name for m in rows if m.category != "user")}:
        core.free_name(name)
    state.invitations.pop(str(group.group_id), None)
    live = [c for c in conns if c.status != "deleted"]
    if any(m.status not in REMOVED for m in rows):
        groups.queues_deleted(core, live)
