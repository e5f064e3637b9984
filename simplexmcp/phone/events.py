"""Which items and chats a core's events and responses touch. Pure.

Those that come together are one batch: of each item the last state counts, and what is gone is not shown before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from simplexmcp.chats import chat_of
from simplexmcp.phone.texts import number, obj, text_of
from simplexmcp.phone.view import progress_of

__all__ = ["Batch", "Touched", "concerns"]

Wire = dict[str, Any]

_ITEMS = frozenset(("newChatItems", "chatItemsStatusesUpdated"))
_ITEM = frozenset(
    {
        "chatItemUpdated",
        "rcvFileDescrReady",
        "rcvFileStart",
        "rcvFileComplete",
        "sndFileCompleteXFTP",
        "rcvFileAccepted",
        "rcvFileSndCancelled",
        "rcvFileError",
        "rcvFileWarning",
        "rcvFileCancelled",
        "sndFileError",
        "sndFileWarning",
        "sndFileCancelled",
    }
)
_PROGRESS = {
    "rcvFileProgressXFTP": ("receivedSize", "totalSize"),
    "sndFileProgressXFTP": ("sentSize", "totalSize"),
}
_MEMBERS = frozenset(
    {
        "joinedGroupMember",
        "joinedGroupMemberConnecting",
        "connectedToGroupMember",
        "acceptingGroupJoinRequestMember",
        "deletedMember",
        "leftMember",
        "memberRole",
        "membersRoleUser",
        "userDeletedMembers",
        "groupMemberUpdated",
        "userJoinedGroup",
        "memberBlockedForAll",
        "memberAcceptedByOther",
        "contactAndMemberAssociated",
    }
)
_CHATS = frozenset(
    {
        "itemsReadForChat",
        "memberSupportChatRead",
        "contactConnecting",
        "contactConnected",
        "contactSndReady",
        "contactUpdated",
        "contactDeletedByContact",
        "contactDeleted",
        "groupDeletedUser",
        "groupUpdated",
        "groupLinkConnecting",
        "businessLinkConnecting",
        "deletedMemberUser",
        "groupDeleted",
        "leftMemberUser",
        "newPreparedChat",
        "startedConnectionToContact",
        "startedConnectionToGroup",
        "groupCreated",
        "chatInfoUpdated",
        "acceptingContactRequest",
        "acceptingBusinessRequest",
        "newMemberContactReceivedInv",
        "userProfileUpdated",
    }
)
_DELETED = frozenset(("chatItemsDeleted", "groupChatItemsDeleted"))
_CONCERNING = _ITEMS | _ITEM | _PROGRESS.keys() | _MEMBERS | _CHATS | _DELETED


def concerns(event: Wire) -> bool:
    """Whether an event or response changes anything on the page."""
    return event.get("type") in _CONCERNING


@final
@dataclass(slots=True)
class Touched:
    """An item that changed: with its state as the event told it, or None when the event tells an older one."""

    info: Wire
    item: Wire | None
    new: bool


@final
@dataclass(slots=True)
class Batch:
    """What some events changed. Keys are (reference, item)."""

    items: dict[tuple[str, int], Touched] = field(default_factory=dict[tuple[str, int], Touched])
    gone: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    progress: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    members: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, event: Wire) -> None:
        """Take in the next event."""
        kind = text_of(event, "type")
        if kind in _ITEMS:
            for entry in _list(event, "chatItems"):
                self._touch(entry, new=kind == "newChatItems")
        elif kind in _PROGRESS:
            self._move(event, *_PROGRESS[kind])
        elif kind in _ITEM:
            # Events of files may show the item as it was before.
            self._touch(obj(event, "chatItem") or obj(event, "chatItem_"), stale="File" in kind)
        elif kind == "chatItemsDeleted":
            for entry in _list(event, "chatItemDeletions"):
                self._delete(entry)
        elif kind == "groupChatItemsDeleted":
            ref = f"#{number(obj(event, 'groupInfo'), 'groupId')}"
            for item in event.get("chatItemIDs") or []:
                self._drop(ref, item)
        elif kind in _MEMBERS and (group := number(obj(event, "groupInfo"), "groupId")):
            self.members[f"#{group}"] = None

    def _touch(self, entry: Wire, *, new: bool = False, stale: bool = False) -> None:
        info, item = obj(entry, "chatInfo"), obj(entry, "chatItem")
        key = _key(info, item)
        if key is None:
            return
        known = self.items.get(key)
        self.items[key] = Touched(info, None if stale else item, new or (known is not None and known.new))

    def _move(self, event: Wire, done: str, total: str) -> None:
        entry = obj(event, "chatItem_") or obj(event, "chatItem")
        key = _key(obj(entry, "chatInfo"), obj(entry, "chatItem"))
        if key is not None:
            self.progress[key] = progress_of(number(event, done), number(event, total))

    def _delete(self, entry: Wire) -> None:
        if left := obj(entry, "toChatItem"):
            self._touch(left)
            return
        before = obj(entry, "deletedChatItem")
        key = _key(obj(before, "chatInfo"), obj(before, "chatItem"))
        if key is not None:
            self._drop(*key)

    def _drop(self, ref: str, item: int) -> None:
        self.items.pop((ref, item), None)
        self.progress.pop((ref, item), None)
        self.gone.setdefault(ref, []).append(item)


def _key(info: Wire, item: Wire) -> tuple[str, int] | None:
    chat, number_ = chat_of(info), number(obj(item, "meta"), "itemId")
    return (chat.ref, number_) if chat is not None and number_ else None


def _list(event: Wire, key: str) -> list[Wire]:
    value = event.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
