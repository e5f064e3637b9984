"""Members of a group as the own user manages them: roles, removal, blocking, admission, invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, groups, invitations, items, profiles, shapes
from simplexmcp.sandbox.roles import REMOVED, at_least, require_role

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Group, Item, Member

__all__ = ["accept", "add", "block", "create_contact", "join", "list_members", "remove", "set_roles"]

JsonObject = dict[str, Any]


def list_members(core: SimulatedCore, a: Arguments) -> Event:
    """`/_members #G`: all but oneself."""
    group = core.group(a.number("g"))
    rows = [m for m in shapes.members_of(core.state, group.group_id) if m.category != "user"]
    shown = {"groupInfo": core.group_json(group), "members": [core.member_json(m) for m in rows]}
    return core.event("groupMembers", group=shown)


def _selected(core: SimulatedCore, group: Group, numbers: list[int], *, own: str | None) -> list[Member]:
    """The members with these ids; `own` is the refusal for the own id."""
    out: list[Member] = []
    for number in dict.fromkeys(numbers):
        row = core.state.members.get(number)
        if number == group.membership and own is not None:
            raise errors.command_error(own)
        if row is None or row.group_id != group.group_id or number == group.membership:
            raise errors.error("groupMemberNotFound")
        out.append(row)
    return out


def _require_above(core: SimulatedCore, group: Group, rows: list[Member], *roles: str) -> None:
    """One needs to be admin, and at least what the members are and become."""
    needed = "admin"
    for role in (*(row.role for row in rows), *roles):
        needed = role if at_least(role, needed) else needed
    require_role(core, group, needed)


def _event_profile(core: SimulatedCore, member: Member) -> JsonObject:
    return core.state.profiles[member.profile_id].data


def set_roles(core: SimulatedCore, a: Arguments) -> Event:
    """`/_member role #G IDS ROLE`: those who have the role already are skipped."""
    group = core.group(a.number("g"))
    role = a.text("role")
    rows = _selected(core, group, a.numbers("ids"), own="can't change role for self")
    if len(rows) > 1 and (at_least(role, "admin") or any(at_least(m.role, "admin") for m in rows)):
        text = "can't change role of multiple members when admins selected, or new role is admin"
        raise errors.command_error(text)
    if any(m.status in ("pending_review", "pending_approval") for m in rows):
        raise errors.command_error("can't change role of members pending approval")
    _require_above(core, group, rows, role)
    before = core.group_json(group)
    changed = [m for m in rows if m.role != role]
    made: list[Item] = []
    for member in changed:
        member.role = role
        member.updated = core.now()
        profile = _event_profile(core, member)
        event = {"type": "memberRole", "groupMemberId": member.member_key, "profile": profile, "role": role}
        text = f"changed role of {profiles.full_name(profile)} to {role}"
        shared = core.network.new_id()
        made.append(items.group_event(core, group, event, text, None, shared_id=shared))
        body = {"x": "mem.role", "memberId": member.member_id, "role": role, "shared": shared}
        groups.tell_members(core, group, body)
    shown = [core.member_json(m) for m in changed]
    response = core.event("membersRoleUser", groupInfo=before, members=shown, toRole=role, msgSigned=False)
    if made:
        core.emit_items_later(*made)
    return response


def remove(core: SimulatedCore, a: Arguments) -> Event:
    """`/_remove #G IDS [messages=on]`."""
    group = core.group(a.number("g"))
    rows = _selected(core, group, a.numbers("ids"), own=None)
    if len(rows) > 1 and any(at_least(m.role, "admin") for m in rows):
        raise errors.command_error("can't remove multiple members when admins selected")
    _require_above(core, group, rows)
    messages = a.on("messages")
    made: list[Item] = []
    shown: list[JsonObject] = []
    gone: list[Any] = []
    for member in rows:
        was_current = member.status not in REMOVED
        shared = core.network.new_id()
        body = {"x": "mem.del", "memberId": member.member_id, "messages": messages, "shared": shared}
        groups.tell_members(core, group, body)
        conn = core.conn_of(member)
        member.status = "removed"
        member.updated = core.now()
        if messages:
            _mark_messages(core, group, member)
        if was_current:
            profile = _event_profile(core, member)
            event = {"type": "memberDeleted", "groupMemberId": member.member_key, "profile": profile}
            text = f"removed {profiles.full_name(profile)}"
            made.append(items.group_event(core, group, event, text, None, shared_id=shared))
        shown.append(core.member_json(member))
        if conn is not None:
            gone.append(conn)
            core.forget_connection(conn)
    info = core.group_json(group)
    for member in rows:
        drop_if_unused(core, group, member)
    response = core.event("userDeletedMembers", groupInfo=info, members=shown, withMessages=messages, msgSigned=False)
    if made:
        core.emit_items_later(*made)
    groups.queues_deleted(core, gone)
    return response


def _mark_messages(core: SimulatedCore, group: Group, member: Member) -> None:
    for _, number in core.index.keys(f"#{group.group_id}"):
        item = core.state.items[number]
        if item.member == member.member_key and "msgContent" in item.content and item.deleted is None:
            item.deleted = {"type": "moderated", "deletedTs": core.now(), "by": group.membership}


def drop_if_unused(core: SimulatedCore, group: Group, member: Member) -> None:
    """A removed member's record goes when no item needs it."""
    ref = f"#{group.group_id}"
    used = any(core.state.items[n].member == member.member_key for _, n in core.index.keys(ref))
    if not used and member.status == "removed":
        del core.state.members[member.member_key]
        core.drop_profile(member.profile_id)
        core.free_name(member.name)


