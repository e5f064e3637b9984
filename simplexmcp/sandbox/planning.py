"""`/_connect plan`: what a target is, and whether it is known. Local chats are found before the network is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors
from simplexmcp.sandbox.roles import ACTIVE, REMOVED
from simplexmcp.sandbox.targets import SHORT_HOST, link_identity, parse_target

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.network import LinkEntry
    from simplexmcp.sandbox.state import Connection, Contact, Group
    from simplexmcp.sandbox.targets import Target

__all__ = ["known_contact", "plan"]

JsonObject = dict[str, Any]


def plan(core: SimulatedCore, a: Arguments) -> Event:
    """`/_connect plan U TARGET`."""
    text = a.text("target")
    target = parse_target(text)
    if target is None:
        raise errors.error("invalidConnReq")
    if target.kind == "relay":
        raise errors.command_error("chat relay links are not supported in this version")
    if target.form == "full":
        kind, inner = _full_plan(core, target)
        link: JsonObject = {"connFullLink": text}
    else:
        kind, inner, link = _resolved_plan(core, target)
    return core.event("connectionPlan", connLink=link, connectionPlan={"type": kind, f"{kind}Plan": inner})


def _full_plan(core: SimulatedCore, target: Target) -> tuple[str, JsonObject]:
    found = _local_plan(core, target.text, short=False)
    if found is not None:
        return found
    kind = "invitationLink" if target.kind == "invitation" else "contactAddress"
    if "groupLinkId" in target.text:
        kind = "groupLink"
    return kind, {"type": "ok"}


def _resolved_plan(core: SimulatedCore, target: Target) -> tuple[str, JsonObject, JsonObject]:
    entry = core.network.find_link(target.text)
    known = _known_pair(core, target.text)
    if known is not None:
        found = _local_plan(core, known["connFullLink"], short=True)
        if found is not None:
            return (*found, known)
    core.network.require_relay()
    if entry is None:
        raise _missing(core, target)
    pair = {"connFullLink": entry.full, "connShortLink": entry.short}
    found = _local_plan(core, entry.full, short=True)
    if found is not None:
        return (*found, pair)
    if entry.kind == "invitation":
        pair["connFullLink"] += f"%26kem_key%3D{entry.data['kem']}"
    kind, inner = _ok_plan(core, entry, target)
    return kind, inner, pair


def _missing(core: SimulatedCore, target: Target) -> errors.CommandFailed:
    if target.form == "name":
        names = any(entry.name is not None for entry in core.network.links.values())
        tag = "NOT_FOUND" if names else "NO_RESOLVER"
        return errors.smp_error({"type": "NAME", "nameErr": {"type": tag}})
    if target.host != SHORT_HOST:
        network = {"type": "NETWORK", "networkError": {"type": "failedError"}}
        return errors.smp_error({"type": "PROXY", "proxyErr": {"type": "BROKER", "brokerErr": network}})
    return errors.smp_auth()


def _known_pair(core: SimulatedCore, text: str) -> JsonObject | None:
    """The link pair of a prepared chat that has this short link, also when the link is gone from the network."""
    wanted = link_identity(text)
    rows: list[Contact | Group] = [*core.state.contacts.values(), *core.state.groups.values()]
    for row in rows:
        if row.user_id == core.user.user_id and row.prepared is not None:
            pair: JsonObject = row.prepared["connLinkToConnect"]
            if "connShortLink" in pair and link_identity(pair["connShortLink"]) == wanted:
                return pair
    for link in core.state.links.values():
        if link_identity(link.short) == wanted:
            return {"connFullLink": link.full, "connShortLink": link.short}
    return None


def _ok_plan(core: SimulatedCore, entry: LinkEntry, target: Target) -> tuple[str, JsonObject]:
    inner: JsonObject = {"type": "ok"}
    if entry.kind == "group":
        inner["groupSLinkInfo_"] = {"direct": True, "groupRelays": []}
        inner["groupSLinkData_"] = {"groupProfile": entry.data["groupProfile"]}
        kind = "groupLink"
    else:
        inner["contactSLinkData_"] = _contact_data(entry)
        kind = "invitationLink" if entry.kind == "invitation" else "contactAddress"
    if target.form == "name":
        name = target.text[1:]
        labels = name.removesuffix(".simplex").split(".")
        inner["verifiedDomain"] = {"nameTLD": "simplex", "domain": labels[-1], "subDomain": labels[:-1]}
    del core
    return kind, inner


def _contact_data(entry: LinkEntry) -> JsonObject:
    keys = ("profile", "message", "business")
    return {key: entry.data[key] for key in keys if key in entry.data}


def _local_plan(core: SimulatedCore, full: str, *, short: bool) -> tuple[str, JsonObject] | None:
    """The plan for a link that this core knows itself."""
    wanted = link_identity(full)
    return (
        _own_plan(core, wanted)
        or _contact_plan(core, wanted, short=short)
        or _group_plan(core, wanted)
        or _pending_plan(core, wanted)
    )


def _own_plan(core: SimulatedCore, wanted: str) -> tuple[str, JsonObject] | None:
    for row in core.state.links.values():
        if link_identity(row.full) != wanted or row.user_id != core.user.user_id:
            continue
        if row.group_id is None:
            return "contactAddress", {"type": "ownLink"}
        group = core.state.groups[row.group_id]
        return "groupLink", {"type": "ownLink", "groupInfo": core.group_json(group)}
    for conn in core.state.connections.values():
        if conn.link is not None and conn.status == "new" and link_identity(conn.link["connFullLink"]) == wanted:
            return "invitationLink", {"type": "ownLink"}
    return None


def contact_link(contact: Contact) -> str | None:
    """The full link that a contact was prepared with or found by."""
    if contact.prepared is not None:
        full: str = contact.prepared["connLinkToConnect"]["connFullLink"]
        return full
    return contact.via_address


def known_contact(core: SimulatedCore, full: str) -> Contact | None:
    """The contact behind an address that is neither deleted by its peer nor another user's."""
    wanted = link_identity(full)
    for row in core.state.contacts.values():
        link = contact_link(row)
        if row.user_id == core.user.user_id and row.status == "active" and link and link_identity(link) == wanted:
            return row
    return None


