"""Builds chat items as they go over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import files, shapes
from simplexmcp.sandbox.times import seconds_of

if TYPE_CHECKING:
    from simplexmcp.sandbox.state import CoreState, Item

__all__ = ["achat_item", "chat_item"]

JsonObject = dict[str, Any]

_DAY = 86400.0


def achat_item(
    state: CoreState, row: Item, now: float, *, fresh: bool = False, members: int | None = None
) -> JsonObject:
    """ACHATITEM; a `fresh` item (just received) shows its member with the connection."""
    return {
        "chatInfo": shapes.chat_info(state, row.chat, row.scope, members=members),
        "chatItem": chat_item(state, row, now, conn=fresh),
    }


def chat_item(state: CoreState, row: Item, now: float, *, conn: bool = False) -> JsonObject:
    """CHATITEM; `now` (seconds) decides whether an own message can still be edited and deleted."""
    out: JsonObject = {
        "chatDir": _direction(state, row, conn),
        "meta": _meta(state, row, now, conn),
        "content": row.content,
        "mentions": {name: _mention(state, row, member_id) for name, member_id in row.mentions.items()},
        "reactions": _reactions(row),
    }
    if row.formatted is not None:
        out["formattedText"] = row.formatted
    if row.quote is not None:
        out["quotedItem"] = _quote(state, row)
    if (file := state.files.get(row.file or 0)) is not None:
        out["file"] = files.show(file)
    return out


def _direction(state: CoreState, row: Item, conn: bool) -> JsonObject:
    kind = "direct" if row.chat[0] == "@" else "group"
    if not row.received:
        return {"type": f"{kind}Snd"}
    if kind == "group" and row.member is not None:
        return {"type": "groupRcv", "groupMember": shapes.group_member(state, state.members[row.member], conn=conn)}
    return {"type": f"{kind}Rcv"}


def _meta(state: CoreState, row: Item, now: float, conn: bool) -> JsonObject:
    own = not row.received and row.content["type"] == "sndMsgContent" and row.deleted is None
    fresh = own and now - seconds_of(row.ts) < _DAY
    out: JsonObject = {
        "itemId": row.item_id,
        "itemTs": row.ts,
        "itemText": row.text,
        "itemStatus": row.status,
        "itemEdited": row.edited,
        "userMention": row.user_mention,
        "hasLink": row.has_link,
        "deletable": fresh,
        "editable": fresh,
        "showGroupAsSender": row.as_group,
        "createdAt": row.created,
        "updatedAt": row.updated,
    }
    optional = {
        "sentViaProxy": row.via_proxy,
        "itemSharedMsgId": row.shared_id,
        "itemLive": row.live,
        "forwardedByMember": row.forwarded_by,
        "itemDeleted": _deleted(state, row, conn),
    }
    out.update((key, value) for key, value in optional.items() if value is not None)
    return out


def _deleted(state: CoreState, row: Item, conn: bool) -> JsonObject | None:
    if row.deleted is None or "by" not in row.deleted:
        return row.deleted
    by = state.members.get(row.deleted["by"])
    out = {key: value for key, value in row.deleted.items() if key != "by"}
    if by is not None:
        out["byGroupMember"] = shapes.group_member(state, by, conn=conn)
    return out


def _mention(state: CoreState, row: Item, member_id: str) -> JsonObject:
    out: JsonObject = {"memberId": member_id}
    group_id = int(row.chat[1:])
    for m in shapes.members_of(state, group_id):
        if m.member_id == member_id:
            out["memberRef"] = {
                "groupMemberId": m.member_key,
                "displayName": state.profiles[m.profile_id].data["displayName"],
                "localAlias": "",
                "memberRole": m.role,
            }
    return out


def _quote(state: CoreState, row: Item) -> JsonObject:
    assert row.quote is not None
    out: JsonObject = {key: value for key, value in row.quote.items() if key != "member"}
    key = row.quote.get("member")
    if key is not None and key in state.members:
        out["chatDir"] = {"type": "groupRcv", "groupMember": shapes.group_member(state, state.members[key], conn=False)}
    return out


def _reactions(row: Item) -> list[JsonObject]:
    counts: dict[str, list[str]] = {}
    for reaction, who in row.reactions:
        counts.setdefault(reaction, []).append(who)
    return [
        {"reaction": {"type": "emoji", "emoji": emoji}, "userReacted": "me" in who, "totalReacted": len(who)}
        for emoji, who in sorted(counts.items())
    ]
