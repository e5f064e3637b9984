"""Chat items as the agent reads them. Pure, and careful: what comes from peers may be of any shape.

A message is `{item, at, from, text, kind, reply_to?, mentions_me?, edited?, deleted?, file?}`; `from` is "me"
or `{name, member?, role?, bot?}`, `file` is `{name, size, state, path?}`. Service items (joins, features,
banners, damaged items) are no messages. All of it is data from other people: names are made visible and short,
texts are passed on as they are, whatever they claim.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from simplexmcp import inert

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simplexmcp.chats import Chat

__all__ = [
    "FILE_LIMIT",
    "FILE_STATES",
    "QUOTE_LIMIT",
    "RESULT_LIMIT",
    "ChatFile",
    "FileView",
    "Quoted",
    "file_of",
    "fitting",
    "is_live",
    "is_message",
    "is_received",
    "is_unread",
    "item_id",
    "message",
    "quoted",
    "shown_name",
]

RESULT_LIMIT = 60_000
"""Characters of a tool's result as JSON, at most."""

QUOTE_LIMIT = 1000
"""Characters of a quoted text that are given along with the answer to it."""

FILE_LIMIT = 1 << 30
"""Bytes of a file that somebody may send; with a badge, the core's own limit of 5 GiB."""

_BADGE_LIMIT = 5 << 30
_RESERVE = 2_000
_NAME_LIMIT = 120
_KINDS = frozenset({"text", "link", "image", "video", "voice", "file", "report", "chat"})
# Tuples, since what the core says may be no text: nothing else can be looked up in a set.
_OWN = ("directSnd", "groupSnd", "localSnd")
_BOTS = ("bot", "agent")
_FRACTION = re.compile(r"\.[0-9]+(?=Z$|[+-]|$)")
FILE_STATES: dict[str, Literal["uploading", "offered", "receiving", "received", "failed", "cancelled"]] = {
    "sndStored": "uploading",
    "sndTransfer": "uploading",
    "sndWarning": "uploading",
    "sndComplete": "offered",
    "sndCancelled": "cancelled",
    "sndError": "failed",
    "rcvInvitation": "offered",
    "rcvAborted": "offered",
    "rcvAccepted": "receiving",
    "rcvTransfer": "receiving",
    "rcvWarning": "receiving",
    "rcvComplete": "received",
    "rcvCancelled": "cancelled",
    "rcvError": "failed",
    "invalid": "failed",
}
"""The state of a file by the core's word for it; an unknown word is a failed file."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """A message that a reply quotes: its text, whether it is an own one, and its content on the wire (for its
    size)."""

    text: str
    own: bool
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatFile:
    """The file of a message as the core has it. `name` and `size` (bytes) are what its sender says of it, `kind` and
    `content` are the message's; `status` is the core's word, `source` the path that it names, complete or not."""

    file_id: int
    item: int
    name: str
    size: int
    kind: str
    status: str
    own: bool = False
    source: str = ""
    progress: tuple[int, int] = (0, 0)
    """Bytes that came, of all, as it is stored by the servers; (0, 0) when it is not being received."""
    reason: dict[str, Any] = field(default_factory=dict[str, Any])
    """The core's object of what went wrong with it."""
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    limit: int = FILE_LIMIT
    """Bytes that its sender may send."""

    @property
    def state(self) -> str:
        """uploading, offered, receiving, received, failed or cancelled. The core calls a file received wherever it
        is: `FileView` says what is here."""
        state = FILE_STATES.get(self.status, "failed")
        return "failed" if state in ("offered", "receiving") and not self.own and self.is_too_large else state

    @property
    def is_too_large(self) -> bool:
        """True when it is announced larger than its sender may send."""
        return self.size > self.limit


class FileView(Protocol):
    """Who knows which files are here."""

    def look(self, chat: Chat, file: ChatFile) -> tuple[str, Path | None]:
        """The state of a file as the agent sees it, and the path of a completed download."""
        ...


def item_id(item: Any) -> int | None:
    """The number of a chat item; None when it is damaged."""
    value = _object(item, "meta").get("itemId")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_message(item: Any) -> bool:
    """True for what somebody wrote, received or own; false for service items and damaged ones."""
    return (
        _content(item).get("type") in ("rcvMsgContent", "sndMsgContent")
        and item_id(item) is not None
        and isinstance(_content(item).get("msgContent"), dict)
    )


def is_received(item: Any) -> bool:
    """True for a message of somebody else."""
    return is_message(item) and _content(item).get("type") == "rcvMsgContent"


def is_unread(item: Any) -> bool:
    """True for any item, service items too, that the core counts as unread."""
    return _object(_object(item, "meta"), "itemStatus").get("type") == "rcvNew"


def is_live(item: Any) -> bool:
    """True while its sender still types: the text is not final."""
    meta = _object(item, "meta")
    return meta.get("itemLive") is True and meta.get("itemDeleted") is None


