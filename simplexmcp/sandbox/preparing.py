"""Preparing a chat for a link, before anything goes over the network: `/_prepare contact`, `/_prepare group`."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, groups, items, itemshapes, rows, shapes
from simplexmcp.sandbox.arguments import profile_argument
from simplexmcp.sandbox.composing import message_content
from simplexmcp.sandbox.preferences import prepared_business_preferences
from simplexmcp.sandbox.targets import parse_target

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Group, Item

__all__ = ["prepare_contact", "prepare_group"]

JsonObject = dict[str, Any]


def _link_pair(a: Arguments) -> JsonObject:
    pair: JsonObject = {"connFullLink": a.text("full")}
    target = parse_target(a.text("full"))
    if target is None or target.form != "full":
        raise errors.error("invalidConnReq")
    if a.has("short"):
        pair["connShortLink"] = a.text("short")
    return pair


def _prepared_chat(core: SimulatedCore, ref: str, welcome: Item | None) -> Event:
    stats = dict(shapes.ZERO_STATS)
    if welcome is not None:
        stats.update(unreadCount=1, minUnreadItemId=welcome.item_id)
    shown = [] if welcome is None else [itemshapes.chat_item(core.state, welcome, core.seconds(), conn=True)]
    chat = {"chatInfo": shapes.chat_info(core.state, ref), "chatItems": shown, "chatStats": stats}
    return core.event("newPreparedChat", chat=chat)


def prepare_contact(core: SimulatedCore, a: Arguments) -> Event:
    """`/_prepare contact U LINKS CONTACTSLINKDATA`: a chat at once, or a group for a business."""
    data = a.object()
    checked = profile_argument(data.get("profile"))
    profile = {**data["profile"], **checked}
    pair = _link_pair(a)
    message = None if data.get("message") is None else message_content(data["message"])
    if data.get("business"):
        return _prepare_business(core, pair, profile, message)
    contact = rows.add_contact(core, profile)
    invitation = parse_target(pair["connFullLink"])
    assert invitation is not None
    kind = "inv" if invitation.kind == "invitation" else "con"
    contact.prepared = {"connLinkToConnect": pair, "uiConnLinkType": kind}
    if message is not None:
        contact.prepared["welcomeSharedMsgId"] = core.network.new_id()
    if a.has("domain"):
        core.state.profiles[contact.profile_id].data = {
            **profile,
            "contactDomain": {"domain": a.text("domain")},
            "contactDomainVerified": True,
        }
    ref = f"@{contact.contact_id}"
    items.banner(core, ref)
    items.direct_e2ee(core, contact, pq=None)
    items.contact_features(core, contact)
    welcome = None if message is None else _welcome(core, ref, message, None)
    response = _prepared_chat(core, ref, welcome)
    if welcome is not None:
        core.index.share(welcome, contact.prepared["welcomeSharedMsgId"])
    return response


def _welcome(core: SimulatedCore, ref: str, message: JsonObject, member: int | None) -> Item:
    text = items.content_text(message)
    parts, has_link = items.formatted(text)
    content = {"type": "rcvMsgContent", "msgContent": message}
    as_group = ref[0] == "#"
    return items.add_item(
        core, ref, content, text, formatted=parts, has_link=has_link, member=member, as_group=as_group
    )


def _prepare_business(core: SimulatedCore, pair: JsonObject, profile: JsonObject, message: JsonObject | None) -> Event:
    group_profile = {
        "displayName": profile["displayName"],
        "fullName": profile.get("fullName", ""),
        "groupPreferences": prepared_business_preferences(profile.get("preferences")),
    }
    for key in ("shortDescr", "image"):
        if key in profile:
            group_profile[key] = profile[key]
    group = _prepared_group(core, group_profile, pair)
    host = rows.host_of(core, group)
    own = core.membership(group)
    group.business = {"chatType": "business", "businessId": host.member_id, "customerId": own.member_id}
    return _finish_prepared(core, group, message)


def prepare_group(core: SimulatedCore, a: Arguments) -> Event:
    """`/_prepare group U LINKS GROUPSLINKDATA`."""
    if not a.on("direct", default=True):
        raise errors.not_modelled("channels")
    profile = groups.group_profile_argument(a.object().get("groupProfile"))
    group = _prepared_group(core, profile, _link_pair(a))
    text = profile.get("description")
    return _finish_prepared(core, group, None if text is None else {"type": "text", "text": text})


def _prepared_group(core: SimulatedCore, profile: JsonObject, pair: JsonObject) -> Group:
    name = profile["displayName"]
    group = groups.add_group(core, profile, core.now())
    marker = core.network.new_key(12)
    host_profile = core.add_profile({"displayName": _placeholder(marker)[:7], "fullName": ""})
    host_id = _placeholder(f"{name}_unknown_host_{marker}")
    host = groups.add_member(
        core, group, host_id, role="admin", status="accepted", category="host", profile=host_profile.profile_id
    )
    host.name = core.take_name(host_profile.data["displayName"])
    host.max_version = 1
    own = groups.add_membership(core, group, _placeholder(f"{name}_user_unknown_id"), role="member", status="unknown")
    own.invited_by = {"type": "unknown"}
    own.invited_by_key = host.member_key
    group.prepared = {
        "connLinkToConnect": pair,
        "connLinkPreparedConnection": False,
        "connLinkStartedConnection": False,
    }
    return group


def _placeholder(text: str) -> str:
    return b64encode(text.encode()).decode()


def _finish_prepared(core: SimulatedCore, group: Group, message: JsonObject | None) -> Event:
    ref = f"#{group.group_id}"
    host = rows.host_of(core, group)
    items.banner(core, ref)
    items.group_features(core, group, host, as_group=True)
    welcome = None
    if message is not None:
        assert group.prepared is not None
        group.prepared["welcomeSharedMsgId"] = core.network.new_id()
        welcome = _welcome(core, ref, message, host.member_key)
    response = _prepared_chat(core, ref, welcome)
    if welcome is not None and group.prepared is not None:
        core.index.share(welcome, group.prepared["welcomeSharedMsgId"])
    return response
