"""Reading the file of a message again, and what events say of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp import messages
from simplexmcp.core.api import around
from simplexmcp.errors import CoreError, Refused

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.core.api import ChatApi
    from simplexmcp.core.link import Event
    from simplexmcp.messages import ChatFile

__all__ = [
    "deleted",
    "deleted_entries",
    "ended_by",
    "event_entry",
    "event_file_id",
    "read_file",
    "reason_of",
    "touched_items",
    "unknown_servers",
]

_GONE = frozenset({"chatItemNotFound", "contactNotFound", "groupNotFound"})
_REASONS = {
    "auth": "it is gone from the file server, which keeps files for about two days",
    "noFile": "it is gone from the file server, which keeps files for about two days",
    "blocked": "the file server blocked it",
    "relay": "the file server failed",
}


async def read_file(api: ChatApi, chat: Chat, file: ChatFile) -> ChatFile:
    """The file of the message as it is now. Raises Refused when the message, its file or its chat was deleted,
    CoreError when nobody knows."""
    try:
        read = await api.get_chat(chat.ref, around(file.item, 0))
    except CoreError as error:
        if error.tag.rpartition("/")[2] in _GONE:
            raise deleted(chat, file) from None
        raise
    for item in read["chatItems"]:
        if messages.item_id(item) != file.item or (item.get("meta") or {}).get("itemDeleted") is not None:
            continue
        if (now := messages.file_of(item, chat)) is not None:
            return now
    raise deleted(chat, file)


def deleted(chat: Chat, file: ChatFile) -> Refused:
    """The reason of a download whose message is not there any more."""
    return Refused(f"The message of item {file.item} in {chat.ref} was deleted.")


def ended_by(file: ChatFile) -> Refused | None:
    """Why a file cannot come any more; None when it can."""
    if file.status == "rcvCancelled":
        return Refused("The sender cancelled the file.")
    if file.status in ("rcvError", "invalid"):
        return Refused(f"The file could not be received: {reason_of(file.reason)}.")
    if file.own:
        return Refused("This is a file that the agent sent itself.")
    if file.is_too_large:
        return Refused(f"The file is larger than its sender may send ({file.size} bytes); it is not received.")
    if file.size <= 0:
        return Refused("The sender announced an empty file; it is not received.")
    return None


def reason_of(reason: dict[str, Any]) -> str:
    """What the core's object of a failed file means, for people. Nothing of the peer's is in it."""
    tag = reason.get("type")
    if isinstance(tag, str) and tag in _REASONS:
        return _REASONS[tag]
    text = next((reason[key] for key in ("internalErr", "fileError") if isinstance(reason.get(key), str)), "")
    if "resource exhausted" in text or "No space left" in text:
        return "the disk is full"
    path = "/".join(_tags(reason))
    if path.endswith(("AUTH", "NO_FILE")):
        return _REASONS["auth"]
    if path.startswith("FILE"):
        return f"it could not be written here ({path})"
    return f"the core gave up ({path})" if path else "the core gave up"


def _tags(node: Any) -> list[str]:
    """The names of an error of the agent from the outside in: `XFTP`, `AUTH`."""
    tags: list[str] = []
    while isinstance(node, dict) and len(tags) < 5:
        if isinstance(tag := node.get("type"), str) and tag.isascii() and tag.replace("_", "").isalnum():
            tags.append(tag[:40])
        node = next((value for key, value in node.items() if key.endswith(("Err", "Error")) and value), None)
    if isinstance(node, str) and node.isascii() and node.replace("_", "").isalnum():
        tags.append(node[:40])
    return tags


def event_entry(event: Event) -> dict[str, Any]:
    """The `{"chatInfo", "chatItem"}` of an event about a file; empty when it has none."""
    return _object(event, "chatItem") or _object(event, "chatItem_")


def event_file_id(event: Event) -> int | None:
    """The number of the file that an event is about."""
    number = _object(event, "rcvFileTransfer").get("fileId")
    if number is None:
        number = _object(_object(event_entry(event), "chatItem"), "file").get("fileId")
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def deleted_entries(event: Event) -> list[dict[str, Any]]:
    """The `{"chatInfo", "chatItem"}` that an event deletes, as they were."""
    deletions = event.get("chatItemDeletions")
    return [_object(deletion, "deletedChatItem") for deletion in (deletions if isinstance(deletions, list) else ())]


def touched_items(event: Event) -> set[int]:
    """The numbers of the items that an event deletes or changes."""
    numbers: list[Any] = list(ids) if isinstance(ids := event.get("chatItemIDs"), list) else []
    entries = [*deleted_entries(event), event_entry(event)]
    numbers += [messages.item_id(_object(entry, "chatItem")) for entry in entries]
    return {number for number in numbers if isinstance(number, int)}


def unknown_servers(error: dict[str, Any]) -> tuple[int, list[str]] | None:
    """The file and the servers of the core's `fileNotApproved`; None for another error."""
    inner = _object(error, "errorType")
    number, servers = inner.get("fileId"), inner.get("unknownServers")
    if inner.get("type") != "fileNotApproved" or not isinstance(number, int) or not isinstance(servers, list):
        return None
    return number, [server for server in servers if isinstance(server, str)]


def _object(node: Any, key: str) -> dict[str, Any]:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}
