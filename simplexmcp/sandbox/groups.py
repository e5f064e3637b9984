"""Groups of the own user: making one, its profile, its custom data, its link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, items, shapes
from simplexmcp.sandbox.arguments import preferences_argument
from simplexmcp.sandbox.network import LinkEntry
from simplexmcp.sandbox.preferences import GROUP_FEATURES, full_group_preferences
from simplexmcp.sandbox.roles import at_least, require_role
from simplexmcp.sandbox.state import Connection, Group, LinkRow, Member, free_id
from simplexmcp.sandbox.targets import full_link, short_link
from simplexmcp.sandbox.users import check_name

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Item

__all__ = [
    "create_link",
    "delete_link",
    "drop_link",
    "get_link",
    "group_profile_argument",
    "link_of",
    "list_groups",
    "members_to_tell",
    "new_group",
    "set_custom",
    "set_link_role",
    "update_group",
]

JsonObject = dict[str, Any]

_TEXTS = ("shortDescr", "description", "image")
_OBJECTS = ("groupPreferences", "memberAdmission")


def group_profile_argument(value: Any) -> JsonObject:
    """A GROUPPROFILE from a command, with only the known keys."""
    if not isinstance(value, dict):
        raise errors.parse_error()
    out: JsonObject = {}
    for key in ("displayName", "fullName"):
        if not isinstance(value.get(key), str):
            raise errors.parse_error()
        out[key] = value[key]
    for keys, kind in ((_TEXTS, str), (_OBJECTS, dict)):
        for key in keys:
            if (item := value.get(key)) is not None:
                if not isinstance(item, kind):
                    raise errors.parse_error()
                out[key] = item
    if "groupPreferences" in out:
        out["groupPreferences"] = preferences_argument(out["groupPreferences"], "enable")
    if out.get("memberAdmission", {}).get("review") not in (None, "all"):
        raise errors.parse_error()
    return out


def list_groups(core: SimulatedCore, a: Arguments) -> Event:
    """`/_groups U [@C] [SEARCH]`: all groups, the left ones too. The contact filter does nothing in this version."""
    needle = a.text("search").casefold()
    mine = [g for g in core.state.groups.values() if g.user_id == core.user.user_id]
    found = [g for g in mine if not needle or needle in _searched(g)]
    return core.event("groupsList", groups=[core.group_json(g) for g in found])


def _searched(group: Group) -> str:
    keys = ("displayName", "fullName", "shortDescr", "description")
    return " ".join([group.name, *(group.profile.get(key, "") for key in keys)]).casefold()


def new_group(core: SimulatedCore, a: Arguments) -> Event:
    """`/_group U GROUPPROFILE`."""
    if a.on("incognito"):
        raise errors.not_modelled("/_group incognito=on")
    profile = group_profile_argument(a.json())
    check_name(profile["displayName"])
    group = add_group(core, profile, core.now())
    add_membership(core, group, core.network.new_id(), role="owner", status="creator")
    core.emit_items(items.banner(core, f"#{group.group_id}"))
    core.emit_items(items.group_e2ee(core, group, None))
    response = core.event("groupCreated", groupInfo=core.group_json(group))
    core.emit_items_later(*items.group_features(core, group, None))
    return response


def add_group(core: SimulatedCore, profile: JsonObject, now: str) -> Group:
    """A new row; its membership is added next."""
    number = free_id(core.state.groups)
    name = core.take_name(profile["displayName"])
    group = Group(number, core.user.user_id, name, profile, 0, now, now, now, now)
    core.state.groups[number] = group
    return group


def add_membership(core: SimulatedCore, group: Group, member_id: str, *, role: str, status: str) -> Member:
    """The own membership of a group that the user made."""
    row = add_member(core, group, member_id, role=role, status=status, category="user", profile=core.user.profile_id)
    row.name = core.user.name
    row.invited_by = {"type": "user"}
    group.membership = row.member_key
    return row


def add_member(
    core: SimulatedCore, group: Group, member_id: str, *, role: str, status: str, category: str, profile: int
) -> Member:
    """A new member row with the next place in the group; its name is the caller's business."""
    now = core.now() if category != "user" else group.created
    row = Member(
        member_key=free_id(core.state.members),
        group_id=group.group_id,
        index=group.next_index,
        member_id=member_id,
        role=role,
        category=category,
        status=status,
        name="",
        profile_id=profile,
        created=now,
        updated=now,
    )
    group.next_index += 1
    core.state.members[row.member_key] = row
    return row


