"""Reading: chats and their pages, item details, marking as read."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, itemshapes, shapes
from simplexmcp.sandbox.composing import ref_parts
from simplexmcp.sandbox.descriptions import servers_of
from simplexmcp.sandbox.editing import chat_of, find_item

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.state import Group, Item

__all__ = [
    "get_chat",
    "item_info",
    "list_chats",
    "list_contacts",
    "read_chat",
    "read_items",
]

JsonObject = dict[str, Any]


def list_contacts(core: SimulatedCore, a: Arguments) -> Event:
    """`/_contacts U`: those with a connection."""
    del a
    mine = [c for c in core.state.contacts.values() if c.user_id == core.user.user_id]
    shown = [core.contact_json(c) for c in mine if c.conn_id is not None]
    return core.event("contactsList", contacts=shown)


# All chats


def list_chats(core: SimulatedCore, a: Arguments) -> Event:
    """`/_get chats U [pcc=on] count=N`: newest first."""
    user = core.user
    state = core.state
    rows: list[tuple[str, str, Any]] = [
        (c.chat_ts, f"@{c.contact_id}", None)
        for c in state.contacts.values()
        if c.user_id == user.user_id and c.contact_id != user.contact_id
    ]
    rows += [(g.chat_ts, f"#{g.group_id}", None) for g in state.groups.values() if g.user_id == user.user_id]
    rows.append((_seconds(user.created), "*", user))
    if a.on("pcc"):
        rows += [
            (c.updated or c.created, ":", c)
            for c in state.connections.values()
            if c.entity_id is None and c.kind == "contact" and c.user_id == user.user_id
        ]
    rows.sort(key=lambda row: row[0].rstrip("Z"), reverse=True)
    if a.has("json"):
        rows = [row for row in rows if _query_wants(core, a.object(), row[1])]
    return core.event("apiChats", chats=[_chat_preview(core, ref, x) for _, ref, x in rows[: a.number("count")]])


def _query_wants(core: SimulatedCore, query: JsonObject, ref: str) -> bool:
    """Whether a chat is in the result of `{"type":"filters",…}` or `{"type":"search","search":TEXT}`."""
    if query.get("type") == "filters" and {"favorite", "unread"} <= query.keys():
        wanted = query["unread"] is True and query["favorite"] is False
        everything = query["unread"] is False and query["favorite"] is False
        return everything or (wanted and ref[0] in "@#" and _stats(core, _rows(core, ref, None))["unreadCount"] > 0)
    if query.get("type") != "search" or not isinstance(query.get("search"), str):
        raise errors.parse_error()
    if ref[0] not in "@#":
        return False
    table = core.state.contacts if ref[0] == "@" else core.state.groups
    return query["search"].casefold() in table[int(ref[1:])].name.casefold()


def _chat_preview(core: SimulatedCore, ref: str, extra: Any) -> JsonObject:
    if ref == "*":
        notes = {
            "noteFolderId": extra.notes_id,
            "userId": extra.user_id,
            "createdAt": _seconds(extra.created),
            "updatedAt": _seconds(extra.created),
            "chatTs": _seconds(extra.created),
            "favorite": False,
            "unread": False,
        }
        info: JsonObject = {"type": "local", "noteFolder": notes}
        return {"chatInfo": info, "chatItems": [], "chatStats": shapes.ZERO_STATS}
    if ref == ":":
        info = {"type": "contactConnection", "contactConnection": shapes.pending_connection(extra)}
        return {"chatInfo": info, "chatItems": [], "chatStats": shapes.ZERO_STATS}
    last = core.index.last(ref)
    if last is not None and last.content["type"] == "chatBanner" and len(core.index.keys(ref)) == 1:
        last = None
    shown = [] if last is None else [itemshapes.chat_item(core.state, last, core.seconds())]
    stats = _stats(core, _rows(core, ref, None))
    return {"chatInfo": shapes.chat_info(core.state, ref), "chatItems": shown, "chatStats": stats}


def _seconds(text: str) -> str:
    return text.rstrip("Z").partition(".")[0] + "Z"


def _rows(core: SimulatedCore, ref: str, scope: int | None) -> list[Item]:
    table = core.state.items
    rows = [table[number] for _, number in core.index.keys(ref)]
    return [row for row in rows if row.scope == scope]


def _stats(core: SimulatedCore, rows: list[Item]) -> JsonObject:
    unread = [row for row in rows if row.status["type"] == "rcvNew"]
    del core
    return {
        "unreadCount": len(unread),
        "unreadMentions": sum(row.user_mention for row in unread),
        "reportsCount": 0,
        "minUnreadItemId": unread[0].item_id if unread else 0,
        "unreadChat": False,
    }


# One chat


def get_chat(core: SimulatedCore, a: Arguments) -> Event:
    """`/_get chat REF [content=TAG] PAGE [search=TEXT]`."""
    ref = a.text("ref")
    if ref[0] == "*":
        return _notes(core, ref)
    chat = chat_of(core, ref)
    _, number, scope = ref_parts(ref)
    if scope is not None and chat[0] == "@":
        raise errors.parse_error()
    if scope:
        member = core.state.members.get(scope)
        if member is None or member.group_id != number:
            raise errors.store_error("groupMemberNotFound", groupMemberId=scope)
    page = _Page(core, chat, scope, a)
    shown, stats, navigation = page.read()
    if scope == 0 and a.has("initial"):
        _open_support(core, core.group(number))
    now = core.seconds()
    out = {
        "chatInfo": shapes.chat_info(core.state, chat, scope),
        "chatItems": [itemshapes.chat_item(core.state, row, now) for row in shown],
        "chatStats": stats,
    }
    response = core.event("apiChat", chat=out)
    if navigation is not None:
        response["navInfo"] = navigation
    return response


def _notes(core: SimulatedCore, ref: str) -> Event:
    """The folder of notes to oneself, which is always empty here."""
    if int(ref[1:]) != core.user.notes_id:
        raise errors.store_error("noteFolderNotFound", noteFolderId=int(ref[1:]))
    return core.event("apiChat", chat=_chat_preview(core, "*", core.user))


def _open_support(core: SimulatedCore, group: Group) -> None:
    """Looking at the own support conversation begins it."""
    own = core.membership(group)
    if own.support is None:
        own.support = {"chatTs": core.now(), "unread": 0, "memberAttention": 0, "mentions": 0}


class _Page:
    """One page of a chat: which items, and the numbers that come with it."""

    def __init__(self, core: SimulatedCore, chat: str, scope: int | None, a: Arguments) -> None:
        self.core, self.chat, self.scope, self.a = core, chat, scope, a
        self.search = a.text("search") if a.has("search") else None
        self.content = a.text("content") if a.has("content") else None
        if self.content is not None and scope is not None:
            raise errors.error("internalError", message="content filter is not supported with scope")
        self.rows = [row for row in _rows(core, chat, scope) if self._wanted(row)]

    def _wanted(self, row: Item) -> bool:
        if self.content is not None:
            kind = row.content.get("msgContent", {}).get("type")
            if self.content == "link":
                if not row.has_link:
                    return False
            elif kind != self.content:
                return False
        return self.search is None or _matches(row.text, self.search)

    def read(self) -> tuple[list[Item], JsonObject, JsonObject | None]:
        """The items, chatStats and navInfo."""
        a = self.a
        if a.has("count"):
            count = a.number("count")
            return (self.rows[-count:] if count else []), shapes.ZERO_STATS, None
        if a.has("after"):
            at = self._place(a.number("after")) + 1
            return self.rows[at : at + a.number("after_count")], shapes.ZERO_STATS, None
        if a.has("before"):
            at = self._place(a.number("before"), inclusive=False)
            return self.rows[max(0, at - a.number("before_count")) : at], shapes.ZERO_STATS, None
        if a.has("around"):
            return self._around(find_item(self.core, self.chat, a.number("around")), a.number("around_count"))
        return self._initial(a.number("initial"))

    def _place(self, number: int, *, inclusive: bool = True) -> int:
        """The index of an item in the page's rows; where it would be when the page does not show it."""
        row = find_item(self.core, self.chat, number)
        at = bisect_left(self.rows, self.core.index.key(row), key=self.core.index.key)
        found = at < len(self.rows) and self.rows[at].item_id == number
        return at if found or not inclusive else at - 1

    def _around(self, pivot: Item, count: int) -> tuple[list[Item], JsonObject, JsonObject]:
        at = bisect_left(self.rows, self.core.index.key(pivot), key=self.core.index.key)
        found = at < len(self.rows) and self.rows[at].item_id == pivot.item_id
        after = at + 1 if found else at
        shown = [*self.rows[max(0, at - count) : at], pivot, *self.rows[after : after + count]]
        stats = _stats(self.core, _rows(self.core, self.chat, self.scope))
        return shown, stats, self._navigation(shown[-1])

    def _navigation(self, last: Item) -> JsonObject:
        """What comes after the page, in all scopes."""
        keys = self.core.index.keys(self.chat)
        at = bisect_left(keys, self.core.index.key(last)) + 1
        later = [self.core.state.items[number] for _, number in keys[at:]]
        unread = sum(row.status["type"] == "rcvNew" for row in later)
        return {"afterUnread": unread, "afterTotal": len(later)}

    def _initial(self, count: int) -> tuple[list[Item], JsonObject, JsonObject]:
        if self.search is not None:
            raise errors.store_error("internalError", message="initial chat pagination doesn't support search")
        stats = _stats(self.core, self.rows)
        if not stats["unreadCount"]:
            shown = self.rows[-count:] if count else []
            if self.chat[0] == "@":
                stats = dict(shapes.ZERO_STATS)
            return shown, stats, {"afterUnread": 0, "afterTotal": 0}
        viewed = [row for row in self.rows if row.viewed is not None or row.content["type"] == "sndMsgContent"]
        pivot = viewed[-1] if viewed else self.core.state.items[stats["minUnreadItemId"]]
        return self._around(pivot, count)


