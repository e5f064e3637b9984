"""What the program knows of a chat, read from the core's `chatInfo`. Pure.

A chat is named by its reference: `@4` (contact), `#15` (group), `#15(_support)` (the own conversation with a
group's admins), `#15(_support:44)` (member 44's conversation with the admins). A conversation with the admins
is a chat of its own here: an answer without the scope would be read by the whole group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CONTROL_KEY",
    "Chat",
    "chat_of",
    "chat_of_contact",
    "chat_of_group",
    "is_ref",
    "scope_of",
]

CONTROL_KEY = "simplexMcp"
"""Key of ours in a chat's custom data; `{"simplexMcp": {"control": true}}` marks the control chat."""

_REF = re.compile(r"(?:@|#)[1-9][0-9]{0,17}|#[1-9][0-9]{0,17}\(_support(?::[1-9][0-9]{0,17})?\)")
_NUMBERS = range(1, 10**18)
_BOTS = ("bot", "agent")

_MEMBER_STATES = {
    "connected": "connected",
    "complete": "connected",
    "creator": "connected",
    "introduced": "connecting",
    "intro-inv": "connecting",
    "accepted": "connecting",
    "announced": "connecting",
    "pending_approval": "pending",
    "pending_review": "pending",
    "invited": "invited",
    "left": "left",
    "removed": "removed",
    "deleted": "deleted",
    "rejected": "rejected",
}


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat at the moment it was read. `identity` is what must be equal between a card and what it
    allows."""

    ref: str
    kind: str
    """contact, bot, group, business or channel."""
    name: str
    """Display name, as the peer or the group's owner wrote it: foreign text."""
    state: str
    """connected, connecting, prepared, pending (admission), invited, card, disabled, deleted, left, removed,
    rejected or unknown."""
    role: str | None = None
    """Own role in a group."""
    identity: tuple[str, ...] = ()
    custom: dict[str, Any] = field(default_factory=dict, compare=False)
    info: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The core's contact or groupInfo. It can hold private keys: never logged, never shown."""

    @property
    def base(self) -> str:
        """The reference without a scope: `#15` for `#15(_support:44)`."""
        return self.ref.partition("(")[0]

    @property
    def scoped(self) -> bool:
        """True for a conversation with the admins of a group."""
        return "(" in self.ref

    @property
    def is_group(self) -> bool:
        """True for all chats of the core's type group: groups, businesses and channels."""
        return self.ref.startswith("#")

    @property
    def number(self) -> int:
        """The contact's or group's number. It is given to another chat after a deletion."""
        return int(self.base[1:])

    @property
    def is_control(self) -> bool:
        """True for the agent control chat, which no tool touches."""
        marker = self.custom.get(CONTROL_KEY)
        return isinstance(marker, dict) and marker.get("control") is True

    @property
    def title(self) -> str:
        """Kind, name and reference: `bot Helper (@4)`."""
        return f"{self.kind} {self.name} ({self.ref})"


def is_ref(text: str) -> bool:
    """True when `text` is a chat's reference."""
    return _REF.fullmatch(text) is not None


def chat_of(chat_info: Any) -> Chat | None:
    """The chat of a `chatInfo`; None for what is no chat of the agent (notes, requests, pending links,
    damaged data)."""
    if not isinstance(chat_info, dict):
        return None
    if chat_info.get("type") == "direct":
        return chat_of_contact(chat_info.get("contact"))
    if chat_info.get("type") == "group":
        return chat_of_group(chat_info.get("groupInfo"), scope_of(chat_info.get("groupChatScope")))
    return None


def scope_of(scope: Any) -> str | None:
    """The suffix of a reference for a `groupChatScope`: `(_support)`, `(_support:44)`, "" without one; None
    when it is of a kind that is not known."""
    if scope is None:
        return ""
    if not isinstance(scope, dict) or scope.get("type") != "memberSupport":
        return None
    member = scope.get("groupMember_")
    if member is None:
        return "(_support)"
    number = _number(member, "groupMemberId")
    return None if number is None else f"(_support:{number})"


def chat_of_contact(contact: Any) -> Chat | None:
    """The chat of a contact object; None when it is damaged."""
    number = _number(contact, "contactId")
    if number is None:
        return None
    profile = _object(contact, "profile")
    connection = _object(contact, "activeConn")
    kind = "bot" if profile.get("peerType") in _BOTS else "contact"
    name = _text(profile, "displayName") or _text(contact, "localDisplayName")
    return Chat(
        ref=f"@{number}",
        kind=kind,
        name=name,
        state=_contact_state(contact, connection, profile),
        identity=("contact", kind, name, _text(connection, "agentConnId"), _text(contact, "createdAt")),
        custom=_object(contact, "customData"),
        info=contact,
    )


def chat_of_group(group: Any, scope: str | None = "") -> Chat | None:
    """The chat of a groupInfo object, or its conversation `scope`; None when it is damaged or the scope is
    unknown."""
    number = _number(group, "groupId")
    if number is None or scope is None:
        return None
    profile = _object(group, "groupProfile")
    public = _object(profile, "publicGroup")
    membership = _object(group, "membership")
    kind = _group_kind(group, public)
    name = _text(profile, "displayName") or _text(group, "localDisplayName")
    role = _text(membership, "memberRole") or None
    return Chat(
        ref=f"#{number}{scope}",
        kind=kind,
        name=name,
        state=_group_state(group, membership),
        role=role,
        identity=(
            *("group", kind, name, role or ""),
            *(_text(membership, "memberId"), _text(group, "createdAt")),
            *(_text(public, "publicGroupId"), _text(public, "groupLink")),
        ),
        custom=_object(group, "customData"),
        info=group,
    )


def _contact_state(contact: dict[str, Any], connection: dict[str, Any], profile: dict[str, Any]) -> str:
    if contact.get("contactStatus") in ("deleted", "deletedByUser"):
        return "deleted"
    if not connection:
        if contact.get("preparedContact"):
            return "prepared"
        return "card" if profile.get("contactLink") else "unknown"
    status = _object(connection, "connStatus").get("type")
    if status == "deleted":
        return "deleted"
    errors = connection.get("authErrCounter")
    if isinstance(errors, int) and errors >= 10:
        return "disabled"
    return "connected" if status in ("ready", "sndReady") else "connecting"


def _group_state(group: dict[str, Any], membership: dict[str, Any]) -> str:
    status = membership.get("memberStatus")
    if status == "unknown" and isinstance(prepared := group.get("preparedGroup"), dict):
        return "connecting" if prepared.get("connLinkStartedConnection") else "prepared"
    return _MEMBER_STATES.get(status, "unknown") if isinstance(status, str) else "unknown"


def _group_kind(group: dict[str, Any], public: dict[str, Any]) -> str:
    if group.get("businessChat"):
        return "business"
    return "channel" if group.get("useRelays") is True and public.get("groupType") == "channel" else "group"


def _number(node: Any, key: str) -> int | None:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value in _NUMBERS else None


def _object(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""
