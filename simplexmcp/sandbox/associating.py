"""A member of a group who is a contact too: both sides find out a moment after they are connected in both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Contact, Member

__all__ = ["contact_ready", "member_ready", "on_probe"]

JsonObject = dict[str, Any]

DELAY = 1.2
"""Seconds until a side has found out."""


def contact_ready(core: SimulatedCore, contact: Contact) -> None:
    """A contact is connected: look among the members."""
    core.after("probe", DELAY, contact=contact.contact_id)


def member_ready(core: SimulatedCore, member: Member) -> None:
    """A member is connected: look among the contacts."""
    core.after("probe", DELAY, member=member.member_key)


def on_probe(core: SimulatedCore, data: JsonObject) -> None:
    """Join the records of a contact and of the members that are the same person."""
    if "contact" in data:
        contact = core.state.contacts.get(data["contact"])
        if contact is None:
            return
        first = True
        for member in list(core.state.members.values()):
            if _same_person(core, contact, member):
                _associate(core, contact, member, contact_takes=first)
                first = False
        return
    found = core.state.members.get(data["member"])
    for contact in core.state.contacts.values():
        if found is not None and _same_person(core, contact, found):
            _associate(core, contact, found, contact_takes=False)
            return


def _same_person(core: SimulatedCore, contact: Contact, member: Member) -> bool:
    state = core.state
    if member.category == "user" or member.contact_id is not None or contact.status != "active":
        return False
    if state.groups[member.group_id].user_id != contact.user_id:
        return False
    one, other = core.conn_of(contact), core.conn_of(member)
    if one is None or other is None or one.peer is None or other.peer is None:
        return False
    if one.status not in ("ready", "sndReady") or other.status != "ready" or member.status == "left":
        return False
    if one.incognito_profile is not None or other.incognito_profile is not None or one.peer[0] != other.peer[0]:
        return False
    names = [
        (state.profiles[row.profile_id].data["displayName"], state.profiles[row.profile_id].data.get("fullName", ""))
        for row in (contact, member)
    ]
    return names[0] == names[1]


def _associate(core: SimulatedCore, contact: Contact, member: Member, *, contact_takes: bool) -> None:
    """One of the two takes over the profile and the local name of the other."""
    before = {"contact": core.contact_json(contact), "member": core.member_json(member)}
    group = core.state.groups[member.group_id]
    member.contact_id = contact.contact_id
    winner, loser = (member, contact) if contact_takes else (contact, member)
    old_profile, old_name = loser.profile_id, loser.name
    loser.profile_id, loser.name = winner.profile_id, winner.name
    core.drop_profile(old_profile)
    core.free_name(old_name)
    core.emit(
        "contactAndMemberAssociated",
        contact=before["contact"],
        groupInfo=core.group_json(group),
        member=before["member"],
        updatedContact=core.contact_json(contact),
    )
