"""What the page shows of an item: the core's objects to those of the protocol. Pure.

The objects come from other people: what is damaged or unknown is left out or shown as plain text, never an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.messages import FILE_STATES
from simplexmcp.phone.texts import iso_time, number, obj, one_line, order, parts, picture, plain, text_of

if TYPE_CHECKING:
    from simplexmcp.phone.protocol import Can, FileState, FileView, From, Item, Quote, Status

__all__ = ["ROLES", "Viewer", "item_view", "progress_of"]

Wire = dict[str, Any]

ROLES = ("observer", "author", "member", "moderator", "admin", "owner")
"""In ascending order."""

_BOTS = ("bot", "agent")
_MESSAGES = ("rcvMsgContent", "sndMsgContent")
_DELETED = {
    "rcvDeleted": "deleted",
    "sndDeleted": "deleted",
    "rcvModerated": "deleted by a moderator",
    "sndModerated": "deleted by a moderator",
    "rcvBlocked": "blocked",
}
_UNTOLD = frozenset(
    f"{way}{what}"
    for way in ("rcv", "snd")
    for what in ("DirectE2EEInfo", "GroupE2EEInfo", "ChatFeature", "ChatPreference", "GroupFeature")
) | {"chatBanner"}
_TOLD = {"contact deleted": "deleted this contact"}
"""Where the core's words do not go on after a name."""
_WITHOUT_TEXT = {"image": "picture", "video": "video", "voice": "voice message", "file": "file"}
_FILE_STATES: dict[str, FileState] = {**FILE_STATES, "sndComplete": "sent"}


@final
@dataclass(frozen=True, slots=True)
class Viewer:
    """What must be known of the chat and the person to show an item."""

    name: str = ""
    """Of the chat: who writes in a chat with one contact."""
    bot: bool = False
    commands: bool = False
    """Whether commands are tappable here."""
    writes: bool = False
    """Whether the person can write here."""
    role: str = ""
    """Of the person in a group."""
    me: str = ""
    """The person's memberId in a group."""
    group: bool = False


def item_view(item: Any, viewer: Viewer) -> Item | None:
    """An item as it is shown; None for what is not told: banners, encryption, features, damaged ones."""
    meta, content = obj(item, "meta"), obj(item, "content")
    item_id, kind = number(meta, "itemId"), text_of(content, "type")
    if not item_id or not kind or kind in _UNTOLD:
        return None
    mine = text_of(obj(item, "chatDir"), "type") in ("directSnd", "groupSnd", "localSnd")
    sender = None if mine else _sender(obj(item, "chatDir"), viewer)
    message = kind in _MESSAGES or kind in _DELETED
    shown: Item = {
        "id": item_id,
        "order": order(meta.get("itemTs"), meta.get("createdAt"), item_id, group=viewer.group),
        "at": iso_time(meta.get("itemTs")),
        "kind": "message" if message else "event",
        "mine": mine,
        "unread": text_of(obj(meta, "itemStatus"), "type") == "rcvNew",
        "parts": [],
        "text": "",
        "can": {},
    }
    if sender is not None:
        shown["sender"] = sender
    if not message:
        text = _invitation(content) or text_of(meta, "itemText")
        shown["parts"] = [plain(_event(text, sender))]
        return shown
    _add_message(shown, item, meta, kind, viewer)
    return shown


def _add_message(shown: Item, item: Wire, meta: Wire, kind: str, viewer: Viewer) -> None:
    content = obj(obj(item, "content"), "msgContent")
    if deleted := _DELETED.get(kind) or _deleted(obj(meta, "itemDeleted")):
        shown["deleted"] = deleted
    else:
        # Of a voice message the core makes a text.
        text = text_of(content, "text") if text_of(content, "type") != "voice" else text_of(meta, "itemText")
        shown["text"] = text
        shown["parts"] = parts(item, text, commands=viewer.commands, me=viewer.me)
        if preview := picture(content.get("image")) or picture(obj(content, "preview").get("image")):
            shown["image"] = preview
        if file := _file(obj(item, "file")):
            shown["file"] = file
        if mentions := {name: text_of(who, "memberId") for name, who in obj(item, "mentions").items()}:
            shown["mentions"] = mentions
    if quote := obj(item, "quotedItem"):
        shown["quote"] = _quote(quote, viewer)
    if shown["mine"] and (status := _status(obj(meta, "itemStatus"))):
        shown["status"] = status
    if meta.get("userMention") is True:
        shown["mentionsMe"] = True
    if meta.get("itemEdited") is True:
        shown["edited"] = True
    if meta.get("itemLive") is True:
        shown["live"] = True
    if meta.get("itemForwarded"):
        shown["forwarded"] = True
    shown["can"] = _can(shown, item, meta, viewer)


