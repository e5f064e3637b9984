"""What the page shows of chats, members and plans: the core's objects to those of the protocol. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from simplexmcp.chats import chat_of
from simplexmcp.phone.texts import iso_time, mention_of, menu_entries, number, obj, one_line, picture, text_of
from simplexmcp.phone.view import ROLES, Viewer, item_view

if TYPE_CHECKING:
    from simplexmcp import chats
    from simplexmcp.phone.protocol import Chat, ChatKind, ChatState, Member, Plan, Preview, Role

__all__ = ["chat_view", "member_views", "plan_view", "scopes_of", "viewer_of"]

Wire = dict[str, Any]

_ABOUT = 1000  # characters
_LAST = 200
_HIDDEN = ("card", "unknown")
_STATES: dict[str, ChatState] = {
    "connected": "connected",
    "connecting": "connecting",
    "pending": "connecting",
    "prepared": "prepared",
    "invited": "prepared",
    "left": "left",
    "removed": "removed",
    "rejected": "removed",
}
_GONE = ("rejected", "removed", "left", "deleted")
_THERE = ("connected", "complete", "creator")
_GIVEN: tuple[Role, ...] = ("owner", "admin", "moderator", "member", "observer")


def viewer_of(info: Any) -> Viewer:
    """What `item_view` must know of the chat of a chatInfo."""
    chat = chat_of(info)
    if chat is None:
        return Viewer()
    writes = not _cannot(chat)
    return Viewer(
        name=one_line(chat.name), bot=chat.kind == "bot", commands=writes and bool(_commands(chat)), writes=writes,
        role=chat.role or "", me=text_of(obj(chat.info, "membership"), "memberId"), group=chat.ref.startswith("#"),
    )  # fmt: skip


def chat_view(entry: Any) -> Chat | None:
    """A chat of `/_get chats`, or of `/_get chat` with its items; None for what is not shown: notes, cards."""
    info = obj(entry, "chatInfo")
    chat = chat_of(info)
    if chat is None or chat.state in _HIDDEN:
        return None
    group = chat.ref.startswith("#")
    profile = obj(chat.info, "groupProfile" if group else "profile")
    shown: Chat = {
        "chat": chat.ref,
        "name": one_line(chat.name),
        "kind": cast("ChatKind", chat.kind),
        "state": _STATES.get(chat.state, "deleted"),
        "unread": number(obj(entry, "chatStats"), "unreadCount"),
        "at": iso_time(chat.info.get("chatTs") or chat.info.get("updatedAt")),
        "menu": menu_entries(_menu(chat)),
    }
    if about := (text_of(profile, "shortDescr") or text_of(profile, "description"))[:_ABOUT]:
        shown["about"] = about
    if chat.scoped:
        whom = text_of(obj(obj(obj(info, "groupChatScope"), "groupMember_"), "memberProfile"), "displayName")
        shown["name"] = one_line(f"{chat.name}: {whom or 'the admins'}")
        shown["about"] = "Only this member and the admins of the group read this."
    if image := picture(profile.get("image")):
        shown["image"] = image
    if last := _last(entry, viewer_of(info)):
        shown["last"] = last
    if cannot := _cannot(chat):
        shown["cannot"] = cannot
    if chat.state in ("prepared", "invited"):
        shown["join"] = True
    if group and not chat.scoped:
        shown["role"] = chat.role or ""
        shown["members"] = number(obj(chat.info, "groupSummary"), "currentMembers")
        if chat.kind == "group" and chat.state == "connected" and chat.role in ("admin", "owner"):
            shown["manage"] = True
    return shown


def scopes_of(group: Any, members: list[Wire]) -> list[str]:
    """The conversations with the admins of a group that exist, as references: the own one, or those of members."""
    ref = f"#{number(group, 'groupId')}"
    own = [f"{ref}(_support)"] if obj(group, "membership").get("supportChat") else []
    others = [member for member in members if member.get("supportChat")]
    return own + [f"{ref}(_support:{number(member, 'groupMemberId')})" for member in others]


def _menu(chat: chats.Chat) -> Any:
    if chat.ref.startswith("#"):
        return obj(obj(chat.info, "groupProfile"), "groupPreferences").get("commands")
    return obj(obj(chat.info, "profile"), "preferences").get("commands") if chat.kind == "bot" else None


def _commands(chat: chats.Chat) -> Any:
    """Whether commands are tappable: with a bot, or in a group that has a menu."""
    return chat.kind == "bot" or _menu(chat)


def _cannot(chat: chats.Chat) -> str:
    """Why the person cannot write here; "" when it can."""
    match _STATES.get(chat.state, "deleted"):
        case "connecting":
            return "This is not connected yet."
        case "prepared":
            return "You have not joined yet."
        case "left":
            return "You left this group."
        case "removed":
            return "You are not a member of this group any more."
        case "deleted":
            return "The group was deleted." if chat.ref.startswith("#") else "This contact deleted the chat with you."
        case _:
            reads = chat.role in ("observer", "relay") and not chat.scoped
            return "Observers can only read here." if reads else ""


def _last(entry: Any, viewer: Viewer) -> Preview | None:
    items = entry.get("chatItems") if isinstance(entry, dict) else None
    shown_items = [item_view(item, viewer) for item in (items if isinstance(items, list) else ())]
    last = max((item for item in shown_items if item is not None), key=lambda item: item["order"], default=None)
    if last is None:
        return None
    text = last.get("deleted") or "".join(part["text"] for part in last["parts"] if part["kind"] != "secret")
    if not text and (file := last.get("file")):
        text = file["name"]
    shown: Preview = {"text": " ".join(text.split())[:_LAST]}
    if last["kind"] == "message" and viewer.group:
        sender = last.get("sender")
        shown["name"] = "you" if sender is None else sender["name"]
    return shown


def member_views(group: Any, members: list[Wire]) -> list[Member]:
    """The members of a group, oneself first; those who are gone are left out."""
    own = obj(group, "membership")
    role = text_of(own, "memberRole") if text_of(own, "memberStatus") in _THERE else ""
    there = [member for member in members if text_of(member, "memberStatus") not in _GONE]
    return [_member(own, "", me=True), *(_member(member, role, me=False) for member in there)]


def _member(member: Wire, own_role: str, *, me: bool) -> Member:
    profile = obj(member, "memberProfile")
    name = one_line(text_of(profile, "displayName") or text_of(member, "localDisplayName"))
    role = text_of(member, "memberRole")
    rank = ROLES.index(own_role) if own_role in ROLES else -1
    manages = rank >= ROLES.index("admin") and (role not in ROLES or rank >= ROLES.index(role))
    return {
        "member": number(member, "groupMemberId"),
        "memberId": text_of(member, "memberId"),
        "name": name,
        "mention": mention_of(name),
        "role": role,
        "state": "connected" if text_of(member, "memberStatus") in _THERE else "connecting",
        "me": me,
        "bot": text_of(profile, "peerType") in ("bot", "agent"),
        "roles": [each for each in _GIVEN if manages and rank >= ROLES.index(each)],
        "removable": manages,
    }


def plan_view(plan: Any) -> Plan:
    """What a link leads to, from the core's connectionPlan."""
    kind = text_of(plan, "type")
    if kind == "groupLink":
        return _group_plan(obj(plan, "groupLinkPlan"))
    if kind in ("contactAddress", "invitationLink"):
        return _contact_plan(obj(plan, "contactAddressPlan" if kind == "contactAddress" else "invitationLinkPlan"))
    return {"kind": "unknown", "name": "", "can": False, "text": "This link cannot be used."}