def members_to_tell(core: SimulatedCore, group: Group) -> list[Member]:
    """Members with a connection that is ready, in the order of their ids."""
    out: list[Member] = []
    for row in shapes.members_of(core.state, group.group_id):
        conn = core.conn_of(row)
        if row.category != "user" and row.status in shapes.CURRENT and conn is not None and conn.status == "ready":
            out.append(row)
    return out


def tell_members(core: SimulatedCore, group: Group, body: JsonObject) -> None:
    """Send one message to all members that can get it."""
    for row in members_to_tell(core, group):
        conn = core.conn_of(row)
        assert conn is not None
        core.send(conn, [body])


def update_group(core: SimulatedCore, a: Arguments) -> Event:
    """`/_group_profile #G GROUPPROFILE`: owners only; members get it."""
    group = core.group(a.number("g"))
    profile = group_profile_argument(a.json())
    require_role(core, group, "owner")
    check_name(profile["displayName"])
    before = core.group_json(group)
    old = group.profile
    set_profile(core, group, profile)
    shared = core.network.new_id()
    tell_members(core, group, {"x": "grp.info", "profile": profile, "shared": shared})
    _republish(core, group)
    response = core.event("groupUpdated", fromGroup=before, toGroup=core.group_json(group), msgSigned=False)
    for row in changed_items(core, group, old, None, shared=shared, ts=None):
        core.emit_items_later(row)
    return response


def set_profile(core: SimulatedCore, group: Group, profile: JsonObject) -> None:
    """Store a group's new profile; a new name gets a new local name."""
    if profile["displayName"] != group.profile["displayName"]:
        old = group.name
        group.name = core.take_name(profile["displayName"])
        core.free_name(old)
    group.profile = profile
    group.updated = core.now()


def changed_items(
    core: SimulatedCore, group: Group, old: JsonObject, member: Member | None, *, shared: str | None, ts: str | None
) -> list[Item]:
    """The items that tell what changed in a group's profile, from `member` or (None) oneself."""
    out: list[Item] = []
    keys = ("displayName", "fullName", "shortDescr", "description", "image", "memberAdmission")
    if any(old.get(key) != group.profile.get(key) for key in keys):
        event = {"type": "groupUpdated", "groupProfile": group.profile}
        text = "group profile updated"
        out.append(items.group_event(core, group, event, text, member, shared_id=shared, ts=ts))
    before = full_group_preferences(old.get("groupPreferences"))
    after = full_group_preferences(group.profile.get("groupPreferences"))
    out += [items.group_feature(core, group, name, member) for name in GROUP_FEATURES if before[name] != after[name]]
    return out


def set_custom(core: SimulatedCore, a: Arguments) -> Event:
    """`/_set custom REF [JSON]`: replaces the whole object, or clears it."""
    ref = a.text("ref")
    data = a.object() if a.has("json") else None
    row = core.group(int(ref[1:])) if ref[0] == "#" else core.contact(int(ref[1:]))
    row.custom_data = data
    row.updated = core.now()
    return {"type": "cmdOk", "user_": core.user_json()}


# The group's link


def link_of(core: SimulatedCore, group: Group) -> LinkRow | None:
    """The group's link, if it has one."""
    return next((row for row in core.state.links.values() if row.group_id == group.group_id), None)