def _matches(text: str, pattern: str) -> bool:
    """SQL LIKE with % on both sides: case-insensitive, `%` and `_` are wildcards."""
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    return re.search("".join(parts), text, re.IGNORECASE | re.DOTALL) is not None


# Details and reading marks


def item_info(core: SimulatedCore, a: Arguments) -> Event:
    """`/_get item info REF I`."""
    chat = chat_of(core, a.text("ref"))
    row = find_item(core, chat, a.number("item"))
    versions = row.versions
    if not versions and "msgContent" in row.content:
        version = {"chatItemVersionId": row.item_id, "msgContent": row.content["msgContent"]}
        if row.formatted is not None:
            version["formattedText"] = row.formatted
        versions = [{**version, "itemVersionTs": row.ts, "createdAt": row.ts}]
    info: JsonObject = {"itemVersions": versions}
    if chat[0] == "#" and not row.received:
        info["memberDeliveryStatuses"] = [
            {"groupMemberId": int(key), **_member_status(core, step)} for key, step in row.delivery.items()
        ]
    file = core.state.files.get(row.file or 0)
    if core.network.faults.tells_servers and file is not None and file.description:
        info["fileXftpServers"] = servers_of(file.description)
    return core.event("chatItemInfo", chatItem=core.item_json(row), chatItemInfo=info)