def _group_plan(inner: Wire) -> Plan:
    data = obj(inner, "groupSLinkData_")
    profile = obj(obj(inner, "groupInfo"), "groupProfile") or obj(data, "groupProfile")
    channel = obj(inner, "groupSLinkInfo_").get("direct") is False
    word = "channel" if channel else "group"
    known = chat_of({"type": "group", "groupInfo": inner.get("groupInfo") or inner.get("groupInfo_")})
    plan: Plan = {"kind": "channel" if channel else "group", "name": "", "can": False, "text": ""}
    match text_of(inner, "type"):
        case "ok" | "connectingConfirmReconnect":
            plan.update({"can": True, "text": f"You can join this {word}."})
        case "ownLink":
            plan.update({"text": "This is the link of your own group."})
        case "known" | "connectingProhibit" if known is not None:
            joined = known.state in ("connected", "connecting")
            text = f"You are in this {word} already." if joined else f"You can join this {word}."
            plan.update({"can": known.state == "prepared", "text": text, "chat": known.ref})
        case _:
            plan.update({"text": f"This {word} cannot be joined."})
    return _with_profile(plan, profile)


def _contact_plan(inner: Wire) -> Plan:
    data = obj(inner, "contactSLinkData_")
    contact = inner.get("contact") or inner.get("contact_")
    known = chat_of({"type": "direct", "contact": contact})
    profile = obj(contact, "profile") or obj(data, "profile")
    bot = text_of(profile, "peerType") in ("bot", "agent")
    kind: ChatKind = "business" if data.get("business") is True else "bot" if bot else "contact"
    plan: Plan = {"kind": kind, "name": "", "can": False, "text": ""}
    match text_of(inner, "type"):
        case "ok" | "connectingConfirmReconnect":
            plan.update({"can": True, "text": "You can connect."})
        case "contactViaAddress":
            plan.update({"text": "This contact cannot be connected from here."})
        case "ownLink":
            plan.update({"text": "This is your own address."})
        case "known" | "connectingProhibit" if known is not None:
            joined = known.state in ("connected", "connecting")
            text = "You are connected already." if joined else "You can connect."
            plan.update({"can": known.state == "prepared", "text": text, "chat": known.ref})
        case _:
            plan.update({"text": "This link was used already, or it is being used."})
    return _with_profile(plan, profile)


def _with_profile(plan: Plan, profile: Wire) -> Plan:
    plan["name"] = one_line(text_of(profile, "displayName"))
    if about := (text_of(profile, "shortDescr") or text_of(profile, "description"))[:_ABOUT]:
        plan["about"] = about
    if image := picture(profile.get("image")):
        plan["image"] = image
    return plan
