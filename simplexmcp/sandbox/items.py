"""Chat items: making them, and keeping each chat in the order in which the core reads it."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import markdown
from simplexmcp.sandbox.preferences import (
    CONTACT_FEATURES,
    GROUP_FEATURES,
    contact_feature_text,
    full_group_preferences,
    group_feature_text,
)
from simplexmcp.sandbox.state import BANNER_TIME, Item
from simplexmcp.sandbox.times import order_key

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Contact, CoreState, Group, Member

__all__ = [
    "ItemIndex",
    "add_item",
    "banner",
    "contact_features",
    "content_text",
    "direct_e2ee",
    "group_e2ee",
    "group_event",
    "group_features",
]

JsonObject = dict[str, Any]
Key = tuple[str, int]

_UNKNOWN_TEXT = "This conversation is protected by end-to-end encryption"
_E2EE_TEXT = f"{_UNKNOWN_TEXT} with perfect forward secrecy, repudiation and break-in recovery."
_PQ_TEXT = (
    "This conversation is protected by quantum resistant end-to-end encryption. "
    "It has perfect forward secrecy, repudiation and quantum resistant break-in recovery."
)


class ItemIndex:
    """The items of each chat in reading order: direct chats by creation, groups by the items' time."""

    def __init__(self, state: CoreState) -> None:
        self._state = state
        self._chats: dict[str, list[Key]] = {}
        self._shared: dict[str, list[int]] = {}
        for item in state.items.values():
            self.add(item)

    @staticmethod
    def key(item: Item) -> Key:
        """Sort key of an item in its chat."""
        return (order_key(item.created if item.chat[0] == "@" else item.ts), item.item_id)

    def add(self, item: Item) -> None:
        """A new item of its chat."""
        insort(self._chats.setdefault(item.chat, []), self.key(item))
        if item.shared_id is not None:
            self._shared.setdefault(item.shared_id, []).append(item.item_id)

    def remove(self, item: Item) -> None:
        """An item that is gone."""
        keys = self._chats[item.chat]
        at = bisect_left(keys, self.key(item))
        del keys[at]

    def share(self, item: Item, shared: str) -> None:
        """Give an item the shared id under which its sender knows it."""
        item.shared_id = shared
        self._shared.setdefault(shared, []).append(item.item_id)

    def by_shared_id(self, shared: str, ref: str | None = None) -> list[Item]:
        """Items with this shared message id, in all chats or one."""
        rows = [self._state.items[n] for n in self._shared.get(shared, ()) if n in self._state.items]
        return [row for row in rows if ref is None or row.chat == ref]

    def drop_chat(self, ref: str) -> list[int]:
        """Forget a chat; the ids of its items."""
        return [number for _, number in self._chats.pop(ref, [])]

    def keys(self, ref: str) -> list[Key]:
        """The keys of a chat, oldest first. Do not change the list."""
        return self._chats.get(ref, [])

    def last(self, ref: str, scope: int | None = None) -> Item | None:
        """The last item of a chat in a scope."""
        for _, number in reversed(self.keys(ref)):
            item = self._state.items[number]
            if item.scope == scope:
                return item
        return None


def add_item(core: SimulatedCore, ref: str, content: JsonObject, text: str, **fields: Any) -> Item:
    """Store a new item. `fields` may set `ts` and everything else of Item; the default is a local time."""
    state = core.state
    now = fields.pop("created", None) or core.now()
    received = content["type"].startswith("rcv")
    status = fields.pop("status", None) or {"type": _first_status(content, received)}
    state.last_item += 1
    row = Item(
        item_id=state.last_item,
        chat=ref,
        received=received,
        ts=fields.pop("ts", None) or now,
        created=now,
        updated=now,
        text=text,
        status=status,
        content=content,
        **fields,
    )
    state.items[row.item_id] = row
    core.index.add(row)
    _touch(core, row)
    return row


_NEW_EVENTS = frozenset({"userRole", "userDeleted", "groupDeleted", "newMemberPendingReview"})


def _first_status(content: JsonObject, received: bool) -> str:
    if not received:
        return "sndNew"
    kind = content["type"]
    if kind in ("rcvMsgContent", "rcvGroupInvitation", "rcvModerated"):
        return "rcvNew"
    if kind == "rcvGroupEvent" and content["rcvGroupEvent"]["type"] in _NEW_EVENTS:
        return "rcvNew"
    return "rcvRead"


