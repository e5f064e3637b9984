"""What members do to the group, as the others receive it: roles, removal, blocking, leaving, deletion, its profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import deleting, groups, items, members, profiles, shapes
from simplexmcp.sandbox.roles import REMOVED, at_least
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Group, Member

__all__ = ["CHANGES"]

JsonObject = dict[str, Any]


def _member(core: SimulatedCore, group: Group, member_id: str) -> Member | None:
    return next((m for m in shapes.members_of(core.state, group.group_id) if m.member_id == member_id), None)


def _on_role(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    member = _member(core, group, body["memberId"])
    if member is None or not at_least(by.role, "admin") or not at_least(by.role, body["role"]):
        return
    old, role = member.role, body["role"]
    if old == role:
        return
    member.role = role
    own = member.category == "user"
    if own:
        event: JsonObject = {"type": "userRole", "role": role}
        text = f"changed your role to {role}"
    else:
        profile = core.state.profiles[member.profile_id].data
        event = {"type": "memberRole", "groupMemberId": member.member_key, "profile": profile, "role": role}
        text = f"changed role of {profiles.full_name(profile)} to {role}"
    item = items.group_event(core, group, event, text, by, ts=broker_time(ts), shared_id=body["shared"])
    core.emit_items(item)
    shown = shapes.group_member(core.state, member, conn=not own)
    core.emit(
        "memberRole",
        groupInfo=core.group_json(group),
        byMember=core.member_json(by),
        member=shown,
        fromRole=old,
        toRole=role,
    )


def _on_removed(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    member = _member(core, group, body["memberId"])
    if member is None or not at_least(by.role, "admin") or not at_least(by.role, member.role):
        return
    before = shapes.current_members(core.state, group.group_id)
    if member.category == "user":
        _own_removal(core, group, by, body, ts, before)
        return
    was_left = member.status in REMOVED
    member.status = "removed"
    member.updated = core.now()
    if not was_left:
        profile = core.state.profiles[member.profile_id].data
        event = {"type": "memberDeleted", "groupMemberId": member.member_key, "profile": profile}
        text = f"removed {profiles.full_name(profile)}"
        item = items.group_event(core, group, event, text, by, ts=broker_time(ts), shared_id=body["shared"])
        core.emit_items(item, members=before)
    core.emit(
        "deletedMember",
        groupInfo=core.group_json(group, members=before),
        byMember=core.member_json(by),
        deletedMember=core.member_json(member),
        withMessages=body["messages"],
    )
    conn = core.conn_of(member)
    if conn is not None and conn.status != "deleted":
        conn.status = "deleted"
        groups.queues_deleted(core, [conn])
    members.drop_if_unused(core, group, member)


def _own_removal(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float, before: int) -> None:
    own = core.membership(group)
    event = {"type": "userDeleted"}
    item = items.group_event(core, group, event, "removed you", by, ts=broker_time(ts), shared_id=body["shared"])
    core.emit_items(item, members=before)
    own.status = "removed"
    core.emit(
        "deletedMemberUser",
        groupInfo=core.group_json(group, members=before),
        member=core.member_json(by),
        withMessages=body["messages"],
    )
    deleting.close_group(core, group)


def _on_blocked(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    member = _member(core, group, body["memberId"])
    if member is None or member.category == "user" or not at_least(by.role, "moderator"):
        return
    member.blocked = body["blocked"]
    profile = core.state.profiles[member.profile_id].data
    event = {
        "type": "memberBlocked",
        "groupMemberId": member.member_key,
        "profile": profile,
        "blocked": member.blocked,
    }
    text = f"{'blocked' if member.blocked else 'unblocked'} {profiles.full_name(profile)}"
    core.emit_items(items.group_event(core, group, event, text, by, ts=broker_time(ts), shared_id=body["shared"]))
    core.emit(
        "memberBlockedForAll",
        groupInfo=core.group_json(group),
        byMember=core.member_json(by),
        member=core.member_json(member),
        blocked=member.blocked,
    )


def _on_left(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> None:
    before = shapes.current_members(core.state, group.group_id)
    event = {"type": "memberLeft"}
    item = items.group_event(core, group, event, "left", member, ts=broker_time(ts), shared_id=body["shared"])
    core.emit_items(item, members=before)
    member.status = "left"
    member.updated = core.now()
    core.emit("leftMember", groupInfo=core.group_json(group, members=before), member=core.member_json(member))
    conn = core.conn_of(member)
    if conn is not None:
        conn.status = "deleted"
        deleting.peer_gone(core, [conn])


def _on_group_deleted(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    if by.role != "owner":
        return
    before = shapes.current_members(core.state, group.group_id)
    event = {"type": "groupDeleted"}
    item = items.group_event(core, group, event, "deleted group", by, ts=broker_time(ts), shared_id=body["shared"])
    core.emit_items(item, members=before)
    core.membership(group).status = "deleted"
    core.emit("groupDeleted", groupInfo=core.group_json(group, members=before), member=core.member_json(by))
    deleting.close_group(core, group)


def _on_profile(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    if by.role != "owner" or group.profile == body["profile"]:
        return
    before = core.group_json(group)
    old = group.profile
    groups.set_profile(core, group, body["profile"])
    core.emit("groupUpdated", fromGroup=before, toGroup=core.group_json(group), member_=core.member_json(by))
    for item in groups.changed_items(core, group, old, by, shared=body["shared"], ts=broker_time(ts)):
        core.emit_items(item)


def _on_accepted(core: SimulatedCore, group: Group, by: Member, body: JsonObject, ts: float) -> None:
    """A moderator let us in after a review."""
    del ts
    own = core.membership(group)
    if own.status != "pending_review":
        return
    # The events still count the members from before.
    count = shapes.current_members(core.state, group.group_id)
    own.status = "connected"
    own.role = body["role"]
    core.emit_items(items.group_e2ee(core, group, by), members=count)
    event = {"type": "userAccepted"}
    core.emit_items(items.group_event(core, group, event, "accepted you", by), members=count)
    core.emit_items(items.group_event(core, group, event, "accepted you", by, scope=0), members=count)
    joined = core.group_json(group, members=count)
    core.emit("userJoinedGroup", groupInfo=joined, hostMember=core.member_json(by))


CHANGES: dict[str, Callable[[SimulatedCore, Group, Member, JsonObject, float], None]] = {
    "mem.role": _on_role,
    "mem.del": _on_removed,
    "mem.block": _on_blocked,
    "grp.leave": _on_left,
    "grp.del": _on_group_deleted,
    "grp.info": _on_profile,
    "accepted.member": _on_accepted,
}
"""Messages that change a group, by their kind."""
