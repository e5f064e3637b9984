"""What one simulated core remembers, as plain dataclasses: the tables of its database.

Ids follow the real database: chat item ids are never used again, all others are "highest in use plus one". Times are
ISO texts as they go over the wire. Members, contacts and groups point at profiles and connections by id.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BANNER_TIME",
    "Connection",
    "Contact",
    "ContactRequest",
    "CoreState",
    "FileRow",
    "Group",
    "Item",
    "LinkRow",
    "Member",
    "Profile",
    "User",
]

BANNER_TIME = "1970-01-01T00:00:00Z"

JsonObject = dict[str, Any]


@dataclass(slots=True)
class Profile:
    """A row of contact profiles: `data` is the wire PROFILE without its id."""

    profile_id: int
    data: JsonObject
    incognito: bool = False


@dataclass(slots=True)
class User:
    """A user profile of the core."""

    user_id: int
    contact_id: int
    profile_id: int
    name: str
    order: int
    notes_id: int
    created: str
    profile_updated: str | None = None


@dataclass(slots=True)
class Connection:
    """One side of a connection; `peer` is the other side as [core, agentConnId] once it is known."""

    conn_id: int
    agent_id: str
    user_id: int
    kind: str  # contact | member | user_contact
    status: str
    created: str
    initiated: bool = False
    entity_id: int | None = None
    peer: list[str] | None = None
    level: int = 0
    via_link: int | None = None
    via_contact: int | None = None
    via_group_link: bool = False
    group_link_id: str | None = None
    x_contact_id: str | None = None
    incognito_profile: int | None = None
    pq_support: bool = False
    pq_encryption: bool = False
    pq_snd: bool | None = None
    pq_rcv: bool | None = None
    chat_version: int = 19
    peer_version: int = 19
    link: JsonObject | None = None  # connLinkInv of an invitation
    target: str | None = None  # full link that was connected to
    via_contact_uri: bool = False
    auth_errors: int = 0
    updated: str = ""


@dataclass(slots=True)
class Contact:
    """A contact: connected, prepared, a card, or deleted by its peer."""

    contact_id: int
    user_id: int
    name: str
    profile_id: int
    created: str
    updated: str
    chat_ts: str
    status: str = "active"
    used: bool = True
    conn_id: int | None = None
    prepared: JsonObject | None = None
    request_id: int | None = None
    custom_data: JsonObject | None = None
    group_invitation_sent: bool = False
    deleted_chat: bool = False
    via_address: str | None = None  # full link of the address it was found by
    incognito: bool | None = None  # choice of a prepared connection that was tried


@dataclass(slots=True)
class Member:
    """A member of a group, also the own membership (category `user`)."""

    member_key: int  # groupMemberId
    group_id: int
    index: int
    member_id: str
    role: str
    category: str  # user | invitee | host | pre | post
    status: str
    name: str
    profile_id: int
    created: str
    updated: str
    invited_by: JsonObject = field(default_factory=lambda: {"type": "unknown"})
    invited_by_key: int | None = None
    conn_id: int | None = None
    contact_id: int | None = None
    max_version: int = 19
    blocked: bool = False
    support: JsonObject | None = None
    forwards: list[int] = field(default_factory=list)  # members introduced to this one that are not connected yet


@dataclass(slots=True)
class Group:
    """A group, as the own user sees it."""

    group_id: int
    user_id: int
    name: str
    profile: JsonObject
    membership: int
    created: str
    updated: str
    chat_ts: str
    profile_sent: str
    business: JsonObject | None = None
    prepared: JsonObject | None = None
    link_uri: str | None = None
    custom_data: JsonObject | None = None
    link_group_id: str | None = None  # groupLinkId of the link it was joined by
    attention: int = 0
    next_index: int = 0


@dataclass(slots=True)
class Item:
    """A chat item. `chat` is its reference (`@4`, `#1`); `scope` None, 0 (own support chat) or a groupMemberId."""

    item_id: int
    chat: str
    received: bool
    ts: str
    created: str
    updated: str
    text: str
    status: JsonObject
    content: JsonObject
    scope: int | None = None
    member: int | None = None
    shared_id: str | None = None
    mentions: dict[str, str] = field(default_factory=dict)
    formatted: list[JsonObject] | None = None
    quote: JsonObject | None = None
    reactions: list[list[str]] = field(default_factory=list)  # [reaction, memberId or "me" or "peer"]
    deleted: JsonObject | None = None
    edited: bool = False
    live: bool | None = None
    user_mention: bool = False
    has_link: bool = False
    forwarded_by: int | None = None
    as_group: bool = False
    via_proxy: bool | None = None
    viewed: str | None = None
    versions: list[JsonObject] = field(default_factory=list)
    delivery: dict[str, str] = field(default_factory=dict)  # groupMemberId → new | sent | rcvd | error
    file: int | None = None  # fileId


@dataclass(slots=True)
class LinkRow:
    """A contact address or a group link of the user."""

    link_id: int
    user_id: int
    conn_id: int
    full: str
    short: str
    role: str = "member"
    group_id: int | None = None
    group_link_id: str | None = None
    settings: JsonObject = field(default_factory=lambda: {"businessAddress": False})
    large: bool = True


@dataclass(slots=True)
class ContactRequest:
    """A request that came through the own address."""

    request_id: int
    user_id: int
    invitation_id: str
    link_id: int
    name: str
    profile_id: int
    peer: list[str]
    x_contact_id: str
    created: str
    updated: str
    contact_id: int | None = None
    pq: bool = True
    message_id: str | None = None
    open: bool = True


@dataclass(slots=True)
class FileRow:
    """A file of a message, sent or received; `status` is the wire's fileStatus."""

    file_id: int
    user_id: int
    sent: bool
    name: str
    size: int  # bytes, as announced
    status: JsonObject
    path: str | None = None
    item_id: int | None = None  # None: an upload whose message was refused
    member: int | None = None
    agent_id: str | None = None  # the upload's name, or that of the download
    cancelled: bool = False
    # of a received one
    transfer: str = "new"  # new | accepted | connected | complete | cancelled
    approved: bool = False
    description: str = ""  # as it came, or as it was sent to the first recipient; "" before
    description_id: int = 0
    upload: str | None = None  # name of the upload on the servers
    work: str | None = None  # the half file
    # of a sent one
    private_description: str | None = None
    recipients: list[JsonObject] = field(default_factory=list)