def _touch(core: SimulatedCore, row: Item) -> None:
    """A new item moves its chat up when somebody wrote it or has to read it."""
    number = int(row.chat[1:])
    if row.scope is not None or (row.received and row.status["type"] != "rcvNew"):
        return
    chat = core.state.contacts.get(number) if row.chat[0] == "@" else core.state.groups.get(number)
    if chat is not None:
        chat.chat_ts = row.created


def content_text(content: JsonObject) -> str:
    """`itemText` of a message."""
    text = content.get("text", "")
    if content.get("type") == "voice":
        seconds = int(content.get("duration", 0))
        spoken = f"voice message ({seconds // 60:02d}:{seconds % 60:02d})"
        return f"{spoken}; {text}" if text else spoken
    return text if isinstance(text, str) else ""


def formatted(text: str) -> tuple[list[JsonObject] | None, bool]:
    """`formattedText` of a text and whether it has a link."""
    parts = markdown.parse(text)
    links = ("uri", "hyperLink", "simplexLink")
    return parts, any(p.get("format", {}).get("type") in links for p in parts or ())


def banner(core: SimulatedCore, ref: str) -> Item:
    """The first item of every chat."""
    return add_item(core, ref, {"type": "chatBanner"}, "chat banner", ts=BANNER_TIME)


def direct_e2ee(core: SimulatedCore, contact: Contact, *, pq: bool | None) -> Item:
    """The note about encryption in a contact's chat; `pq` None: not known before it is connected."""
    info: JsonObject = {} if pq is None else {"pqEnabled": pq}
    text = _UNKNOWN_TEXT if pq is None else _PQ_TEXT if pq else _E2EE_TEXT
    return add_item(core, f"@{contact.contact_id}", {"type": "rcvDirectE2EEInfo", "e2eeInfo": info}, text)


def group_e2ee(core: SimulatedCore, group: Group, member: Member | None, scope: int | None = None) -> Item:
    """The note about encryption in a group, from `member` or (None) one's own."""
    kind = "snd" if member is None else "rcv"
    content = {"type": f"{kind}GroupE2EEInfo", "e2eeInfo": {"pqEnabled": False}}
    key = None if member is None else member.member_key
    return add_item(core, f"#{group.group_id}", content, _E2EE_TEXT, member=key, scope=scope)


def contact_features(core: SimulatedCore, contact: Contact) -> list[Item]:
    """The feature items of a contact's chat."""
    merged = core.contact_json(contact)["mergedPreferences"]
    out: list[Item] = []
    for name in CONTACT_FEATURES:
        enabled = merged[name]["enabled"]
        content = {"type": "rcvChatFeature", "feature": name, "enabled": enabled}
        out.append(add_item(core, f"@{contact.contact_id}", content, contact_feature_text(name, enabled)))
    return out


def group_feature(core: SimulatedCore, group: Group, name: str, member: Member | None, **fields: Any) -> Item:
    """One feature item of a group, from `member` or (None) one's own."""
    preference = full_group_preferences(group.profile.get("groupPreferences"))[name]
    kind = "snd" if member is None else "rcv"
    shown = {key: value for key, value in preference.items() if key == "enable"}
    content: JsonObject = {"type": f"{kind}GroupFeature", "groupFeature": name, "preference": shown}
    if preference["enable"] == "on" and (role := preference.get("role")):
        content["memberRole_"] = role
    key = None if member is None else member.member_key
    text = group_feature_text(name, preference)
    return add_item(core, f"#{group.group_id}", content, text, member=key, **fields)


def group_features(core: SimulatedCore, group: Group, member: Member | None, **fields: Any) -> list[Item]:
    """All ten feature items of a group."""
    return [group_feature(core, group, name, member, **fields) for name in GROUP_FEATURES]


def group_event(
    core: SimulatedCore, group: Group, event: JsonObject, text: str, member: Member | None, **fields: Any
) -> Item:
    """An event item of a group, from `member` or (None) one's own."""
    kind = "snd" if member is None else "rcv"
    content = {"type": f"{kind}GroupEvent", f"{kind}GroupEvent": event}
    key = None if member is None else member.member_key
    return add_item(core, f"#{group.group_id}", content, text, member=key, **fields)