def block(core: SimulatedCore, a: Arguments) -> Event:
    """`/_block #G IDS blocked=on|off`: for all members."""
    group = core.group(a.number("g"))
    blocked = a.text("blocked") == "on"
    rows = _selected(core, group, a.numbers("ids"), own=None)
    require_role(core, group, "moderator")
    for member in rows:
        if not at_least(core.membership(group).role, member.role):
            require_role(core, group, member.role)
    made: list[Item] = []
    for member in rows:
        member.blocked = blocked
        profile = _event_profile(core, member)
        shared = core.network.new_id()
        event = {
            "type": "memberBlocked",
            "groupMemberId": member.member_key,
            "profile": profile,
            "blocked": blocked,
        }
        text = f"{'blocked' if blocked else 'unblocked'} {profiles.full_name(profile)}"
        made.append(items.group_event(core, group, event, text, None, shared_id=shared))
        body = {"x": "mem.block", "memberId": member.member_id, "blocked": blocked, "shared": shared}
        for other in groups.members_to_tell(core, group):
            conn = core.conn_of(other)
            if conn is not None and other.member_key != member.member_key:
                core.send(conn, [body])
    shown = [core.member_json(m) for m in rows]
    core.emit_items(*made)
    return core.event(
        "membersBlockedForAllUser",
        groupInfo=core.group_json(group),
        members=shown,
        blocked=blocked,
        msgSigned=False,
    )


def accept(core: SimulatedCore, a: Arguments) -> Event:
    """`/_accept member #G M ROLE`: let in a member that waits for a review."""
    from simplexmcp.sandbox import joining

    group = core.group(a.number("g"))
    member = core.state.members.get(a.number("m"))
    if member is None or member.group_id != group.group_id:
        raise errors.store_error("groupMemberNotFound", groupMemberId=a.number("m"))
    require_role(core, group, "moderator")
    if member.status != "pending_review":
        raise errors.command_error("member should be pending approval and should have group connection")
    conn = core.conn_of(member)
    assert conn is not None
    before = shapes.current_members(core.state, group.group_id)
    member.status = "connected"
    group.attention -= member.support is None or member.support["memberAttention"] == 0
    member.role = a.text("role")
    core.send(conn, [{"x": "accepted.member", "role": member.role}])
    event = {"type": "memberConnected"}
    core.emit_items(items.group_event(core, group, event, "connected", member), members=before)
    joining.introduce(core, group, member, conn)
    joined = core.group_json(group, members=before)
    response = core.event("memberAccepted", groupInfo=joined, member=core.member_json(member))
    profile = _event_profile(core, member)
    accepted = {"type": "memberAccepted", "groupMemberId": member.member_key, "profile": profile}
    text = "you accepted this member"
    item = items.group_event(core, group, accepted, text, None, scope=member.member_key)
    core.emit_items_later(item, members=before)
    return response


def add(core: SimulatedCore, a: Arguments) -> Event:
    """`/_add #G C ROLE`."""
    return invitations.invite(core, a.number("g"), a.number("contact"), a.text("role"))


def join(core: SimulatedCore, a: Arguments) -> Event:
    """`/_join #G`."""
    return invitations.join(core, a.number("g"))


def create_contact(core: SimulatedCore, a: Arguments) -> Event:
    """`/_create member contact #G M`: only its refusals."""
    from simplexmcp.sandbox import sending

    group = core.group(a.number("g"))
    member = core.state.members.get(a.number("m"))
    if member is None or member.group_id != group.group_id:
        raise errors.store_error("groupMemberNotFound", groupMemberId=a.number("m"))
    if not sending.allowed(core, group, "directMessages"):
        raise errors.command_error("direct messages not allowed")
    if member.contact_id is not None:
        raise errors.command_error("member contact already exists")
    raise errors.not_modelled("direct chats opened from a group")
