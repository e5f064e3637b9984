"""What becomes of sent messages: taken by the relay, received by the other side, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, uploads
from simplexmcp.sandbox.network import HOP
from simplexmcp.sandbox.shapes import current_members

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Connection, Item

__all__ = ["acknowledge", "on_receipt", "on_sent"]

JsonObject = dict[str, Any]

RECEIPT = {"member": 0.08, "contact": 0.6}
"""Seconds from receiving a message to its receipt at the sender, by the kind of their connection."""
RECEIPT_MEMBERS = 20
"""Receipts are sent in groups up to this many members."""


def on_sent(core: SimulatedCore, data: JsonObject) -> None:
    """The relay takes the messages of one connection, or knows no such queue any more."""
    network = core.network
    if network.faults.relay_down:
        network.hold(core.name, data)
        return
    conn = core.conn_by_agent_id(data["conn"])
    peer = data["peer"]
    if conn is not None and conn.peer is not None:
        peer = conn.peer
    if peer is None or not _has_queue(core, peer):
        _refused(core, conn, data)
        return
    moved = {"to": peer[1], "from": data["conn"], "bodies": data["bodies"], "ts": network.clock()}
    network.schedule(peer[0], "msg", moved, after=HOP / 2)
    _advance(core, conn, data["items"], "sent")
    for number in data.get("files", ()):
        uploads.on_described(core, number)


def _has_queue(core: SimulatedCore, peer: list[str]) -> bool:
    other = core.network.cores.get(peer[0])
    conn = None if other is None else other.conn_by_agent_id(peer[1])
    return conn is not None and conn.status != "deleted"


def _refused(core: SimulatedCore, conn: Connection | None, data: JsonObject) -> None:
    rows = [core.state.items[n] for n in data["items"] if n in core.state.items]
    if conn is None or not rows:
        return
    for row in rows:
        row.status = {"type": "sndError", "agentError": {"type": "auth"}}
        row.updated = core.now()
    core.emit("chatItemsStatusesUpdated", chatItems=[core.item_json(row) for row in rows])
    conn.auth_errors += 1
    problem = errors.smp_auth().chat_error
    core.emit_raw({"type": "chatError", "chatError": {**problem, "agentConnId": conn.agent_id}})


def acknowledge(core: SimulatedCore, conn: Connection, received: list[str]) -> None:
    """Tell the sender that its messages arrived, unless the group is too large for that."""
    if conn.kind == "member":
        member = core.state.members.get(conn.entity_id or 0)
        if member is None or current_members(core.state, member.group_id) > RECEIPT_MEMBERS:
            return
    assert conn.peer is not None
    core.network.schedule(conn.peer[0], "receipt", {"to": conn.peer[1], "ids": received}, after=RECEIPT[conn.kind])


def on_receipt(core: SimulatedCore, data: JsonObject) -> None:
    """The other side has received these messages."""
    conn = core.conn_by_agent_id(data["to"])
    if conn is None:
        return
    rows = [row.item_id for shared in data["ids"] for row in core.index.by_shared_id(shared) if not row.received]
    _advance(core, conn, rows, "rcvd")


def _advance(core: SimulatedCore, conn: Connection | None, numbers: list[int], step: str) -> None:
    if conn is None:
        return
    changed = [
        row for n in numbers if (row := core.state.items.get(n)) is not None and _advance_one(core, conn, row, step)
    ]
    if changed:
        core.emit("chatItemsStatusesUpdated", chatItems=[core.item_json(row) for row in changed])


def _advance_one(core: SimulatedCore, conn: Connection, row: Item, step: str) -> bool:
    """Note one step of one recipient; whether the item's status changed."""
    if row.chat[0] == "@":
        conn.pq_snd = True
        status = _status(step, "complete")
        config = core.network_config or {}
        row.via_proxy = config.get("smpProxyMode") == "always" if step == "sent" else row.via_proxy
    else:
        key = str(conn.entity_id)
        if key not in row.delivery or (row.delivery[key] == "rcvd" and step == "sent"):
            return False
        row.delivery[key] = step
        status = _group_status(list(row.delivery.values()))
    if row.status == status or (row.status["type"] == "sndRcvd" and status["type"] != "sndRcvd"):
        return False
    row.status = status
    row.updated = core.now()
    return True


def _status(step: str, progress: str) -> JsonObject:
    if step == "rcvd":
        return {"type": "sndRcvd", "msgRcptStatus": "ok", "sndProgress": progress}
    return {"type": "sndSent", "sndProgress": progress}


def _group_status(steps: list[str]) -> JsonObject:
    received, sent = steps.count("rcvd"), steps.count("sent")
    if received:
        return _status("rcvd", "complete" if received == len(steps) else "partial")
    if sent:
        return _status("sent", "complete" if sent == len(steps) else "partial")
    return {"type": "sndNew"}