Row = TypeVar("Row")


@dataclass
class CoreState:
    """The database of one core and what of it survives a restart."""

    name: str
    users: dict[int, User] = field(default_factory=dict)
    active_user: int | None = None
    profiles: dict[int, Profile] = field(default_factory=dict)
    contacts: dict[int, Contact] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    connections: dict[int, Connection] = field(default_factory=dict)
    links: dict[int, LinkRow] = field(default_factory=dict)
    requests: dict[int, ContactRequest] = field(default_factory=dict)
    items: dict[int, Item] = field(default_factory=dict)
    files: dict[int, FileRow] = field(default_factory=dict)
    names: dict[str, list[Any]] = field(default_factory=dict)  # "USER:local name" → [base, suffix]
    last_item: int = 0
    last_version: int = 0
    last_description: int = 0
    servers: JsonObject = field(default_factory=dict)
    invitations: JsonObject = field(default_factory=dict)  # groupId → who invited, while not answered
    clock: float = 0.0

    def to_json(self) -> JsonObject:
        """Plain JSON: tables as lists of rows. It shares its values with the state: write it out at once."""
        out: JsonObject = {}
        for f in fields(self):
            value = getattr(self, f.name)
            out[f.name] = _rows_json(f.name, value.values()) if f.name in _TABLES else value
        return out

    @classmethod
    def from_json(cls, data: JsonObject) -> CoreState:
        """The state that `to_json` wrote."""
        state = cls(data["name"])
        for key, value in data.items():
            if key in _TABLES:
                kind, id_name = _TABLES[key]
                setattr(state, key, {row[id_name]: kind(**row) for row in value})
            else:
                setattr(state, key, value)
        return state


_TABLES: dict[str, tuple[Any, str]] = {
    "users": (User, "user_id"),
    "profiles": (Profile, "profile_id"),
    "contacts": (Contact, "contact_id"),
    "groups": (Group, "group_id"),
    "members": (Member, "member_key"),
    "connections": (Connection, "conn_id"),
    "links": (LinkRow, "link_id"),
    "requests": (ContactRequest, "request_id"),
    "items": (Item, "item_id"),
    "files": (FileRow, "file_id"),
}


def _rows_json(table: str, rows: Iterable[Any]) -> list[JsonObject]:
    names = [f.name for f in fields(_TABLES[table][0])]
    values = attrgetter(*names)
    return [dict(zip(names, values(row), strict=True)) for row in rows]


def free_id(table: dict[int, Any]) -> int:
    """The id SQLite would give to the next row: the highest in use plus one."""
    return max(table, default=0) + 1
