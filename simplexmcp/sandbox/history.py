"""The history that a joiner gets from its host: the last hundred messages of the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import downloads, files, items, joining, shapes
from simplexmcp.sandbox.times import broker_time

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Connection, FileRow, Group, Item, Member

__all__ = ["on_description", "on_history", "on_welcome", "send"]

JsonObject = dict[str, Any]

LENGTH = 100


def send(core: SimulatedCore, group: Group, conn: Connection) -> None:
    """Send the last messages of the main conversation, without deleted and live ones."""
    ref = f"#{group.group_id}"
    rows = [core.state.items[number] for _, number in core.index.keys(ref)]
    wanted = [row for row in rows if _is_history(row)][-LENGTH:]
    bodies = [_message(core, group, row) for row in wanted]
    for row, body in zip(wanted, list(bodies), strict=True):
        if "file" in body and row.file is not None:
            bodies.insert(bodies.index(body) + 1, _description(core, row, body))
    if bodies:
        core.send(conn, bodies)


def _is_history(row: Item) -> bool:
    has_text = "msgContent" in row.content and row.shared_id is not None
    return has_text and row.deleted is None and not row.live and row.scope is None


def _message(core: SimulatedCore, group: Group, row: Item) -> JsonObject:
    key = row.member if row.member is not None else group.membership
    author = core.state.members[key]
    body: JsonObject = {
        "x": "history",
        "memberId": author.member_id,
        "name": core.state.profiles[author.profile_id].data["displayName"],
        "id": row.shared_id,
        "ts": row.ts,
        "content": row.content["msgContent"],
    }
    file = core.state.files.get(row.file or 0)
    if file is not None and _still_there(core, file):
        body["file"] = files.announced(file)
    if row.mentions:
        body["mentions"] = row.mentions
    if row.quote is not None:
        body["quote"] = wire_quote(core, group, row)
    return body


def _still_there(core: SimulatedCore, file: FileRow) -> bool:
    """Whether a joiner can still get a file: it is on the servers, and its description is known."""
    return bool(file.description) and not file.cancelled and core.network.files.find(file.upload or "") is not None


def _description(core: SimulatedCore, row: Item, body: JsonObject) -> JsonObject:
    """The message with the description of a file of the history."""
    file = core.state.files[row.file or 0]
    described = {"x": "history.descr", "id": row.shared_id, "memberId": body["memberId"]}
    return {**described, "text": file.description, "upload": file.upload}


def on_description(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    """The description of a file of the history."""
    del host
    for item in core.index.by_shared_id(body["id"], f"#{group.group_id}"):
        downloads.on_description(core, item.chat, body, item.member)


def wire_quote(core: SimulatedCore, group: Group, row: Item) -> JsonObject:
    """A quote of a stored item as a message carries it."""
    assert row.quote is not None
    member = row.quote.get("member")
    if member is None and row.quote.get("chatDir", {}).get("type") == "groupSnd":
        member = group.membership
    reference = {"msgId": row.quote.get("sharedMsgId"), "sentAt": row.quote["sentAt"], "sent": True}
    if member is not None and member in core.state.members:
        reference["memberId"] = core.state.members[member].member_id
    return {"msgRef": reference, "content": row.quote["content"]}


def on_history(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> None:
    """One message of the history, passed on by the host."""
    from simplexmcp.sandbox import incoming

    if core.index.by_shared_id(body["id"], f"#{group.group_id}"):
        return
    author = next((m for m in shapes.members_of(core.state, group.group_id) if m.member_id == body["memberId"]), None)
    if author is None:
        author = unknown_member(core, group, host, body)
    quote = incoming.group_quote(core, group, body.get("quote"))
    text = items.content_text(body["content"])
    parts, has_link = items.formatted(text)
    file = files.receive_announced(core, body.get("file"), author.member_key)
    item = items.add_item(
        core,
        f"#{group.group_id}",
        {"type": "rcvMsgContent", "msgContent": body["content"]},
        text,
        ts=body["ts"],
        shared_id=body["id"],
        member=author.member_key,
        forwarded_by=host.member_key,
        mentions=body.get("mentions", {}),
        formatted=parts,
        has_link=has_link,
        quote=quote,
    )
    files.attach(item, file)
    core.emit_items(item)


def unknown_member(core: SimulatedCore, group: Group, host: Member, body: JsonObject) -> Member:
    """The author of a message who is not introduced: somebody that has left."""
    who = {
        "memberId": body["memberId"],
        "role": "author",
        "profile": {"displayName": body["name"], "fullName": ""},
    }
    author = joining.add_peer(core, group, who, category="pre", status="unknown")
    core.emit(
        "unknownMemberCreated",
        groupInfo=core.group_json(group),
        forwardedByMember=core.member_json(host),
        member=core.member_json(author),
    )
    return author


def on_welcome(core: SimulatedCore, group: Group, host: Member, body: JsonObject, ts: float) -> None:
    """The group's welcome text; a prepared chat has shown it already."""
    if group.prepared is not None:
        return
    parts, has_link = items.formatted(body["text"])
    content = {"type": "rcvMsgContent", "msgContent": {"type": "text", "text": body["text"]}}
    item = items.add_item(
        core,
        f"#{group.group_id}",
        content,
        body["text"],
        ts=broker_time(ts),
        member=host.member_key,
        formatted=parts,
        has_link=has_link,
        shared_id=body["id"],
    )
    core.emit_items(item)