def _sender(direction: Wire, viewer: Viewer) -> From:
    member = obj(direction, "groupMember")
    if not member:
        sender: From = {"name": viewer.name}
        return {**sender, "bot": True} if viewer.bot else sender
    profile = obj(member, "memberProfile")
    name = one_line(text_of(profile, "displayName") or text_of(member, "localDisplayName"))
    sender = {
        "name": name,
        "member": number(member, "groupMemberId"),
        "memberId": text_of(member, "memberId"),
        "role": text_of(member, "memberRole"),
    }
    return {**sender, "bot": True} if text_of(profile, "peerType") in _BOTS else sender


def _invitation(content: Wire) -> str:
    """What a contact does with an invitation to a group; "" for other items. The group is a chat of its own."""
    profile = obj(obj(content, "groupInvitation"), "groupProfile")
    if text_of(content, "type") != "rcvGroupInvitation":
        return ""
    return f"invites you to the group {one_line(text_of(profile, 'displayName'))} as {text_of(content, 'memberRole')}"


def _event(text: str, sender: From | None) -> str:
    """A sentence about what happened: the core's words, with who did it."""
    if sender is not None and sender["name"]:
        return f"{sender['name']} {_TOLD.get(text, text)}"
    return text if text.startswith(("you ", "please ")) else f"You {text}"


def _deleted(deleted: Wire) -> str:
    kind = text_of(deleted, "type")
    if kind == "moderated":
        profile = obj(obj(deleted, "byGroupMember"), "memberProfile")
        return f"deleted by {one_line(text_of(profile, 'displayName')) or 'a moderator'}"
    return {"": "", "deleted": "deleted", "blocked": "blocked", "blockedByAdmin": "blocked by an admin"}.get(
        kind, "deleted"
    )


def _quote(quote: Wire, viewer: Viewer) -> Quote:
    direction, content = obj(quote, "chatDir"), obj(quote, "content")
    name = _sender(direction, viewer)["name"] if obj(direction, "groupMember") else ""
    if text_of(direction, "type") in ("directSnd", "groupSnd"):
        name = "you"
    elif text_of(direction, "type") == "directRcv":
        name = viewer.name
    text = text_of(content, "text") or _WITHOUT_TEXT.get(text_of(content, "type"), "")
    shown: Quote = {"name": name, "text": text}
    if item := number(quote, "itemId"):
        shown["item"] = item
    return shown


def _status(status: Wire) -> Status | None:
    everybody = text_of(status, "sndProgress") != "partial"
    match text_of(status, "type"):
        case "sndNew":
            return {"mark": "sending", "text": "being sent"}
        case "sndSent":
            return {"mark": "sent", "text": "sent" if everybody else "sent to some"}
        case "sndRcvd":
            return {"mark": "received", "text": "received"} if everybody else {"mark": "sent", "text": "got by some"}
        case "sndWarning":
            return {"mark": "sending", "text": "not sent yet, trying again"}
        case "sndError" | "sndErrorAuth":
            return {"mark": "failed", "text": "not delivered"}
        case _:
            return None


def _file(file: Wire) -> FileView | None:
    if not file:
        return None
    status = obj(file, "fileStatus")
    state = _FILE_STATES.get(text_of(status, "type"), "failed")
    name = one_line(text_of(file, "fileName")) or "file"
    shown: FileView = {"name": name, "size": number(file, "fileSize"), "state": state}
    if state in ("uploading", "receiving"):
        shown["can"] = "cancel"
        shown["progress"] = progress_of(number(status, "sndProgress"), number(status, "sndTotal")) or progress_of(
            number(status, "rcvProgress"), number(status, "rcvTotal")
        )
    elif state == "offered":
        shown["can"] = "receive"
    elif state == "failed":
        shown["error"] = "The sender could not upload it." if "snd" in text_of(status, "type") else "It did not come."
    return shown


def progress_of(done: int, total: int) -> float:
    """A share of 0 to 1."""
    return min(1.0, done / total) if total else 0.0


def _can(shown: Item, item: Wire, meta: Wire, viewer: Viewer) -> Can:
    if shown.get("deleted") or not viewer.writes:
        return {}
    can: Can = {"reply": True} if not shown.get("live") else {}
    if shown["mine"]:
        if meta.get("editable") is True:
            can["edit"] = True
        if meta.get("deletable") is True:
            can["everyone"] = True
    elif _moderates(viewer.role, text_of(obj(obj(item, "chatDir"), "groupMember"), "memberRole")):
        can["everyone"] = True
    return can


def _moderates(role: str, author: str) -> bool:
    if role not in ROLES or author not in ROLES:
        return False
    return ROLES.index(role) >= max(ROLES.index("moderator"), ROLES.index(author))
