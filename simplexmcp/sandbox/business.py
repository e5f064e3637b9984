"""A business address: each customer who asks gets a group with the business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import groups, items, joining, rows
from simplexmcp.sandbox.network import HOP
from simplexmcp.sandbox.preferences import BUSINESS_PREFERENCES

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Connection, LinkRow, Member

__all__ = ["on_business_request"]

JsonObject = dict[str, Any]


def on_business_request(core: SimulatedCore, link: LinkRow, data: JsonObject) -> None:
    """A customer asks through a business address: a group for the two of them."""
    profile = data["profile"]
    group_profile = {
        "displayName": profile["displayName"],
        "fullName": profile.get("fullName", ""),
        "groupPreferences": BUSINESS_PREFERENCES,
    }
    group = groups.add_group(core, group_profile, core.now())
    own = groups.add_membership(core, group, core.network.new_id(), role="owner", status="creator")
    who = {"memberId": core.network.new_id(), "role": "member", "profile": profile}
    member = joining.add_peer(core, group, who, category="invitee", status="accepted")
    member.invited_by = {"type": "user"}
    member.invited_by_key = own.member_key
    group.business = {"chatType": "customer", "businessId": own.member_id, "customerId": member.member_id}
    core.emit_items(items.group_e2ee(core, group, None))
    core.emit_items(*items.group_features(core, group, None))
    reply = link.settings.get("autoReply")
    ref = f"#{group.group_id}"
    if reply is not None and data["welcomeId"] is not None:
        rows.own_message(core, ref, reply, data["welcomeId"])
    if (message := data["message"]) is not None:
        text = items.content_text(message)
        parts, has_link = items.formatted(text)
        content = {"type": "rcvMsgContent", "msgContent": message}
        item = items.add_item(core, ref, content, text, member=member.member_key, formatted=parts, has_link=has_link)
        core.emit_items(item)
    conn = joining.member_connection(core, member, peer=data["from"])
    conn.via_link = link.link_id
    core.emit("acceptingBusinessRequest", groupInfo=core.group_json(group))
    joining.invite(core, group, member, conn)
    if reply is not None:
        _business_reply(core, ref, conn, reply, data["welcomeId"], member)


def _business_reply(
    core: SimulatedCore, ref: str, conn: Connection, reply: JsonObject, welcome: str | None, member: Member
) -> None:
    if welcome is not None:
        core.send(conn, [{"x": "msg.new", "id": welcome, "content": reply, "welcome": True}], after=HOP)
        return
    item = rows.own_message(core, ref, reply, core.network.new_id())
    item.delivery = {str(member.member_key): "new"}
    core.emit_items(item)
    core.send(conn, [{"x": "msg.new", "id": item.shared_id, "content": reply}], items=[item.item_id], after=HOP)