def _contact_plan(core: SimulatedCore, wanted: str, *, short: bool) -> tuple[str, JsonObject] | None:
    for row in core.state.contacts.values():
        card = core.state.profiles[row.profile_id].data.get("contactLink")
        if row.conn_id is None and row.prepared is None and card and link_identity(card) == wanted:
            return "contactAddress", {"type": "contactViaAddress", "contact": core.contact_json(row)}
        link = contact_link(row)
        if row.user_id != core.user.user_id or link is None or link_identity(link) != wanted:
            continue
        invitation = row.prepared is not None and row.prepared.get("uiConnLinkType") == "inv"
        if row.status != "active" and not invitation:
            continue
        shown = {"contact": core.contact_json(row)}
        if invitation:
            return "invitationLink", {"type": "known", **shown}
        conn = core.conn_of(row)
        connecting = conn is not None and conn.status in ("joined", "requested", "prepared")
        if connecting and not short:
            return "contactAddress", {"type": "connectingProhibit", **shown}
        return "contactAddress", {"type": "known", **shown}
    return None


def _group_plan(core: SimulatedCore, wanted: str) -> tuple[str, JsonObject] | None:
    for group in core.state.groups.values():
        if group.user_id != core.user.user_id or not _came_by(group, wanted):
            continue
        own = core.membership(group)
        if own.status in REMOVED:
            continue
        known = own.status in ACTIVE or group.prepared is not None
        if not known:
            return "groupLink", {"type": "connectingProhibit", "groupInfo_": core.group_json(group)}
        return "groupLink", {
            "type": "known",
            "groupInfo": core.group_json(group),
            "groupUpdated": False,
            "linkOwners": [],
        }
    return None


def _came_by(group: Group, wanted: str) -> bool:
    if group.prepared is not None:
        return link_identity(group.prepared["connLinkToConnect"]["connFullLink"]) == wanted
    return group.link_uri is not None and link_identity(group.link_uri) == wanted


def _pending_plan(core: SimulatedCore, wanted: str) -> tuple[str, JsonObject] | None:
    for conn in core.state.connections.values():
        if _is_pending(conn) and conn.target is not None and link_identity(conn.target) == wanted:
            if not conn.via_contact_uri:
                continue
            kind = "groupLink" if conn.group_link_id is not None else "contactAddress"
            return kind, {"type": "connectingConfirmReconnect"}
    return None


def _is_pending(conn: Connection) -> bool:
    return conn.entity_id is None and conn.status in ("joined", "requested")
