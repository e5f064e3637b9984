"""Joining a group: the host takes a request, the joiner gets its group, the others are introduced.

The steps between the cores: request → invited (to the joiner) → both ready → introductions to all, history to the
joiner → each pair of members connects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import associating, groups, history, items, profiles, rows, shapes
from simplexmcp.sandbox.network import HOP
from simplexmcp.sandbox.preferences import full_group_preferences
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Connection, Group, LinkRow, Member

__all__ = [
    "add_peer",
    "introduce",
    "invite",
    "member_connection",
    "on_group_request",
    "on_introduced",
    "on_introduction",
    "on_invited",
    "on_joined",
    "on_member_ready",
    "on_new_member",
    "on_pair_connected",
    "on_pair_done",
    "on_pair_offer",
    "on_pair_ready",
]

JsonObject = dict[str, Any]


_SHOWN = ("displayName", "fullName", "shortDescr", "image")


def add_peer(core: SimulatedCore, group: Group, who: JsonObject, *, category: str, status: str) -> Member:
    """A new row for another member; `who` has memberId, role and profile."""
    profile = core.add_profile(who["profile"])
    row = groups.add_member(
        core, group, who["memberId"], role=who["role"], status=status, category=category, profile=profile.profile_id
    )
    row.name = core.take_name(who["profile"]["displayName"])
    return row


def _identity(core: SimulatedCore, member: Member) -> JsonObject:
    """A member as others are told about it."""
    return {
        "memberId": member.member_id,
        "role": member.role,
        "profile": {
            key: value
            for key, value in core.state.profiles[member.profile_id].data.items()
            if key not in ("preferences", "peerType")
        },
    }


def _own_identity(core: SimulatedCore, group: Group) -> JsonObject:
    own = core.membership(group)
    return {**_identity(core, own), "profile": profiles.member_profile(core, None, kind=False)}


def member_connection(core: SimulatedCore, member: Member, **fields: Any) -> Connection:
    """A new connection for a member."""
    conn = rows.new_connection(core, "member", "new", **fields)
    conn.entity_id = member.member_key
    member.conn_id = conn.conn_id
    return conn


def new_support(core: SimulatedCore) -> JsonObject:
    """A support conversation without messages."""
    return {"chatTs": core.now(), "unread": 0, "memberAttention": 0, "mentions": 0}


# The host


def on_group_request(core: SimulatedCore, link: LinkRow, data: JsonObject) -> None:
    """Somebody asks through the group's link."""
    assert link.group_id is not None
    group = core.state.groups[link.group_id]
    before = shapes.current_members(core.state, group.group_id)
    review = group.profile.get("memberAdmission", {}).get("review") == "all"
    who = {"memberId": core.network.new_id(), "role": link.role, "profile": data["profile"]}
    status = "pending_review" if review else "accepted"
    member = add_peer(core, group, who, category="invitee", status=status)
    if review:
        member.support = new_support(core)
    member.invited_by = {"type": "user"}
    member.invited_by_key = group.membership
    conn = member_connection(core, member, via_group_link=True, peer=data["from"])
    conn.via_link = link.link_id
    scope = member.member_key if review else None
    event = {"type": "invitedViaGroupLink"}
    item = items.group_event(core, group, event, "invited via your group link", member, scope=scope)
    core.emit_items(item, members=before)
    core.emit(
        "acceptingGroupJoinRequestMember",
        groupInfo=core.group_json(group, members=before),
        member=core.member_json(member),
    )
    invite(core, group, member, conn)


def invite(core: SimulatedCore, group: Group, member: Member, conn: Connection) -> None:
    """Tell the joiner what group it is in and as whom; both sides are ready after that."""
    profile = group.profile
    if group.business is not None:
        shown = profiles.member_profile(core, None, kind=False)
        profile = {**profile, **{key: value for key, value in shown.items() if key in _SHOWN}}
    body = {
        "x": "invited",
        "from": [core.name, conn.agent_id],
        "group": profile,
        "host": _own_identity(core, group),
        "you": {"memberId": member.member_id, "role": member.role, "status": member.status},
        "business": group.business,
    }
    core.post(conn, body)
    core.after("member_ready", HOP * 2.5, conn=conn.agent_id)


def on_member_ready(core: SimulatedCore, data: JsonObject) -> None:
    """The connection to a joiner is ready: it is a member now; introduce it."""
    conn = core.conn_by_agent_id(data["conn"])
    member = None if conn is None else core.state.members.get(conn.entity_id or 0)
    if conn is None or member is None:
        return
    group = core.state.groups[member.group_id]
    conn.status = "ready"
    review = member.status == "pending_review"
    group.attention += review
    scope = member.member_key if review else None
    event = {"type": "memberConnected"}
    core.emit_items(items.group_event(core, group, event, "connected", member, scope=scope))
    if review:
        waiting = {"type": "newMemberPendingReview"}
        text = "new member wants to join the group"
        core.emit_items(items.group_event(core, group, waiting, text, member, scope=scope))
    else:
        member.status = "connected"
    member.updated = core.now()
    associating.member_ready(core, member)
    core.emit("joinedGroupMember", groupInfo=core.group_json(group), member=core.member_json(member))
    if member.support is not None and review:
        member.support = {**member.support, "unread": 1, "memberAttention": 1}
    if not review:
        introduce(core, group, member, conn)