def _member_status(core: SimulatedCore, step: str) -> JsonObject:
    status: JsonObject = {"type": "rcvd", "msgRcptStatus": "ok"} if step == "rcvd" else {"type": step}
    out: JsonObject = {"memberDeliveryStatus": status}
    if step in ("sent", "rcvd"):
        out["sentViaProxy"] = (core.network_config or {}).get("smpProxyMode") == "always"
    return out


def _reading_chat(core: SimulatedCore, ref: str) -> str:
    sign, number, _ = ref_parts(ref)
    if sign == "@" and number not in core.state.contacts:
        raise errors.store_error("userNotFoundByContactId", contactId=number)
    if sign == "#" and number not in core.state.groups:
        raise errors.store_error("userNotFoundByGroupId", groupId=number)
    return f"{sign}{number}"


def _view(core: SimulatedCore, row: Item) -> None:
    if row.status["type"] == "rcvNew":
        row.status = {"type": "rcvRead"}
        row.viewed = core.now()
        row.updated = row.viewed


def read_items(core: SimulatedCore, a: Arguments) -> Event:
    """`/_read chat items REF IDS`: others' ids are ignored."""
    chat = _reading_chat(core, a.text("ref"))
    _, _, scope = ref_parts(a.text("ref"))
    for number in a.numbers("ids"):
        row = core.state.items.get(number)
        if row is not None and row.chat == chat:
            _view(core, row)
            if scope is not None and row.scope == scope:
                _note_read(core, core.group(int(chat[1:])), row)
    return core.event("itemsReadForChat", chatInfo=shapes.chat_info(core.state, chat))


def _note_read(core: SimulatedCore, group: Group, row: Item) -> None:
    """One message of a support conversation was read."""
    member = core.state.members.get(row.scope or group.membership)
    if member is None or member.support is None:
        return
    waited = member.support["memberAttention"]
    left = max(0, waited - (row.member == member.member_key))
    group.attention -= waited > 0 and left == 0
    member.support = {**member.support, "unread": max(0, member.support["unread"] - 1), "memberAttention": left}


def read_chat(core: SimulatedCore, a: Arguments) -> Event:
    """`/_read chat REF`: without a scope, all scopes of a group."""
    chat = _reading_chat(core, a.text("ref"))
    _, number, scope = ref_parts(a.text("ref"))
    for _, item in core.index.keys(chat):
        row = core.state.items[item]
        if scope is None or row.scope == scope:
            _view(core, row)
    if scope is None:
        return {"type": "cmdOk", "user_": core.user_json()}
    group = core.group(number)
    member = core.state.members.get(scope or group.membership)
    if member is None or member.group_id != number:
        raise errors.store_error("groupMemberNotFound", groupMemberId=scope)
    if member.support is not None:
        group.attention -= member.support["memberAttention"] > 0
        member.support = {**member.support, "unread": 0, "memberAttention": 0, "mentions": 0}
    return core.event("memberSupportChatRead", groupInfo=core.group_json(group), member=core.member_json(member))
