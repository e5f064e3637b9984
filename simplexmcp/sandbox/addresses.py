"""The own contact address, and the requests that come through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import accepting, errors, groups, profiles, shapes
from simplexmcp.sandbox.composing import message_content
from simplexmcp.sandbox.network import LinkEntry
from simplexmcp.sandbox.state import LinkRow, free_id
from simplexmcp.sandbox.targets import full_link, short_link

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import ContactRequest

__all__ = ["accept", "address_of", "create", "delete", "reject", "settings", "show"]

JsonObject = dict[str, Any]


def address_of(core: SimulatedCore) -> LinkRow | None:
    """The active user's address."""
    mine = core.user.user_id
    return next((r for r in core.state.links.values() if r.group_id is None and r.user_id == mine), None)


def _need_address(core: SimulatedCore) -> LinkRow:
    if (row := address_of(core)) is None:
        raise errors.store_error("userContactLinkNotFound")
    return row


def create(core: SimulatedCore, a: Arguments) -> Event:
    """`/_address U`."""
    del a
    if address_of(core) is not None:
        raise errors.store_error("duplicateContactLink")
    network = core.network
    network.require_relay()
    queue, key = network.new_key(24), network.new_key()
    row = LinkRow(
        link_id=free_id(core.state.links),
        user_id=core.user.user_id,
        conn_id=groups.add_link_connection(core).conn_id,
        full=full_link("contact", queue, network.new_key()),
        short=short_link("a", key),
    )
    core.state.links[row.link_id] = row
    publish(core, row)
    return core.event("userContactLinkCreated", connLinkContact={"connFullLink": row.full, "connShortLink": row.short})


def publish(core: SimulatedCore, row: LinkRow, **extra: Any) -> None:
    """Put an address and what it shows into the network; `name` and `label` are for the population."""
    old = core.network.find_link(row.full)
    name = extra.pop("name", old.name if old is not None else None)
    kept = {"label": old.data["label"]} if old is not None and "label" in old.data else {}
    profile = profiles.contact_profile(core, None, kind=True)
    if name is not None:
        profile["contactDomain"] = {"domain": name.removeprefix("@")}
    data: JsonObject = {"profile": profile, "business": row.settings.get("businessAddress", False), **kept, **extra}
    if (reply := row.settings.get("autoReply")) is not None:
        data["message"] = reply
    agent_id = core.state.connections[row.conn_id].agent_id
    core.network.publish(LinkEntry(row.full, row.short, "address", core.name, agent_id, data, name))


def show(core: SimulatedCore, a: Arguments) -> Event:
    """`/_show_address U`."""
    del a
    return core.event("userContactLink", contactLink=shapes.contact_link(_need_address(core)))


def settings(core: SimulatedCore, a: Arguments) -> Event:
    """`/_address_settings U JSON`."""
    value = a.object()
    if not isinstance(value.get("businessAddress"), bool):
        raise errors.parse_error()
    out: JsonObject = {"businessAddress": value["businessAddress"]}
    if (auto := value.get("autoAccept")) is not None:
        if not isinstance(auto, dict) or not isinstance(auto.get("acceptIncognito"), bool):
            raise errors.parse_error()
        out["autoAccept"] = {"acceptIncognito": auto["acceptIncognito"]}
    if (reply := value.get("autoReply")) is not None:
        out["autoReply"] = message_content(reply)
    row = _need_address(core)
    row.settings = out
    publish(core, row)
    return core.event("userContactLinkUpdated", contactLink=shapes.contact_link(row))


def delete(core: SimulatedCore, a: Arguments) -> Event:
    """`/_delete_address U`."""
    del a
    groups.drop_link(core, _need_address(core))
    return core.event("userContactLinkDeleted")


def _need_request(core: SimulatedCore, number: int) -> ContactRequest:
    row = core.state.requests.get(number)
    if row is None or not row.open or row.user_id != core.user.user_id:
        raise errors.store_error("contactRequestNotFound", contactRequestId=number)
    return row


def accept(core: SimulatedCore, a: Arguments) -> Event:
    """`/_accept REQUEST`."""
    request = _need_request(core, a.number("request"))
    if a.on("incognito"):
        raise errors.not_modelled("accepting incognito")
    contact = accepting.accept_request(core, request, "sndReady")
    return core.event("acceptingContactRequest", contact=core.contact_json(contact))


def reject(core: SimulatedCore, a: Arguments) -> Event:
    """`/_reject REQUEST`: the other side hears nothing."""
    request = _need_request(core, a.number("request"))
    contact = core.state.contacts.get(request.contact_id or 0)
    response = core.event("contactRequestRejected", contactRequest=shapes.contact_request(core.state, request))
    if contact is not None:
        response["contact_"] = core.contact_json(contact)
        core.drop_chat(f"@{contact.contact_id}")
        del core.state.contacts[contact.contact_id]
        core.free_name(contact.name)
    del core.state.requests[request.request_id]
    core.drop_profile(request.profile_id)
    return response
