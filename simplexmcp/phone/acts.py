"""What a tab can ask for: each request of the protocol to commands of the core of the person that it plays.

Every act raises Refused or CoreError when it cannot be done; what it changes the tabs see by the core's events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import segno

from simplexmcp.core.api import around, before, count
from simplexmcp.core.grammar import checked_command, to_json
from simplexmcp.errors import CoreError, Refused
from simplexmcp.phone import joining
from simplexmcp.phone.chatview import member_views, viewer_of
from simplexmcp.phone.requests import LINK, NAME, TEXT
from simplexmcp.phone.texts import number, obj, text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.core.link import Event
    from simplexmcp.phone.files import Uploaded
    from simplexmcp.phone.player import Player
    from simplexmcp.phone.protocol import Link, Opened
    from simplexmcp.phone.requests import Fields
    from simplexmcp.phone.texts import Wire

__all__ = ["ACTS"]

_ROLES = ("owner", "admin", "moderator", "member", "observer")


async def _ask(player: Player, command: str) -> Event:
    return await player.api.link.send(checked_command(command))


# Reading


async def _chats(player: Player, fields: Fields) -> object:
    del fields
    return {"chats": await player.chats()}


async def _open(player: Player, fields: Fields) -> Opened:
    ref, size = fields.ref(), fields.count()
    newer = False
    if fields.has("around"):
        pivot = fields.number("around")
        chat = await player.api.get_chat(ref, around(pivot, size // 2))
        items: list[Wire] = chat["chatItems"]
        older = next((at for at, item in enumerate(items) if _id(item) == pivot), 0) >= size // 2
        newer = number(obj(chat, "navInfo"), "afterTotal") > 0
    else:
        page = before(fields.number("before"), size + 1) if fields.has("before") else count(size + 1)
        chat = await player.api.get_chat(ref, page)
        items = chat["chatItems"]
        older, items = len(items) > size, items[-size:]
    viewer = viewer_of(chat["chatInfo"])
    shown = [view for item in items if (view := player.view(ref, item, viewer)) is not None]
    return {"chat": await player.chat(ref), "items": shown, "older": older and bool(shown), "newer": newer}


async def _read(player: Player, fields: Fields) -> object:
    ref = fields.ref()
    if fields.has("items"):
        await player.api.read_items(ref, fields.numbers("items"))
    else:
        await _ask(player, f"/_read chat {ref}")
    player.changed()
    return {}


async def _members(player: Player, fields: Fields) -> object:
    group, members = await player.api.list_members(fields.group())
    return {"members": member_views(group, members)}


# Writing


async def _send(player: Player, fields: Fields) -> object:
    ref, text = fields.ref(), fields.text("text", TEXT)
    if not text and not fields.has("upload"):
        raise Refused("There is nothing to send.")
    composed: Wire = {"msgContent": {"type": "text", "text": text}}
    if fields.has("quote"):
        composed["quotedItemId"] = fields.number("quote")
    if mentions := await _mentioned(player, fields):
        composed["mentions"] = mentions
    if not fields.has("upload"):
        return await _sent(player, ref, composed, live=fields.flag("live"))
    uploaded = player.files.take(fields.text("upload", NAME))
    composed |= _with_file(text, uploaded)
    try:
        return await _sent(player, ref, composed, live=False)
    except (CoreError, Refused):
        player.files.put_back(uploaded)
        raise


def _with_file(text: str, uploaded: Uploaded) -> Wire:
    content: Wire = {"type": "file", "text": text}
    if uploaded.image is not None:
        content = {"type": "image", "text": text, "image": uploaded.image}
    return {"msgContent": content, "fileSource": {"filePath": str(uploaded.path)}}


async def _sent(player: Player, ref: str, composed: Wire, *, live: bool) -> object:
    response = await _ask(player, f"/_send {ref}{' live=on' if live else ''} json {to_json([composed])}")
    return {"item": _id(response["chatItems"][0]["chatItem"])}


async def _mentioned(player: Player, fields: Fields) -> dict[str, int]:
    """The mentions of a message as the core takes them: by the numbers that its members have here."""
    mentions = fields.mentions()
    if not mentions:
        return {}
    group, members = await player.api.list_members(fields.group())
    known = {text_of(member, "memberId"): number(member, "groupMemberId") for member in members}
    own = obj(group, "membership")
    known[text_of(own, "memberId")] = number(own, "groupMemberId")
    if not all(known.get(member) for member in mentions.values()):
        raise Refused("Somebody who is mentioned is not in this group any more.")
    return {name: known[member] for name, member in mentions.items()}


async def _edit(player: Player, fields: Fields) -> object:
    ref, item_id = fields.ref(), fields.number("item")
    text = fields.text("text", TEXT)
    _, item = await player.item(ref, item_id)
    content = obj(obj(item, "content"), "msgContent")
    if not content:
        raise Refused("This message cannot be edited.")
    if not text and text_of(content, "type") == "text":
        raise Refused("A message cannot be made empty. Delete it instead.")
    body = {"msgContent": {**content, "text": text}, "mentions": await _mentioned(player, fields)}
    live = " live=on" if fields.flag("live") else ""
    await _ask(player, f"/_update item {ref} {item_id}{live} json {to_json(body)}")
    return {}


async def _delete(player: Player, fields: Fields) -> object:
    ref, item_id = fields.ref(), fields.number("item")
    _, item = await player.item(ref, item_id)
    if not fields.flag("everyone"):
        await player.api.delete_items(ref, [item_id], "internal")
    elif text_of(obj(item, "chatDir"), "type").endswith("Snd"):
        await player.api.delete_items(ref, [item_id], "broadcast")
    else:
        await _ask(player, f"/_delete member item #{fields.group()} {item_id}")
    return {}


# Files


async def _receive(player: Player, fields: Fields) -> object:
    _, item = await player.item(fields.ref(), fields.number("item"))
    file_id, name = _file(item)
    try:
        target = player.files.target(player.core.name, file_id, name)
    except OSError as error:
        raise Refused(f"There is no place for the file here ({error.strerror}).") from error
    await player.api.receive_file(file_id, str(target), approved_relays=True)
    return {}


async def _cancel(player: Player, fields: Fields) -> object:
    _, item = await player.item(fields.ref(), fields.number("item"))
    await player.api.cancel_file(_file(item)[0])
    return {}


def _file(item: Wire) -> tuple[int, str]:
    file_id = number(obj(item, "file"), "fileId")
    if not file_id:
        raise Refused("This message has no file.")
    return file_id, text_of(obj(item, "file"), "fileName")


# Joining, groups and their members


async def _plan(player: Player, fields: Fields) -> object:
    return await joining.plan(player.api, fields.text("link", LINK).strip())


async def _accept(player: Player, fields: Fields) -> object:
    await joining.accept(player.api, fields.ref())
    return {}


async def _join(player: Player, fields: Fields) -> object:
    ref = await joining.join(player.api, fields.text("link", LINK).strip())
    return {} if ref is None else {"chat": ref}


async def _role(player: Player, fields: Fields) -> object:
    role = fields.word("role")
    if role not in _ROLES:
        raise Refused(f"A role is one of {', '.join(_ROLES)}.")
    await player.api.set_member_role(fields.group(), fields.number("member"), role)
    return {}


async def _remove(player: Player, fields: Fields) -> object:
    await player.api.remove_member(fields.group(), fields.number("member"))
    return {}


async def _leave(player: Player, fields: Fields) -> object:
    if (await player.chat(f"#{fields.group()}"))["state"] not in ("connected", "connecting"):
        raise Refused("You are not in this group.")
    await player.api.leave_group(fields.group())
    return {}


async def _forget(player: Player, fields: Fields) -> object:
    ref = fields.ref()
    if "(" in ref:
        raise Refused("This belongs to the group; it goes with it.")
    if ref.startswith("#") and (await player.chat(ref))["state"] in ("connected", "connecting"):
        raise Refused("Leave the group first.")
    await player.api.delete_chat(ref)
    return {}


async def _group(player: Player, fields: Fields) -> object:
    profile = {"displayName": fields.word("name"), "fullName": "", "groupPreferences": {"history": {"enable": "on"}}}
    return {"chat": f"#{(await player.api.new_group(profile))['groupId']}"}


async def _link(player: Player, fields: Fields) -> Link:
    group = fields.group()
    role = fields.word("role") if fields.has("role") else ""
    if role not in ("", "member", "observer"):
        raise Refused("Who joins by a link is a member or an observer.")
    link = await player.api.get_group_link(group)
    if link is None:
        link = await player.api.create_group_link(group, "observer" if role == "observer" else "member")
    elif role and link.get("acceptMemberRole") != role:
        link = (await _ask(player, f"/_set link role #{group} {role}"))["groupLink"]
    return _shown_link(link["connLinkContact"])


async def _address(player: Player, fields: Fields) -> Link:
    del fields
    user = player.api.user_id
    try:
        pair = (await _ask(player, f"/_show_address {user}"))["contactLink"]["connLinkContact"]
    except CoreError as error:
        if error.tag != "errorStore/userContactLinkNotFound":
            raise
        pair = (await _ask(player, f"/_address {user}"))["connLinkContact"]
        settings = {"businessAddress": False, "autoAccept": {"acceptIncognito": False}}
        await _ask(player, f"/_address_settings {user} {to_json(settings)}")
    return _shown_link(pair)


def _shown_link(pair: Wire) -> Link:
    link = str(pair.get("connShortLink") or pair["connFullLink"])
    return {"link": link, "qr": segno.make_qr(link, error="l").png_data_uri(scale=5)}


def _id(item: Wire) -> int:
    return number(obj(item, "meta"), "itemId")


ACTS: dict[str, Callable[[Player, Fields], Awaitable[Any]]] = {
    "chats": _chats,
    "open": _open,
    "read": _read,
    "members": _members,
    "send": _send,
    "edit": _edit,
    "delete": _delete,
    "receive": _receive,
    "cancel": _cancel,
    "plan": _plan,
    "accept": _accept,
    "join": _join,
    "role": _role,
    "remove": _remove,
    "leave": _leave,
    "forget": _forget,
    "group": _group,
    "link": _link,
    "address": _address,
}
"""`do` → what is done for the person that the tab plays."""