def create_link(core: SimulatedCore, a: Arguments) -> Event:
    """`/_create link #G ROLE`."""
    group = core.group(a.number("g"))
    role = a.text("role", "member")
    require_role(core, group, "admin")
    _check_link_role(core, group, role)
    core.network.require_relay()
    if link_of(core, group) is not None:
        raise errors.store_error("duplicateGroupLink", groupInfo=core.group_json(group))
    network = core.network
    group_link_id = network.new_key(16) + "=="
    queue, key = network.new_key(24), network.new_key()
    row = LinkRow(
        link_id=free_id(core.state.links),
        user_id=core.user.user_id,
        conn_id=add_link_connection(core).conn_id,
        full=full_link("contact", queue, network.new_key(), group_link_id=group_link_id),
        short=short_link("g", key),
        role=role,
        group_id=group.group_id,
        group_link_id=group_link_id,
    )
    core.state.links[row.link_id] = row
    _publish(core, group, row)
    return core.event("groupLinkCreated", groupInfo=core.group_json(group), groupLink=shapes.group_link(row))


def add_link_connection(core: SimulatedCore) -> Connection:
    """The connection row that each link and address takes."""
    conn = Connection(
        conn_id=free_id(core.state.connections),
        agent_id=core.network.new_id(),
        user_id=core.user.user_id,
        kind="user_contact",
        status="new",
        created=core.now(),
    )
    core.state.connections[conn.conn_id] = conn
    return conn


def _publish(core: SimulatedCore, group: Group, row: LinkRow) -> None:
    agent_id = core.state.connections[row.conn_id].agent_id
    data = {"groupProfile": group.profile}
    core.network.publish(LinkEntry(row.full, row.short, "group", core.name, agent_id, data))


def _republish(core: SimulatedCore, group: Group) -> None:
    row = link_of(core, group)
    entry = core.network.find_link(row.full) if row is not None else None
    if entry is not None:
        entry.data = {**entry.data, "groupProfile": group.profile}


def _check_link_role(core: SimulatedCore, group: Group, role: str) -> None:
    if role not in ("member", "observer") and at_least(role, "member"):
        raise errors.error("groupMemberInitialRole", groupInfo=core.group_json(group), initialRole=role)


def _need_link(core: SimulatedCore, group: Group) -> LinkRow:
    if (row := link_of(core, group)) is None:
        raise errors.store_error("groupLinkNotFound", groupInfo=core.group_json(group))
    return row


def get_link(core: SimulatedCore, a: Arguments) -> Event:
    """`/_get link #G`."""
    group = core.group(a.number("g"))
    row = _need_link(core, group)
    return core.event("groupLink", groupInfo=core.group_json(group), groupLink=shapes.group_link(row))


def set_link_role(core: SimulatedCore, a: Arguments) -> Event:
    """`/_set link role #G ROLE`: for those who join from now on."""
    group = core.group(a.number("g"))
    require_role(core, group, "admin")
    row = _need_link(core, group)
    _check_link_role(core, group, a.text("role"))
    row.role = a.text("role")
    return core.event("groupLink", groupInfo=core.group_json(group), groupLink=shapes.group_link(row))


def delete_link(core: SimulatedCore, a: Arguments) -> Event:
    """`/_delete link #G`: needs no role."""
    group = core.group(a.number("g"))
    drop_link(core, _need_link(core, group))
    return core.event("groupLinkDeleted", groupInfo=core.group_json(group))


def drop_link(core: SimulatedCore, row: LinkRow) -> None:
    """Delete a link or address and its connection; members that came by it lose the mark."""
    state = core.state
    core.network.withdraw(row.full)
    del state.links[row.link_id]
    conn = state.connections.pop(row.conn_id)
    for other in state.connections.values():
        if other.via_link == row.link_id:
            other.via_link = None
    queues_deleted(core, [conn])


def queues_deleted(core: SimulatedCore, gone: list[Connection], *, own: bool = True) -> None:
    """The routine events after connections were deleted."""
    if not gone:
        return
    queues = [
        {"agentConnId": c.agent_id, "server": errors.SERVER, "agentQueueId": core.network.new_key(24)} for c in gone
    ]
    if own:
        core.emit_raw_later({"type": "agentRcvQueuesDeleted", "deletedRcvQueues": queues})
    core.emit_raw_later({"type": "agentConnsDeleted", "agentConnIds": [c.agent_id for c in gone]})
