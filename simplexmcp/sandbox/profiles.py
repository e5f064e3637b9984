"""Profiles: random ones, changes of the own profile, and what is sent of a profile to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors
from simplexmcp.sandbox.names import valid_name
from simplexmcp.sandbox.preferences import full_contact_preferences

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Connection

__all__ = [
    "contact_profile",
    "full_name",
    "member_profile",
    "own_profile",
    "plain",
    "random_profile",
    "update",
]

JsonObject = dict[str, Any]

_FIRST = ("Early", "Quiet", "Bright", "Steady", "Gentle", "Northern", "Patient", "Copper", "Hidden", "Misty")
_SECOND = ("Boost", "Harbor", "Meadow", "Lantern", "Ridge", "Compass", "Willow", "Anchor", "Summit", "Brook")


def random_profile(core: SimulatedCore) -> JsonObject:
    """The two words of an incognito profile."""
    a, b = core.network.random_bytes(2)
    return {"displayName": _FIRST[a % len(_FIRST)] + _SECOND[b % len(_SECOND)], "fullName": ""}


def own_profile(core: SimulatedCore, conn: Connection | None = None) -> JsonObject:
    """The user's profile, or the incognito one of this connection."""
    if conn is not None and conn.incognito_profile is not None:
        return core.state.profiles[conn.incognito_profile].data
    return core.state.profiles[core.user.profile_id].data


def contact_profile(core: SimulatedCore, conn: Connection | None, *, kind: bool) -> JsonObject:
    """What a contact gets: complete preferences. A *request* leaves the peerType out (`kind` False)."""
    data = dict(own_profile(core, conn))
    incognito = conn is not None and conn.incognito_profile is not None
    if not incognito or "preferences" not in data:
        data["preferences"] = full_contact_preferences(None if incognito else data.get("preferences"))
    if not kind:
        data.pop("peerType", None)
    return data


def member_profile(core: SimulatedCore, conn: Connection | None, *, kind: bool) -> JsonObject:
    """What members of a group get: no preferences, no address; on joining no peerType either (`kind` False)."""
    data = own_profile(core, conn)
    hidden = {"preferences", "contactLink"} | (set() if kind else {"peerType"})
    return {key: value for key, value in data.items() if key not in hidden}


def plain(data: JsonObject) -> JsonObject:
    """A PROFILE inside an event item."""
    return dict(data)


def full_name(data: JsonObject) -> str:
    """How an event item names a person: `Carol (Carol C)`."""
    name: str = data["displayName"]
    full = data.get("fullName", "")
    return f"{name} ({full})" if full and full != name else name


def update(core: SimulatedCore, new: JsonObject) -> Event:
    """A new profile of the user; contacts that are connected get it at once, groups with the next message."""
    if valid_name(new["displayName"]) != new["displayName"] or not new["displayName"]:
        raise errors.error(
            "invalidDisplayName", displayName=new["displayName"], validName=valid_name(new["displayName"])
        )
    user = core.user
    state = core.state
    old = state.profiles[user.profile_id].data
    if old == new:
        return core.event("userProfileNoChange")
    if new["displayName"] != old["displayName"]:
        key = f"{user.user_id}:{user.name}"
        name = core.take_name(new["displayName"])
        state.names.pop(key, None)
        user.name = name
        state.contacts[user.contact_id].name = name
        for m in state.members.values():
            if m.category == "user" and state.groups[m.group_id].user_id == user.user_id:
                m.name = name
    state.profiles[user.profile_id].data = new
    user.profile_updated = core.now()
    sent = _tell_contacts(core)
    summary = {"updateSuccesses": sent, "updateFailures": 0, "changedContacts": []}
    if sent:
        core.emit_later("newChatItems", chatItems=[])
    return core.event("userProfileUpdated", fromProfile=old, toProfile=new, updateSummary=summary)


def _tell_contacts(core: SimulatedCore) -> int:
    sent = 0
    for row in core.state.contacts.values():
        conn = core.conn_of(row)
        if conn is None or row.status != "active" or conn.status not in ("ready", "sndReady"):
            continue
        if row.user_id == core.user.user_id and conn.incognito_profile is None:
            core.send(conn, [{"x": "info", "profile": contact_profile(core, conn, kind=True)}])
            sent += 1
    return sent
