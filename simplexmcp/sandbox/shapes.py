"""Builds the objects that go over the wire from the rows of a core's state. Optional keys are left out, never null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox.preferences import (
    full_contact_preferences,
    full_group_preferences,
    merged_preferences,
)

if TYPE_CHECKING:
    from simplexmcp.sandbox.state import (
        Connection,
        Contact,
        ContactRequest,
        CoreState,
        Group,
        LinkRow,
        Member,
        Profile,
        User,
    )

__all__ = [
    "CURRENT",
    "ZERO_STATS",
    "chat_info",
    "connection",
    "contact",
    "contact_link",
    "contact_request",
    "current_members",
    "group_info",
    "group_link",
    "group_member",
    "local_profile",
    "pending_connection",
    "user",
]

JsonObject = dict[str, Any]

CURRENT = frozenset({"introduced", "intro-inv", "accepted", "announced", "connected", "complete", "creator"})
"""Member statuses that count as a current member."""

ZERO_STATS: JsonObject = {
    "unreadCount": 0,
    "unreadMentions": 0,
    "reportsCount": 0,
    "minUnreadItemId": 0,
    "unreadChat": False,
}

_SETTINGS: JsonObject = {"enableNtfs": "all", "favorite": False}


def local_profile(row: Profile) -> JsonObject:
    """LOCALPROFILE."""
    return {"profileId": row.profile_id, **row.data, "localAlias": ""}


def user(state: CoreState, row: User) -> JsonObject:
    """USER."""
    profile = state.profiles[row.profile_id]
    out: JsonObject = {
        "userId": row.user_id,
        "agentUserId": str(row.user_id),
        "userContactId": row.contact_id,
        "localDisplayName": row.name,
        "profile": local_profile(profile),
        "fullPreferences": full_contact_preferences(profile.data.get("preferences")),
        "activeUser": state.active_user == row.user_id,
        "activeOrder": row.order,
        "showNtfs": True,
        "sendRcptsContacts": True,
        "sendRcptsSmallGroups": True,
        "autoAcceptMemberContacts": False,
        "userChatRelay": False,
        "clientService": False,
    }
    if row.profile_updated is not None:
        out["userMemberProfileUpdatedAt"] = row.profile_updated
    return out


def connection(row: Connection) -> JsonObject:
    """CONNECTION."""
    out: JsonObject = {
        "connId": row.conn_id,
        "agentConnId": row.agent_id,
        "connChatVersion": row.chat_version,
        "peerChatVRange": {"minVersion": 1, "maxVersion": row.peer_version},
        "connLevel": row.level,
        "viaGroupLink": row.via_group_link,
        "connType": row.kind,
        "connStatus": {"type": row.status},
        "contactConnInitiated": row.initiated,
        "localAlias": "",
        "pqSupport": row.pq_support,
        "pqEncryption": row.pq_encryption,
        "authErrCounter": row.auth_errors,
        "quotaErrCounter": 0,
        "createdAt": row.created,
    }
    optional = {
        "entityId": row.entity_id,
        "viaUserContactLink": row.via_link,
        "viaContact": row.via_contact,
        "groupLinkId": row.group_link_id,
        "xContactId": row.x_contact_id,
        "customUserProfileId": row.incognito_profile,
        "pqSndEnabled": row.pq_snd,
        "pqRcvEnabled": row.pq_rcv,
    }
    out.update((key, value) for key, value in optional.items() if value is not None)
    return out


def pending_connection(row: Connection) -> JsonObject:
    """PCC: a connection that has no contact or group yet."""
    out: JsonObject = {
        "pccConnId": row.conn_id,
        "pccAgentConnId": row.agent_id,
        "pccConnStatus": {"type": row.status},
        "viaContactUri": row.via_contact_uri,
        "localAlias": "",
        "createdAt": row.created,
        "updatedAt": row.updated or row.created,
    }
    if row.group_link_id is not None:
        out["groupLinkId"] = row.group_link_id
    if row.incognito_profile is not None:
        out["customUserProfileId"] = row.incognito_profile
    if row.link is not None:
        out["connLinkInv"] = row.link
    return out


def contact(state: CoreState, row: Contact) -> JsonObject:
    """CONTACT."""
    profile = state.profiles[row.profile_id]
    owner = state.users[row.user_id]
    conn = state.connections.get(row.conn_id) if row.conn_id is not None else None
    incognito = conn is not None and conn.incognito_profile is not None
    mine: JsonObject | None = None if incognito else state.profiles[owner.profile_id].data.get("preferences")
    out: JsonObject = {
        "contactId": row.contact_id,
        "localDisplayName": row.name,
        "profile": local_profile(profile),
        "contactUsed": row.used,
        "contactStatus": row.status,
        "chatSettings": _SETTINGS,
        "userPreferences": {},
        "mergedPreferences": merged_preferences(mine, profile.data.get("preferences"), own=incognito),
        "createdAt": row.created,
        "updatedAt": row.updated,
        "chatTs": row.chat_ts,
        "contactGrpInvSent": row.group_invitation_sent,
        "chatTags": [],
        "chatDeleted": row.deleted_chat,
    }
    optional = {
        "activeConn": None if conn is None else connection(conn),
        "preparedContact": None if row.prepared is None else dict(row.prepared),
        "contactRequestId": row.request_id,
        "customData": row.custom_data,
    }
    out.update((key, value) for key, value in optional.items() if value is not None)
    return out


def group_member(state: CoreState, row: Member, *, conn: bool = True) -> JsonObject:
    """GROUPMEMBER; items that are read from the database show their member without the connection."""
    out: JsonObject = {
        "groupMemberId": row.member_key,
        "groupId": row.group_id,
        "indexInGroup": row.index,
        "memberId": row.member_id,
        "memberRole": row.role,
        "memberCategory": row.category,
        "memberStatus": row.status,
        "memberSettings": {"showMessages": True},
        "blockedByAdmin": row.blocked,
        "invitedBy": row.invited_by,
        "localDisplayName": row.name,
        "memberProfile": local_profile(state.profiles[row.profile_id]),
        "memberContactProfileId": row.profile_id,
        "memberChatVRange": {"minVersion": 1, "maxVersion": row.max_version},
        "createdAt": row.created,
        "updatedAt": row.updated,
    }
    if row.category == "user":
        owner = state.users[state.groups[row.group_id].user_id]
        out["memberContactId"] = owner.contact_id
        out["memberContactProfileId"] = owner.profile_id
    elif row.contact_id is not None:
        out["memberContactId"] = row.contact_id
    if row.invited_by_key is not None:
        out["invitedByGroupMemberId"] = row.invited_by_key
    if conn and row.conn_id is not None and row.conn_id in state.connections:
        out["activeConn"] = connection(state.connections[row.conn_id])
    if row.support is not None:
        out["supportChat"] = row.support
    return out


def members_of(state: CoreState, group_id: int) -> list[Member]:
    """All member rows of a group, the own membership too."""
    return [m for m in state.members.values() if m.group_id == group_id]


def current_members(state: CoreState, group_id: int) -> int:
    """How many current members the group has, oneself included."""
    return sum(m.status in CURRENT for m in members_of(state, group_id))


def group_info(state: CoreState, row: Group, *, members: int | None = None) -> JsonObject:
    """GROUPINFO; `members` overrides the count where the core shows the one from before."""
    count = current_members(state, row.group_id) if members is None else members
    out: JsonObject = {
        "groupId": row.group_id,
        "useRelays": False,
        "localDisplayName": row.name,
        "groupProfile": row.profile,
        "localAlias": "",
        "fullGroupPreferences": full_group_preferences(row.profile.get("groupPreferences")),
        "membership": group_member(state, state.members[row.membership], conn=False),
        "chatSettings": _SETTINGS,
        "createdAt": row.created,
        "updatedAt": row.updated,
        "chatTs": row.chat_ts,
        "userMemberProfileSentAt": row.profile_sent,
        "chatTags": [],
        "groupSummary": {"currentMembers": count},
        "membersRequireAttention": row.attention,
    }
    optional = {
        "businessChat": row.business,
        "preparedGroup": None if row.prepared is None else dict(row.prepared),
        "viaGroupLinkUri": row.link_uri,
        "customData": row.custom_data,
    }
    out.update((key, value) for key, value in optional.items() if value is not None)
    return out


def group_link(row: LinkRow) -> JsonObject:
    """GROUPLINK."""
    return {
        "userContactLinkId": row.link_id,
        "connLinkContact": {"connFullLink": row.full, "connShortLink": row.short},
        "shortLinkDataSet": True,
        "shortLinkLargeDataSet": row.large,
        "groupLinkId": row.group_link_id,
        "acceptMemberRole": row.role,
    }


def contact_link(row: LinkRow) -> JsonObject:
    """The `contactLink` of the own address."""
    return {
        "userContactLinkId": row.link_id,
        "connLinkContact": {"connFullLink": row.full, "connShortLink": row.short},
        "shortLinkDataSet": True,
        "shortLinkLargeDataSet": row.large,
        "addressSettings": row.settings,
    }


def contact_request(state: CoreState, row: ContactRequest) -> JsonObject:
    """UserContactRequest."""
    profile = state.profiles[row.profile_id]
    out: JsonObject = {
        "contactRequestId": row.request_id,
        "agentInvitationId": row.invitation_id,
        "userContactLinkId_": row.link_id,
        "cReqChatVRange": {"minVersion": 1, "maxVersion": 19},
        "localDisplayName": row.name,
        "profileId": row.profile_id,
        "profile": local_profile(profile),
        "createdAt": row.created,
        "updatedAt": row.updated,
        "xContactId": row.x_contact_id,
        "pqSupport": row.pq,
    }
    if row.contact_id is not None:
        out["contactId_"] = row.contact_id
    if row.message_id is not None:
        out["requestSharedMsgId"] = row.message_id
    return out


def chat_info(state: CoreState, ref: str, scope: int | None = None, *, members: int | None = None) -> JsonObject:
    """CHATINFO of `@4` or `#1`."""
    number = int(ref[1:])
    if ref[0] == "@":
        return {"type": "direct", "contact": contact(state, state.contacts[number])}
    out: JsonObject = {
        "type": "group",
        "groupInfo": group_info(state, state.groups[number], members=members),
    }
    if scope is not None:
        shown: JsonObject = {"type": "memberSupport"}
        if scope and scope in state.members:
            shown["groupMember_"] = group_member(state, state.members[scope])
        out["groupChatScope"] = shown
    return out
