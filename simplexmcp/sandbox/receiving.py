"""What the network gives a core to do: a table from the kind of a delivery, and of a message, to who handles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import (
    accepting,
    associating,
    downloads,
    history,
    incoming,
    invitations,
    joining,
    moderation,
    statuses,
    uploads,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.network import Delivery
    from simplexmcp.sandbox.state import Connection, Group, Member

__all__ = ["perform"]

JsonObject = dict[str, Any]


def perform(core: SimulatedCore, delivery: Delivery) -> None:
    """Do one delivery of a started core, for the user whose chat it is about."""
    with core.acting_for(_user_of(core, delivery.data)):
        _DELIVERIES[delivery.do](core, delivery.data)


def _user_of(core: SimulatedCore, data: JsonObject) -> int | None:
    if (agent_id := data.get("to") or data.get("conn") or data.get("link")) is not None:
        conn = core.conn_by_agent_id(agent_id)
        return None if conn is None else conn.user_id
    if (file := core.state.files.get(data.get("file", 0))) is not None:
        return file.user_id
    if (contact := core.state.contacts.get(data.get("contact", 0))) is not None:
        return contact.user_id
    member = core.state.members.get(data.get("member", 0))
    return None if member is None else core.state.groups[member.group_id].user_id


def _on_request(core: SimulatedCore, data: JsonObject) -> None:
    conn = core.conn_by_agent_id(data["link"])
    link = None if conn is None else next((r for r in core.state.links.values() if r.conn_id == conn.conn_id), None)
    if link is None:
        return
    if link.group_id is not None:
        joining.on_group_request(core, link, data)
    else:
        accepting.on_address_request(core, link, data)


def _on_messages(core: SimulatedCore, data: JsonObject) -> None:
    """Messages of one connection; content that was received is acknowledged together."""
    conn = core.conn_by_agent_id(data["to"])
    if conn is None or conn.status == "deleted":
        return
    received = [body["id"] for body in data["bodies"] if _one(core, conn, body, data["ts"])]
    if received and conn.peer is not None:
        statuses.acknowledge(core, conn, received)


def _one(core: SimulatedCore, conn: Connection, body: JsonObject, ts: float) -> bool:
    kind = body["x"]
    if (step := _STEPS.get(kind)) is not None:
        step(core, conn, body)
        return False
    member = core.state.members.get(conn.entity_id or 0) if conn.kind == "member" else None
    if member is not None:
        return _group_message(core, core.state.groups[member.group_id], member, body, ts)
    contact = core.state.contacts.get(conn.entity_id or 0) if conn.kind == "contact" else None
    if contact is None:
        return False
    return incoming.on_direct(core, contact, body, ts)


def _group_message(core: SimulatedCore, group: Group, member: Member, body: JsonObject, ts: float) -> bool:
    kind = body["x"]
    if kind == "mem.new":
        joining.on_new_member(core, group, member, body, ts)
    elif kind == "welcome":
        history.on_welcome(core, group, member, body, ts)
    elif (introduction := _INTRODUCTIONS.get(kind)) is not None:
        introduction(core, group, member, body)
    elif (change := moderation.CHANGES.get(kind)) is not None:
        change(core, group, member, body, ts)
        incoming.forward(core, group, member, body, ts)
    else:
        done = incoming.on_group(core, group, member, body, ts)
        incoming.forward(core, group, member, body, ts)
        return done
    return False


_STEPS: dict[str, Callable[[SimulatedCore, Connection, JsonObject], None]] = {
    "accepted": accepting.on_accepted,
    "confirmed": accepting.on_confirmed,
    "confirm": accepting.on_confirm,
    "confirm.ok": accepting.on_confirm_ok,
    "invited": joining.on_invited,
    "pair.done": joining.on_pair_done,
    "group.accept": invitations.on_accept,
    "group.joined": invitations.on_joined,
}

_INTRODUCTIONS: dict[str, Callable[[SimulatedCore, Group, Member, JsonObject], None]] = {
    "mem.intro": joining.on_introduction,
    "pair.offer": joining.on_pair_offer,
    "pair.take": joining.on_introduced,
    "pair.connected": joining.on_pair_connected,
    "history": history.on_history,
    "history.descr": history.on_description,
}

_DELIVERIES: dict[str, Callable[[SimulatedCore, JsonObject], None]] = {
    "request": _on_request,
    "msg": _on_messages,
    "sent": statuses.on_sent,
    "receipt": statuses.on_receipt,
    "ready": accepting.on_ready,
    "owner_ready": accepting.on_owner_ready,
    "joined": joining.on_joined,
    "probe": associating.on_probe,
    "member_ready": joining.on_member_ready,
    "pair_ready": joining.on_pair_ready,
    "upload": uploads.on_step,
    "download": downloads.on_step,
}