def introduce(core: SimulatedCore, group: Group, member: Member, conn: Connection) -> None:
    """Tell the members about the joiner, the joiner about them, and send it the history."""
    shared = core.network.new_id()
    own = profiles.own_profile(core)
    if own.get("peerType") and group.business is None:
        core.send(conn, [{"x": "info", "profile": profiles.member_profile(core, None, kind=True), "quiet": True}])
    others = [m for m in groups.members_to_tell(core, group) if m.member_key != member.member_key]
    for other in others:
        other_conn = core.conn_of(other)
        assert other_conn is not None
        core.send(other_conn, [{"x": "mem.new", "member": _identity(core, member), "shared": shared}])
        other.forwards.append(member.member_key)
        member.forwards.append(other.member_key)
    if others:
        core.send(conn, [{"x": "mem.intro", "member": _identity(core, other)} for other in others])
    if full_group_preferences(group.profile.get("groupPreferences"))["history"]["enable"] == "on":
        history.send(core, group, conn)
    text = group.profile.get("description")
    if text is not None and group.business is None:
        core.send(conn, [{"x": "welcome", "text": text, "id": core.network.new_id()}])


# The joiner


def on_invited(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The host took the request."""
    conn.peer = body["from"]
    conn.status = "requested"
    you = body["you"]
    card = core.state.contacts.get(conn.entity_id or 0) if conn.kind == "contact" else None
    from_contact = None if card is None else core.contact_json(card)
    conn.chat_version = conn.peer_version = 19
    if card is not None:
        core.drop_contact(card)
        conn.entity_id = None
    host = core.state.members.get(conn.entity_id or 0)
    prepared = host is not None
    if host is None:
        group, host = _new_group(core, conn, body)
    else:
        group = core.state.groups[host.group_id]
        _fill_prepared(core, group, host, body)
    own = core.membership(group)
    own.member_id, own.role = you["memberId"], you["role"]
    own.status = "pending_review" if you["status"] == "pending_review" else "accepted"
    own.updated = core.now()
    if body["business"] is not None:
        group.business = {**body["business"], "chatType": "business"}
    shown = {"groupInfo": core.group_json(group), "hostMember": core.member_json(host)}
    if from_contact is not None:
        core.emit("businessLinkConnecting", **shown, fromContact=from_contact)
    else:
        core.emit("groupLinkConnecting", **shown)
    conn.status = "accepted"
    if body["business"] is not None and card is None:
        host.max_version = 19
    core.after("joined", HOP * 1.2, conn=conn.agent_id, prepared=prepared)


def _new_group(core: SimulatedCore, conn: Connection, body: JsonObject) -> tuple[Group, Member]:
    group = groups.add_group(core, body["group"], core.now())
    host = add_peer(core, group, body["host"], category="host", status="accepted")
    host.max_version = 1
    host.conn_id = conn.conn_id
    own = groups.add_membership(core, group, "", role="member", status="unknown")
    own.invited_by = {"type": "unknown"}
    own.invited_by_key = host.member_key
    if conn.incognito_profile is not None:
        own.profile_id = conn.incognito_profile
    conn.kind = "member"
    conn.entity_id = host.member_key
    conn.via_group_link = conn.group_link_id is not None
    group.link_uri = conn.target
    return group, host


def _fill_prepared(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    groups.set_profile(core, group, body["group"])
    who = body["host"]
    host.member_id, host.role = who["memberId"], who["role"]
    old = host.name
    core.state.profiles[host.profile_id].data = who["profile"]
    host.name = ""
    core.free_name(old)
    host.name = core.take_name(who["profile"]["displayName"])
    host.updated = core.now()


def on_joined(core: SimulatedCore, data: JsonObject) -> None:
    """The own side is ready: one is a member."""
    conn = core.conn_by_agent_id(data["conn"])
    host = None if conn is None else core.state.members.get(conn.entity_id or 0)
    if conn is None or host is None:
        return
    group = core.state.groups[host.group_id]
    own = core.membership(group)
    conn.status = "ready"
    host.status = "connected"
    review = own.status == "pending_review"
    if not review:
        own.status = "connected"
    core.emit("userJoinedGroup", groupInfo=core.group_json(group), hostMember=core.member_json(host))
    scope = 0 if review else None
    if review:
        own.support = new_support(core)
    core.emit_items(items.group_e2ee(core, group, host, scope))
    if not data["prepared"]:
        core.emit_items(*items.group_features(core, group, host))
    event = {"type": "memberConnected"}
    core.emit_items(items.group_event(core, group, event, "connected", host, scope=scope))
    host.max_version = 19
    associating.member_ready(core, host)
    if review:
        waiting = {"type": "userPendingReview"}
        text = "please wait for group moderators to review your request to join the group"
        core.emit_items(items.group_event(core, group, waiting, text, None, scope=0))
        core.emit(
            "memberAcceptedByOther",
            groupInfo=core.group_json(group),
            acceptingMember=core.member_json(host),
            member=core.member_json(own),
        )


# Pairs of members


def on_new_member(core: SimulatedCore, group: Group, host: Member, body: JsonObject, ts: float) -> None:
    """The host tells about a joiner."""
    who = body["member"]
    if any(m.member_id == who["memberId"] for m in shapes.members_of(core.state, group.group_id)):
        return
    before = shapes.current_members(core.state, group.group_id)
    member = add_peer(core, group, who, category="post", status="announced")
    member.invited_by_key = host.member_key
    event = {"type": "memberAdded", "groupMemberId": member.member_key, "profile": who["profile"]}
    text = f"added {profiles.full_name(who['profile'])}"
    item = items.group_event(core, group, event, text, host, ts=broker_time(ts), shared_id=body["shared"])
    core.emit_items(item, members=before)
    core.emit(
        "joinedGroupMemberConnecting",
        groupInfo=core.group_json(group, members=before),
        hostMember=core.member_json(host),
        member=core.member_json(member),
    )


def on_introduction(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    """The host tells the joiner about a member: offer it a connection, through the host."""
    who = body["member"]
    known = [m for m in shapes.members_of(core.state, group.group_id) if m.member_id == who["memberId"]]
    if known:
        return
    member = add_peer(core, group, who, category="pre", status="intro-inv")
    host_conn = core.conn_of(host)
    assert host_conn is not None
    conn = member_connection(core, member, level=host_conn.level + 1, via_contact=host.contact_id)
    core.post(host_conn, {"x": "pair.offer", "memberId": member.member_id, "conn": [core.name, conn.agent_id]})


def on_pair_offer(core: SimulatedCore, group: Group, sender: Member, body: JsonObject) -> None:
    """The host passes an offer on to the member that it is for."""
    for member in shapes.members_of(core.state, group.group_id):
        conn = core.conn_of(member)
        if member.member_id == body["memberId"] and conn is not None:
            core.post(conn, {"x": "pair.take", "memberId": sender.member_id, "conn": body["conn"]})


def on_introduced(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    """A member gets the joiner's offer: connect both."""
    for member in shapes.members_of(core.state, group.group_id):
        if member.member_id == body["memberId"] and member.status == "announced":
            member.status = "intro-inv"
            host_conn = core.conn_of(host)
            level = 1 if host_conn is None else host_conn.level + 1
            conn = member_connection(core, member, level=level, peer=body["conn"])
            core.post(conn, {"x": "pair.done", "from": [core.name, conn.agent_id]})
            core.after("pair_ready", HOP * 3, conn=conn.agent_id)


def on_pair_done(core: SimulatedCore, conn: Connection, body: JsonObject) -> None:
    """The joiner learns the other end of its offer."""
    conn.peer = body["from"]
    core.after("pair_ready", HOP, conn=conn.agent_id)


def on_pair_ready(core: SimulatedCore, data: JsonObject) -> None:
    """A member is connected with another one; the host needs to forward nothing more from it to that one."""
    conn = core.conn_by_agent_id(data["conn"])
    member = None if conn is None else core.state.members.get(conn.entity_id or 0)
    if conn is None or member is None or member.status not in ("intro-inv", "announced"):
        return
    group = core.state.groups[member.group_id]
    conn.status = "ready"
    event = {"type": "memberConnected"}
    core.emit_items(items.group_event(core, group, event, "connected", member))
    core.emit("connectedToGroupMember", groupInfo=core.group_json(group), member=core.member_json(member))
    member.status = "connected"
    associating.member_ready(core, member)
    for host in shapes.members_of(core.state, group.group_id):
        host_conn = core.conn_of(host)
        if host_conn is not None and host_conn.status == "ready" and host.member_key != member.member_key:
            core.post(host_conn, {"x": "pair.connected", "memberId": member.member_id})


def on_pair_connected(core: SimulatedCore, group: Group, sender: Member, body: JsonObject) -> None:
    """A member has connected to another one and sends to it by itself; the other one may not be so far yet."""
    for member in shapes.members_of(core.state, group.group_id):
        if member.member_id == body["memberId"] and member.member_key in sender.forwards:
            sender.forwards.remove(member.member_key)
