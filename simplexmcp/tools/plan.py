"""What a connection plan means: join (and by which commands), known already, or refused. Pure; flow 3.

The core's plan says what a link or a name leads to. `classify` reads it by the table `PLANS`; the join method
follows from what the plan offers and from what the agent asks (a message needs a chat that is prepared
first). `Plan.shown` is what the card shows and what must be equal when the approved connect reads the plan
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from simplexmcp.chats import Chat, chat_of_contact, chat_of_group
from simplexmcp.errors import CoreError, Refused, core_error
from simplexmcp.tools.trouble import sentence

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PLANS", "How", "Plan", "check_target", "classify", "host_of", "is_name"]

_NAME = re.compile(
    r"[@#][a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.IGNORECASE | re.ASCII
)
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_PATH = re.compile(r"/(?:contact|invitation|[agci])/?")
_BOTS = ("bot", "agent")


class How(Enum):
    """The commands that join."""

    PREPARED_CONTACT = "connect the contact that is prepared"
    PREPARED_GROUP = "connect the group that is prepared"
    PREPARE_CONTACT = "prepare a contact or business, connect it"
    PREPARE_CHANNEL = "prepare a channel, connect it"
    VIA_ADDRESS = "ask the address of a contact card"
    LINK = "connect the link, without a chat yet"


@dataclass(frozen=True)
class Plan:
    """What a target leads to."""

    verdict: Literal["join", "known", "refuse"]
    kind: str = "contact"
    name: str = ""
    """Empty when the link does not tell it."""
    how: How | None = None
    chat: Chat | None = None
    """The chat that is there already: known, prepared, or the card of a contact."""
    link: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] | None = None
    """What `/_prepare` gets back, as the core gave it."""
    domain: str | None = None
    reason: str = ""

    @property
    def host(self) -> str:
        """The relay that the link is on."""
        return host_of(self.link)

    @property
    def title(self) -> str:
        """Kind and name: `bot Helper`; the kind alone when the name is not told."""
        return f"{self.kind} {self.name}" if self.name else f"the {self.kind}"

    @property
    def shown(self) -> tuple[Any, ...]:
        """What must be the same when the plan is read again."""
        public = ((self.data or {}).get("groupProfile") or {}).get("publicGroup") or {}
        full, short = self.link.get("connFullLink"), self.link.get("connShortLink")
        return (self.kind, self.name, full, short, self.domain, public.get("publicGroupId"))


def is_name(target: str) -> bool:
    """True for a SimpleX name, `@name.simplex` or `#name.simplex`."""
    return target[:1] in ("@", "#")


def check_target(target: str) -> None:
    """Raises Refused unless `target` looks like a SimpleX link or name; the core is not asked about anything
    else."""
    if is_name(target):
        if target[1:].isdecimal():
            raise Refused(f"{target[:20]} is a chat of yours; use send or receive with it.")
        if not _NAME.fullmatch(target):
            raise Refused("`target` is no SimpleX name: names look like @name.simplex or #name.simplex.")
        return
    if not target.isascii() or not target.isprintable() or " " in target or not _is_link(target):
        raise Refused(
            "`target` must be a SimpleX link (https://HOST/a#…, simplex:/contact#/?…) or name (@name.simplex)."
        )


def _is_link(target: str) -> bool:
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    if not _PATH.fullmatch(parts.path) or not parts.fragment:
        return False
    if parts.scheme == "simplex":
        return not parts.netloc
    # A user part (https://simplex.chat@evil.example/…) or another port notation would hide the host.
    return parts.scheme == "https" and _HOST.fullmatch(parts.netloc) is not None


def host_of(link: dict[str, Any]) -> str:
    """The relay of a link pair as the core gave it, from the short link or the first queue of the full
    one."""
    short, full = link.get("connShortLink"), link.get("connFullLink")
    try:
        if isinstance(short, str):
            parts = urlsplit(short)
            if parts.netloc:
                return parts.netloc
            return parse_qs(parts.fragment.partition("?")[2]).get("h", [""])[0].split(",")[0]
        if isinstance(full, str):
            queue = unquote(parse_qs(urlsplit(full).fragment.partition("?")[2]).get("smp", [""])[0])
            return queue.partition("@")[2].partition("/")[0].split(",")[0]
    except ValueError:
        return ""
    return ""


def classify(target: str, response: dict[str, Any], *, message: bool) -> Plan:
    """The plan for `target` of a `connectionPlan` response; `message`: the agent sends a text along."""
    outer = _object(response, "connectionPlan")
    kind = _text(outer, "type")
    if kind == "error":
        return _refuse(sentence(CoreError("error", "the plan failed")) if not outer.get("chatError") else _why(outer))
    inner = _object(outer, f"{kind}Plan")
    read = PLANS.get((kind, _text(inner, "type")))
    if read is None:
        return _refuse(f"This core's plan {kind}/{_text(inner, 'type')} is not known; nothing was done.")
    link = {key: value for key, value in _object(response, "connLink").items() if isinstance(value, str)}
    plan = read(_Reading(target, inner, link, message))
    return _carries(plan) if message and plan.verdict == "join" else plan


@dataclass(frozen=True)
class _Reading:
    target: str
    inner: dict[str, Any]
    link: dict[str, Any]
    message: bool


def _new_contact(r: _Reading) -> Plan:
    data = r.inner.get("contactSLinkData_")
    if not isinstance(data, dict):
        return Plan("join", "contact", how=How.LINK, link=r.link)
    profile = _object(data, "profile")
    kind = "business" if data.get("business") is True else "bot" if profile.get("peerType") in _BOTS else "contact"
    how = How.PREPARE_CONTACT if r.message or is_name(r.target) else How.LINK
    return Plan("join", kind, _text(profile, "displayName"), how, None, r.link, data, _domain(r))


def _new_group(r: _Reading) -> Plan:
    data, info = _object(r.inner, "groupSLinkData_"), _object(r.inner, "groupSLinkInfo_")
    name = _text(_object(data, "groupProfile"), "displayName")
    if info.get("direct") is False:
        if not data:
            return _refuse("The channel's link tells nothing of it now; try again later.")
        return Plan("join", "channel", name, How.PREPARE_CHANNEL, None, r.link, data, _domain(r))
    return Plan("join", "group", name, How.LINK, None, r.link, data or None, _domain(r))


def _known_contact(r: _Reading) -> Plan:
    chat = chat_of_contact(r.inner.get("contact") or r.inner.get("contact_"))
    if chat is None:
        return _refuse("A connection by this link is in progress; use list to see when it is there.")
    match chat.state:
        case "connected" | "connecting":
            return Plan("known", chat.kind, chat.name, None, chat, r.link)
        case "prepared":
            return Plan("join", chat.kind, chat.name, How.PREPARED_CONTACT, chat, r.link)
        case "card":
            return Plan("join", chat.kind, chat.name, How.VIA_ADDRESS, chat, r.link)
        case _:
            return _refuse(f"The contact of this link deleted the chat; leave {chat.ref}, then connect again.")


def _known_group(r: _Reading) -> Plan:
    chat = chat_of_group(r.inner.get("groupInfo") or r.inner.get("groupInfo_"))
    if chat is None:
        return _refuse("A request to join by this link is in progress; use list to see when the group is there.")
    if chat.is_control:
        return _refuse("This is the link of your owners' chat, which no tool can use.")
    match chat.state:
        case "connected" | "connecting" | "pending":
            return Plan("known", chat.kind, chat.name, None, chat, r.link)
        case "prepared":
            return Plan("join", chat.kind, chat.name, How.PREPARED_GROUP, chat, r.link)
        case "invited":
            return _refuse(f"The agent has an invitation to this group ({chat.ref}) that it cannot accept by a link.")
        case _:
            return _refuse(f"The agent is no member of {chat.ref} any more; leave {chat.ref}, then connect again.")


def _again(r: _Reading) -> Plan:
    """A request without an answer yet; the core allows to repeat it."""
    return Plan("join", "contact", how=How.LINK, link=r.link)


def _again_group(r: _Reading) -> Plan:
    return Plan("join", "group", how=How.LINK, link=r.link)


def _own_link(_: _Reading) -> Plan:
    return _refuse("This is the agent's own link.")


def _no_relays(_: _Reading) -> Plan:
    return _refuse("This channel has no relays now, so nobody can join it; try again later.")


def _update_required(_: _Reading) -> Plan:
    return _refuse("This group needs a newer version of SimpleX than this core.")


PLANS: dict[tuple[str, str], Callable[[_Reading], Plan]] = {
    ("invitationLink", "ok"): _new_contact,
    ("invitationLink", "ownLink"): _own_link,
    ("invitationLink", "connecting"): _known_contact,
    ("invitationLink", "known"): _known_contact,
    ("contactAddress", "ok"): _new_contact,
    ("contactAddress", "ownLink"): _own_link,
    ("contactAddress", "connectingConfirmReconnect"): _again,
    ("contactAddress", "connectingProhibit"): _known_contact,
    ("contactAddress", "known"): _known_contact,
    ("contactAddress", "contactViaAddress"): _known_contact,
    ("groupLink", "ok"): _new_group,
    ("groupLink", "ownLink"): _own_link,
    ("groupLink", "connectingConfirmReconnect"): _again_group,
    ("groupLink", "connectingProhibit"): _known_group,
    ("groupLink", "known"): _known_group,
    ("groupLink", "noRelays"): _no_relays,
    ("groupLink", "updateRequired"): _update_required,
}
"""Every plan of the core, by its type and inner type, and who reads it."""


def _carries(plan: Plan) -> Plan:
    """The plan when it carries a message; else refused, since the core would drop it or fail."""
    if plan.how in (How.LINK, How.VIA_ADDRESS) and plan.kind not in ("group", "channel"):
        return _refuse("This link carries no message; connect without `message`, then send it.")
    if plan.kind in ("group", "channel"):
        return _refuse("A request to join a group carries no message; connect without `message`, then send it.")
    return plan


def _refuse(reason: str) -> Plan:
    return Plan("refuse", reason=reason)


def _why(outer: dict[str, Any]) -> str:
    return sentence(core_error(_object(outer, "chatError")))


def _domain(r: _Reading) -> str | None:
    """The name of a target that is a name, without its sign, as `/_prepare` takes it."""
    if not is_name(r.target):
        return None
    verified = _object(r.inner, "verifiedDomain")
    domain, top = _text(verified, "domain"), _text(verified, "nameTLD")
    return f"{domain}.{top}" if domain and top and not verified.get("subDomain") else r.target[1:]


def _object(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""
