"""Joining by a link, as the apps do: plan, prepare, connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.chats import chat_of
from simplexmcp.core.api import count
from simplexmcp.core.grammar import checked_command
from simplexmcp.errors import CoreError, Refused
from simplexmcp.phone.chatview import plan_view
from simplexmcp.phone.texts import obj, text_of

if TYPE_CHECKING:
    from simplexmcp.core.api import ChatApi
    from simplexmcp.phone.protocol import Plan
    from simplexmcp.phone.texts import Wire

__all__ = ["accept", "join", "plan"]


async def plan(api: ChatApi, link: str) -> Plan:
    """What the link leads to. Raises CoreError, Refused."""
    return plan_view((await api.connect_plan(link))["connectionPlan"])


async def accept(api: ChatApi, ref: str) -> None:
    """Join a chat that is there: by a contact's invitation, or prepared by a link. Raises CoreError, Refused."""
    chat = chat_of((await api.get_chat(ref, count(0)))["chatInfo"])
    if chat is None or chat.state not in ("prepared", "invited"):
        raise Refused("Nothing is left to join here.")
    if chat.state == "invited":
        await api.link.send(checked_command(f"/_join {ref}"))
    else:
        await _connect(api, ref)


async def join(api: ChatApi, link: str) -> str | None:
    """Join a group or connect to a contact; the chat's reference, None when it comes later. Raises CoreError,
    Refused."""
    planned = await api.connect_plan(link)
    shown = plan_view(planned["connectionPlan"])
    if not shown["can"]:
        raise Refused(shown["text"])
    if ref := shown.get("chat"):
        await _connect(api, ref)
        return ref
    prepared = await _prepare(api, planned, link)
    if prepared is None:
        await api.connect_link(planned["connLink"], False)
        return None
    chat = chat_of(prepared["chatInfo"])
    assert chat is not None
    try:
        await _connect(api, chat.ref)
    except CoreError:
        await api.delete_chat(chat.ref, notify=False)
        raise
    return chat.ref


async def _prepare(api: ChatApi, planned: Wire, target: str) -> Wire | None:
    """The chat that the link's own data describe; None for a link without data."""
    outer, link = planned["connectionPlan"], planned["connLink"]
    if text_of(outer, "type") == "groupLink":
        inner = obj(outer, "groupLinkPlan")
        direct = obj(inner, "groupSLinkInfo_").get("direct") is not False
        data = obj(inner, "groupSLinkData_")
        return await api.prepare_group(link, data, direct=direct, domain=_domain(inner, target)) if data else None
    inner = obj(outer, "contactAddressPlan") or obj(outer, "invitationLinkPlan")
    data = obj(inner, "contactSLinkData_")
    return await api.prepare_contact(link, data, domain=_domain(inner, target)) if data else None


def _domain(inner: Wire, target: str) -> str | None:
    """The name that was resolved, as `/_prepare` takes it; None when a link was."""
    verified = obj(inner, "verifiedDomain")
    if not verified or target[:1] not in ("@", "#"):
        return None
    domain, top = text_of(verified, "domain"), text_of(verified, "nameTLD")
    return f"{domain}.{top}" if domain and top and not verified.get("subDomain") else target[1:]


async def _connect(api: ChatApi, ref: str) -> None:
    if ref.startswith("#"):
        await api.connect_group(int(ref[1:]), None)
        return
    await api.connect_contact(int(ref[1:]), False)
