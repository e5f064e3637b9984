"""Invitations to a group by a contact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, groups, items, joining, profiles, rows, shapes
from simplexmcp.sandbox.network import HOP
from simplexmcp.sandbox.roles import require_role
from simplexmcp.sandbox.sending import require_contact
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Connection, Contact

__all__ = ["invite", "join", "on_accept", "on_invitation", "on_joined"]

JsonObject = dict[str, Any]


def _content(kind: str, group: JsonObject, key: int, name: str, group_id: int, role: str) -> JsonObject:
    invitation = {
        "groupId": group_id,
        "groupMemberId": key,
        "localDisplayName": name,
        "groupProfile": group,
        "status": "pending",
    }
    return {"type": f"{kind}GroupInvitation", "groupInvitation": invitation, "memberRole": role}


def invite(core: SimulatedCore, group_id: int, contact_id: int, role: str) -> Event:
    """`/_add #G C ROLE`."""
    group = core.group(group_id)
    contact = core.contact(contact_id)
    require_role(core, group, "admin")
    conn = require_contact(core, contact)
    before = core.group_json(group)
    member = groups.add_member(
        core,
        group,
        core.network.new_id(),
        role=role,
        status="invited",
        category="invitee",
        profile=contact.profile_id,
    )
    member.name = contact.name
    member.contact_id = contact.contact_id
    member.invited_by = {"type": "user"}
    member.invited_by_key = group.membership
    own = core.membership(group)
    shared = core.network.new_id()
    content = _content("snd", group.profile, member.member_key, contact.name, group.group_id, role)
    text = f"sent invitation to join group {group.profile['displayName']} as {role}"
    item = items.add_item(core, f"@{contact.contact_id}", content, text, shared_id=shared)
    body = {
        "x": "group.inv",
        "id": shared,
        "group": group.profile,
        "role": role,
        "you": member.member_id,
        "host": {
            "memberId": own.member_id,
            "role": own.role,
            "profile": profiles.member_profile(core, None, kind=True),
        },
        "from": [core.name, conn.agent_id],
        "memberKey": member.member_key,
    }
    core.send(conn, [body], items=[item.item_id])
    response = core.event(
        "sentGroupInvitation", groupInfo=before, contact=core.contact_json(contact), member=core.member_json(member)
    )
    core.emit_items_later(item)
    return response


def on_invitation(core: SimulatedCore, contact: Contact, body: JsonObject, ts: float) -> bool:
    """A contact invites us: the group is there, not joined."""
    group = groups.add_group(core, body["group"], core.now())
    who = body["host"]
    host = groups.add_member(
        core,
        group,
        who["memberId"],
        role=who["role"],
        status="invited",
        category="host",
        profile=contact.profile_id,
    )
    host.name = contact.name
    host.contact_id = contact.contact_id
    own = groups.add_membership(core, group, body["you"], role=body["role"], status="invited")
    own.invited_by = {"type": "contact", "byContactId": contact.contact_id}
    own.invited_by_key = host.member_key
    group.prepared = None
    key = own.member_key
    content = _content("rcv", group.profile, key, group.name, group.group_id, body["role"])
    text = f"received invitation to join group {group.profile['displayName']} as {body['role']}"
    item = items.add_item(core, f"@{contact.contact_id}", content, text, ts=broker_time(ts), shared_id=body["id"])
    core.state.invitations[str(group.group_id)] = {"from": body["from"], "memberKey": body["memberKey"]}
    core.emit_items(item)
    core.emit(
        "receivedGroupInvitation",
        groupInfo=core.group_json(group, members=2),
        contact=core.contact_json(contact),
        fromMemberRole=who["role"],
        memberRole=body["role"],
    )
    return True


def join(core: SimulatedCore, group_id: int) -> Event:
    """`/_join #G`: accept an invitation."""
    group = core.group(group_id)
    own = core.membership(group)
    invitation = core.state.invitations.pop(str(group_id), None)
    if own.status != "invited" or invitation is None:
        raise errors.command_error("group is not in invited status")
    host = next(m for m in shapes.members_of(core.state, group_id) if m.category == "host")
    conn = rows.new_connection(core, "member", "joined")
    conn.entity_id = host.member_key
    host.conn_id = conn.conn_id
    own.status = "accepted"
    contact = core.state.contacts[host.contact_id or 0]
    contact_conn = core.conn_of(contact)
    assert contact_conn is not None
    body = {"x": "group.accept", "conn": [core.name, conn.agent_id], "memberKey": invitation["memberKey"]}
    core.post(contact_conn, body)
    response = core.event("userAcceptedGroupSent", groupInfo=core.group_json(group, members=0))
    _mark_accepted(core, group_id)
    return response


def _mark_accepted(core: SimulatedCore, group_id: int) -> None:
    for item in core.state.items.values():
        content = item.content
        if content["type"] == "rcvGroupInvitation" and content["groupInvitation"]["groupId"] == group_id:
            invitation = {**content["groupInvitation"], "status": "accepted"}
            item.content = {**content, "groupInvitation": invitation}
            core.emit_later("chatItemUpdated", chatItem=core.item_json(item))


def on_accept(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The invited contact joins: connect, then introduce it as any joiner."""
    member = core.state.members.get(body["memberKey"])
    if member is None or member.status != "invited":
        return
    member.status = "accepted"
    member_conn = joining.member_connection(core, member, peer=body["conn"])
    core.post(member_conn, {"x": "group.joined", "from": [core.name, member_conn.agent_id]})
    core.after("member_ready", HOP * 2, conn=member_conn.agent_id)
    del conn


def on_joined(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The inviting contact's side of the group connection is there."""
    conn.peer = body["from"]
    core.after("joined", HOP, conn=conn.agent_id, prepared=False)
