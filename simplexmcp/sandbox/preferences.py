"""Features of chats: defaults, what two contacts agree on, and the texts of the items that tell about them."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BUSINESS_PREFERENCES",
    "CONTACT_FEATURES",
    "GROUP_FEATURES",
    "contact_feature_text",
    "full_contact_preferences",
    "full_group_preferences",
    "group_feature_text",
    "merged_preferences",
    "prepared_business_preferences",
]

JsonObject = dict[str, Any]

_CONTACT_DEFAULTS: JsonObject = {
    "timedMessages": {"allow": "yes"},
    "fullDelete": {"allow": "no"},
    "reactions": {"allow": "yes"},
    "voice": {"allow": "yes"},
    "files": {"allow": "always"},
    "calls": {"allow": "yes"},
    "sessions": {"allow": "no"},
}

CONTACT_FEATURES = {
    "timedMessages": "Disappearing messages",
    "fullDelete": "Full deletion",
    "reactions": "Message reactions",
    "voice": "Voice messages",
    "calls": "Audio/video calls",
}
"""Features of a contact that get an item, in the order of the items (`files` and `sessions` get none)."""

_GROUP_DEFAULTS: JsonObject = {
    "timedMessages": {"enable": "off", "ttl": 86400},
    "directMessages": {"enable": "off"},
    "fullDelete": {"enable": "off"},
    "reactions": {"enable": "on"},
    "voice": {"enable": "on"},
    "files": {"enable": "on"},
    "simplexLinks": {"enable": "on"},
    "reports": {"enable": "on"},
    "history": {"enable": "off"},
    "support": {"enable": "on"},
    "sessions": {"enable": "off"},
    "comments": {"enable": "off"},
}

GROUP_FEATURES = {
    "timedMessages": "Disappearing messages",
    "directMessages": "Direct messages",
    "fullDelete": "Full deletion",
    "reactions": "Message reactions",
    "voice": "Voice messages",
    "files": "Files and media",
    "simplexLinks": "SimpleX links",
    "reports": "Member reports",
    "history": "Recent history",
    "support": "Chat with admins",
}
"""Features of a group that get an item, in the order of the items."""


def full_contact_preferences(preferences: JsonObject | None) -> JsonObject:
    """A profile's preferences over the defaults (`fullPreferences` of a user)."""
    own = preferences or {}
    out = {name: own.get(name, default) for name, default in _CONTACT_DEFAULTS.items()}
    out["commands"] = own.get("commands", [])
    return out


def full_group_preferences(preferences: JsonObject | None) -> JsonObject:
    """A group's preferences over the defaults."""
    own = preferences or {}
    out = {name: {**own[name]} if name in own else default for name, default in _GROUP_DEFAULTS.items()}
    out["commands"] = own.get("commands", [])
    return out


BUSINESS_PREFERENCES: JsonObject = {
    "timedMessages": {"enable": "off"},
    "directMessages": {"enable": "off"},
    "fullDelete": {"enable": "on", "role": "moderator"},
    "reactions": {"enable": "on"},
    "voice": {"enable": "off"},
    "files": {"enable": "on"},
    "simplexLinks": {"enable": "on"},
    "reports": {"enable": "off"},
    "history": {"enable": "on"},
    "support": {"enable": "on"},
    "sessions": {"enable": "on"},
    "comments": {"enable": "off"},
}
"""The group preferences with which a business opens a chat for a customer."""


def prepared_business_preferences(preferences: JsonObject | None) -> JsonObject:
    """What a customer sees of a business chat before it is connected: made from the business's profile."""
    theirs = full_contact_preferences(preferences)

    def onoff(name: str) -> JsonObject:
        return {"enable": "off" if theirs[name]["allow"] == "no" else "on"}

    return {
        "timedMessages": onoff("timedMessages"),
        "directMessages": {"enable": "off"},
        "fullDelete": onoff("fullDelete"),
        "reactions": onoff("reactions"),
        "voice": onoff("voice"),
        "files": onoff("files"),
        "simplexLinks": {"enable": "on"},
        "reports": {"enable": "off"},
        "history": {"enable": "on"},
        "support": {"enable": "on"},
        "sessions": onoff("sessions"),
        "comments": {"enable": "off"},
        "commands": theirs["commands"],
    }


def merged_preferences(mine: JsonObject | None, theirs: JsonObject | None, *, own: bool = False) -> JsonObject:
    """`mergedPreferences` of a contact; `own` when the user's side has preferences of its own for it."""
    user, contact = full_contact_preferences(mine), full_contact_preferences(theirs)
    out: JsonObject = {}
    for name in _CONTACT_DEFAULTS:
        asymmetric = name != "timedMessages"
        out[name] = {
            "enabled": _enabled(user[name]["allow"], contact[name]["allow"], asymmetric),
            "userPreference": {"type": "contact" if own else "user", "preference": user[name]},
            "contactPreference": contact[name],
        }
    if "commands" in (theirs or {}):
        out["commands"] = contact["commands"]
    return out


def _enabled(mine: str, theirs: str, asymmetric: bool) -> JsonObject:
    if mine == "no" and theirs == "no":
        return {"forUser": False, "forContact": False}
    if mine == "no":
        return {"forUser": asymmetric and theirs == "always", "forContact": False}
    if theirs == "no":
        return {"forUser": False, "forContact": asymmetric and mine == "always"}
    return {"forUser": True, "forContact": True}


def contact_feature_text(name: str, enabled: JsonObject) -> str:
    """The text of a contact's feature item."""
    if enabled["forUser"] and enabled["forContact"]:
        state = "allowed" if name == "timedMessages" else "enabled"
    elif enabled["forUser"]:
        state = "enabled for you"
    elif enabled["forContact"]:
        state = "enabled for contact"
    else:
        state = "off"
    return f"{CONTACT_FEATURES[name]}: {state}"


def group_feature_text(name: str, preference: JsonObject) -> str:
    """The text of a group's feature item."""
    text = f"{GROUP_FEATURES[name]}: {preference['enable']}"
    if preference["enable"] == "on" and (role := preference.get("role")):
        text += f" for {role}s"
    return text