def message(chat: Chat, item: Any, kept: FileView | None = None) -> dict[str, Any] | None:
    """A chat item of `chat` as the agent reads it; None when it is no message. A deleted message has no
    text and no file. Without `kept`, no file has a path."""
    number = item_id(item)
    if number is None or not is_message(item):
        return None
    meta = _object(item, "meta")
    content = _object(_content(item), "msgContent")
    deleted = meta.get("itemDeleted") is not None
    result: dict[str, Any] = {
        "item": number,
        "at": _FRACTION.sub("", _text(meta, "itemTs")),
        "from": _sender(chat, item),
        "text": "" if deleted else _body(content, meta),
        "kind": _kind(content),
    }
    if reply := _reply(item):
        result["reply_to"] = reply
    for key, flag in (
        ("mentions_me", meta.get("userMention")),
        ("edited", meta.get("itemEdited")),
        ("deleted", deleted),
    ):
        if flag is True:
            result[key] = True
    if not deleted and (file := file_of(item, chat)):
        result["file"] = _shown_file(chat, file, kept)
    return result


def quoted(item: Any) -> Quoted | None:
    """What a reply to `item` quotes; None when it cannot be quoted (no message, deleted)."""
    if not is_message(item) or _object(item, "meta").get("itemDeleted") is not None:
        return None
    content = _object(_content(item), "msgContent")
    name = _text(_object(item, "file"), "fileName")
    text = _text(content, "text") or name
    own = _object(item, "chatDir").get("type") in _OWN
    kept = dict(content) if content.get("type") in ("image", "video", "link") else {"type": content.get("type")}
    return Quoted(text=text, own=own, content=kept | {"text": text})


def file_of(item: Any, chat: Chat | None = None) -> ChatFile | None:
    """The file of a message; None without one. `chat` is asked whether a contact may send larger ones."""
    file, content = _object(item, "file"), _object(_content(item), "msgContent")
    number, file_id = item_id(item), _count(file, "fileId")
    if number is None or not file_id or not is_message(item):
        return None
    status = _object(file, "fileStatus")
    return ChatFile(
        file_id=file_id, item=number, name=_text(file, "fileName"), size=_count(file, "fileSize"), kind=_kind(content),
        status=_text(status, "type"), own=_content(item).get("type") == "sndMsgContent",
        source=_text(_object(file, "fileSource"), "filePath"),
        progress=(_count(status, "rcvProgress"), _count(status, "rcvTotal")),
        reason=_object(status, "rcvFileError"), content=content, limit=_limit(chat, item),
    )  # fmt: skip


def fitting(messages: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The first messages, at most `limit`, that a result holds; at least one, so that reading goes on."""
    room = RESULT_LIMIT - _RESERVE
    kept: list[dict[str, Any]] = []
    for entry in messages[:limit]:
        room -= len(json.dumps(entry, ensure_ascii=False)) + 2
        if kept and room < 0:
            break
        kept.append(entry)
    return kept


def shown_name(name: str) -> str:
    """A name of others in one line, with unseen characters drawn (`<U+202E>`), and cut when it is very
    long."""
    text = inert.visible(" ".join(name.split()))
    return text if len(text) <= _NAME_LIMIT else text[:_NAME_LIMIT] + "…"


def _sender(chat: Chat, item: dict[str, Any]) -> dict[str, Any] | str:
    direction = _object(item, "chatDir")
    kind = direction.get("type")
    if kind in _OWN or (kind is None and _content(item).get("type") == "sndMsgContent"):
        return "me"
    if kind != "groupRcv":  # a contact, or a channel that posts without naming a member
        sender: dict[str, Any] = {"name": shown_name(chat.name)}
        return sender | {"bot": True} if chat.kind == "bot" else sender
    member = _object(direction, "groupMember")
    profile = _object(member, "memberProfile")
    name = _text(profile, "displayName") or _text(member, "localDisplayName")
    sender = {"name": shown_name(name)}
    if isinstance(number := member.get("groupMemberId"), int):
        sender["member"] = number
    if role := _text(member, "memberRole"):
        sender["role"] = role
    if profile.get("peerType") in _BOTS:
        sender["bot"] = True
    return sender


def _body(content: dict[str, Any], meta: dict[str, Any]) -> str:
    text = content.get("text")
    return text if isinstance(text, str) and text else _text(meta, "itemText")


def _reply(item: dict[str, Any]) -> dict[str, Any] | None:
    quote = _object(item, "quotedItem")
    if not quote:
        return None
    text = _text(_object(quote, "content"), "text")
    reply: dict[str, Any] = {}
    if isinstance(number := quote.get("itemId"), int):
        reply["item"] = number
    reply["text"] = text if len(text) <= QUOTE_LIMIT else text[:QUOTE_LIMIT] + "…"
    return reply


def _shown_file(chat: Chat, file: ChatFile, kept: FileView | None) -> dict[str, Any]:
    state, path = (file.state, None) if kept is None else kept.look(chat, file)
    shown: dict[str, Any] = {"name": shown_name(file.name), "size": file.size, "state": state}
    return shown if path is None else shown | {"path": str(path)}


def _kind(content: dict[str, Any]) -> str:
    kind = content.get("type")
    return kind if isinstance(kind, str) and kind in _KINDS else "unknown"


def _limit(chat: Chat | None, item: dict[str, Any]) -> int:
    member = _object(_object(item, "chatDir"), "groupMember")
    profile = _object(member, "memberProfile") if member else _object(chat.info if chat else {}, "profile")
    return _BADGE_LIMIT if _object(profile, "localBadge") else FILE_LIMIT


def _content(item: Any) -> dict[str, Any]:
    return _object(item, "content")


def _object(node: Any, key: str) -> dict[str, Any]:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _count(node: dict[str, Any], key: str) -> int:
    value = node.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
