"""A method for each command of the core that flows 1 to 16 use, in the core's exact grammar, over any link.

Results are the core's own objects, taken out of the response. A response that is not what the command
promises raises CoreError with the tag `unexpected/TYPE`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, final

from simplexmcp.core.grammar import (
    after,
    around,
    before,
    checked_command,
    checked_ref,
    checked_word,
    count,
    id_list,
    initial,
    link_words,
    on_off,
    to_json,
)
from simplexmcp.errors import CoreError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simplexmcp.core.grammar import Page
    from simplexmcp.core.link import Event, Link

__all__ = ["ChatApi", "DeleteMode", "Wire", "after", "around", "before", "count", "initial"]

Wire = dict[str, Any]
"""An object of the core, as it came."""

DeleteMode = Literal["broadcast", "internal", "internalMark", "history"]

_AGENT_CONN_ID = re.compile(r"[A-Za-z0-9_=-]{1,64}")


@final
class ChatApi:
    """The commands of the core. Every method raises CoreError (LinkLost when the link is gone), and
    Refused, before anything is sent, for an argument that no command can hold. `@4`, `#15` are chats."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._user_id: int | None = None

    @property
    def user_id(self) -> int:
        """The active user, as `active_user` or `create_user` found it last."""
        if self._user_id is None:
            raise CoreError("error/noActiveUser", "The core has no active user yet.")
        return self._user_id

    # --- lifecycle and user: flow 1

    async def version(self) -> str:
        """The core's version, such as `7.0.0.6`."""
        info = _object(await self._ask("/version", "versionInfo"), "versionInfo")
        return _text(info, "version")

    async def active_user(self) -> Wire | None:
        """The active user, or None when the core has none. Flow 1."""
        try:
            user = _object(await self._ask("/user", "activeUser"), "user")
        except CoreError as error:
            if error.tag != "error/noActiveUser":
                raise
            self._user_id = None
            return None
        self._user_id = _number(user, "userId")
        return user

    async def create_user(self, display_name: str, peer_type: str = "bot") -> Wire:
        """Makes a user, the active one. Flow 1. `error/invalidDisplayName` carries the name that would do."""
        profile = {"displayName": display_name, "fullName": "", "peerType": peer_type}
        options = {"pastTimestamp": False, "userChatRelay": False, "clientService": False}
        command = f"/_create user {to_json({'profile': profile, **options})}"
        user = _object(await self._ask(command, "activeUser"), "user")
        self._user_id = _number(user, "userId")
        return user

    async def list_users(self) -> list[Wire]:
        """Every user of the database, as `{"user": …, "unreadCount": …}`."""
        return _objects(await self._ask("/users", "usersList"), "users")

    async def set_network(self) -> Wire:
        """Messages only through a proxy relay, so that no peer's relay sees this machine's address. Flow 1.
        Not kept by the core: to be said at every start, before `start`."""
        command = "/network socks=off smp-proxy=always smp-proxy-fallback=protected"
        return _object(await self._ask(command, "networkConfig"), "networkConfig")

    async def set_temp_folder(self, path: str) -> None:
        """Where the core works on files; made when missing, read by the core at `start`. Flow 1."""
        # The core drops blanks at the end of a command, and would take another folder.
        if not path or path != path.rstrip():
            raise Refused("The path of a temporary folder must not end in a blank.")
        await self._ask(f"/_temp_folder {path}", "cmdOk")

    async def start(self) -> bool:
        """Starts the chats; False when they ran already. Flow 1. Events may come before this returns."""
        response = await self._ask("/_start", "chatStarted", "chatRunning")
        return response.get("type") == "chatStarted"

    async def stop(self) -> None:
        """Stops the chats. A `simplex-chat` that runs as an own process usually ends with it: `link/lost`."""
        await self._ask("/_stop", "chatStopped")

    # --- servers

    async def user_servers(self) -> list[Wire]:
        """The user's relays by operator; the entry without `operator` holds the custom ones."""
        return _objects(await self._ask(f"/_servers {self.user_id}", "userServers"), "userServers")

    async def set_smp_servers(self, uris: Sequence[str]) -> None:
        """Makes these the user's message relays. Needs started chats."""
        await self._set_servers("/smp", uris)

    async def set_xftp_servers(self, uris: Sequence[str]) -> None:
        """Makes these the user's file relays. Needs started chats."""
        await self._set_servers("/xftp", uris)

    async def _set_servers(self, command: str, uris: Sequence[str]) -> None:
        words = [checked_word(uri, "the address of a relay") for uri in uris]
        if not words:
            raise Refused("At least one relay is needed.")
        await self._ask(f"{command} {' '.join(words)}", "cmdOk")

    # --- lists

    async def list_groups(self) -> list[Wire]:
        """Every groupInfo, left and deleted groups too, in no order."""
        return _objects(await self._ask(f"/_groups {self.user_id}", "groupsList"), "groups")

    async def list_contacts(self) -> list[Wire]:
        """Contacts with a connection. Prepared ones are only in `list_chats`."""
        return _objects(await self._ask(f"/_contacts {self.user_id}", "contactsList"), "contacts")

    async def list_chats(self, newest: int) -> list[Wire]:
        """The `newest` chats that changed last, with real chatStats; pending and prepared ones too."""
        command = f"/_get chats {self.user_id} pcc=on count={newest:d}"
        return _objects(await self._ask(command, "apiChats"), "chats")

    # --- groups: flows 1 and 12

    async def new_group(self, profile: Wire) -> Wire:
        """groupInfo of a new group that the user owns. Flow 1."""
        command = f"/_group {self.user_id} {to_json(profile)}"
        return _object(await self._ask(command, "groupCreated"), "groupInfo")

    async def update_group_profile(self, group_id: int, profile: Wire) -> Wire:
        """Replaces the whole profile and gives the new groupInfo: start from `groupInfo.groupProfile`."""
        command = f"/_group_profile #{group_id:d} {to_json(profile)}"
        return _object(await self._ask(command, "groupUpdated"), "toGroup")

    async def set_custom(self, ref: str, data: Wire | None) -> None:
        """Replaces our own data of a contact or group (None clears it); local, kept over restarts."""
        tail = "" if data is None else f" {to_json(data)}"
        await self._ask(f"/_set custom {checked_ref(ref)}{tail}", "cmdOk")

    async def list_members(self, group_id: int) -> tuple[Wire, list[Wire]]:
        """groupInfo and the members other than the user; gone members may still be among them."""
        group = _object(await self._ask(f"/_members #{group_id:d}", "groupMembers"), "group")
        return _object(group, "groupInfo"), _objects(group, "members")

    async def create_group_link(self, group_id: int, role: Literal["member", "observer"]) -> Wire:
        """groupLink of a new link; `errorStore/duplicateGroupLink` when there is one. Flows 1 and 12."""
        command = f"/_create link #{group_id:d} {role}"
        return _object(await self._ask(command, "groupLinkCreated"), "groupLink")

    async def get_group_link(self, group_id: int) -> Wire | None:
        """groupLink, or None when the group has none."""
        try:
            return _object(await self._ask(f"/_get link #{group_id:d}", "groupLink"), "groupLink")
        except CoreError as error:
            if error.tag != "errorStore/groupLinkNotFound":
                raise
            return None

    async def delete_group_link(self, group_id: int) -> bool:
        """False when there was none. Flows 1 and 12."""
        try:
            await self._ask(f"/_delete link #{group_id:d}", "groupLinkDeleted")
        except CoreError as error:
            if error.tag != "errorStore/groupLinkNotFound":
                raise
            return False
        return True

    async def set_member_role(self, group_id: int, member_id: int, role: str) -> list[Wire]:
        """The members that changed: none when the member had the role. One at a time, as owners are made."""
        command = f"/_member role #{group_id:d} {member_id:d} {checked_word(role, 'a role')}"
        return _objects(await self._ask(command, "membersRoleUser"), "members")

    async def remove_member(self, group_id: int, member_id: int) -> list[Wire]:
        """The members that were removed. Flow 12."""
        return _objects(await self._ask(f"/_remove #{group_id:d} {member_id:d}", "userDeletedMembers"), "members")

    # --- connecting: flow 3

    async def connect_plan(self, target: str) -> Event:
        """What a link or name is: the response, with `connLink` (pass it on) and `connectionPlan`. Flow 3."""
        word = checked_word(target, "a SimpleX link or name")
        response = await self._ask(f"/_connect plan {self.user_id} {word}", "connectionPlan")
        _object(response, "connLink")
        _object(response, "connectionPlan")
        return response

    async def prepare_contact(self, conn_link: Wire, data: Wire, domain: str | None = None) -> Wire:
        """The new chat (a group for a business) of a `contactSLinkData_`; `domain` has no `@`. Flow 3."""
        command = f"/_prepare contact {self.user_id} {link_words(conn_link, domain)} {to_json(data)}"
        return _object(await self._ask(command, "newPreparedChat"), "chat")

    async def prepare_group(self, conn_link: Wire, data: Wire, direct: bool = True, domain: str | None = None) -> Wire:
        """The new chat of the plan's `groupSLinkData_`; `direct` as in its `groupSLinkInfo_`. Flow 3."""
        words = link_words(conn_link, domain, direct=direct)
        return _object(
            await self._ask(f"/_prepare group {self.user_id} {words} {to_json(data)}", "newPreparedChat"),
            "chat",
        )

    async def connect_contact(self, contact_id: int, incognito: bool, message: str | None = None) -> Event:
        """Connects a prepared contact: `startedConnectionToContact` or `contactAlreadyExists`. Flow 3."""
        command = f"/_connect contact @{contact_id:d}{_incognito(incognito)}{_message(message)}"
        return await self._ask(command, "startedConnectionToContact", "contactAlreadyExists")

    async def connect_group(self, group_id: int, incognito: bool | None, message: str | None = None) -> Event:
        """Joins a prepared group, business or channel: `startedConnectionToGroup`. Flow 3. `incognito` None
        leaves it as it is; a message is for businesses only (`error/connReqMessageProhibited`)."""
        command = f"/_connect group #{group_id:d}{_incognito(incognito)}{_message(message)}"
        return await self._ask(command, "startedConnectionToGroup")

    async def connect_link(self, conn_link: Wire, incognito: bool) -> Event:
        """Connects without a prepared chat. Flow 3. `sentInvitation` or `sentConfirmation` with a pending
        `connection`, or `contactAlreadyExists`."""
        command = f"/_connect {self.user_id}{_incognito(incognito)} {link_words(conn_link)}"
        return await self._ask(command, "sentInvitation", "sentConfirmation", "contactAlreadyExists")

    async def connect_via_address(self, contact_id: int, incognito: bool) -> Wire:
        """The contact of a card, whose address is asked now. A business replaces it by a group. Flow 3."""
        command = f"/_connect contact {self.user_id}{_incognito(incognito)} {contact_id:d}"
        return _object(await self._ask(command, "sentInvitationToContact"), "contact")

    # --- leaving: flow 7

    async def leave_group(self, group_id: int) -> Wire:
        """groupInfo after leaving. The core even leaves twice: look at the membership first. Flow 7."""
        return _object(await self._ask(f"/_leave #{group_id:d}", "leftMemberUser"), "groupInfo")

    async def delete_chat(self, ref: str, notify: bool = True) -> None:
        """Deletes a contact or group with all its messages; its number goes to the next one. Flow 7."""
        tail = "" if notify else " notify=off"
        await self._ask(f"/_delete {checked_ref(ref)} full{tail}", "contactDeleted", "groupDeletedUser")

    async def delete_pending(self, conn_id: int) -> None:
        """Forgets a pending connection (`pccConnId`)."""
        await self._ask(f"/_delete :{conn_id:d}", "contactConnectionDeleted")

    # --- messages: flows 4 to 6

    async def get_chat(self, ref: str, page: Page, search: str | None = None) -> Wire:
        """The chat (`chatInfo`, `chatItems` oldest first, `chatStats`), with `navInfo` where the page gives
        it. Flows 4 and 5. In `search`, `%` stands for any text."""
        tail = f" search={search}" if search else ""
        response = await self._ask(f"/_get chat {checked_ref(ref)} {page}{tail}", "apiChat")
        chat = _object(response, "chat")
        _object(chat, "chatInfo")
        for item in _objects(chat, "chatItems"):
            _check_item(item)
        return {**chat, "navInfo": response["navInfo"]} if isinstance(response.get("navInfo"), dict) else chat

    async def send_messages(self, ref: str, composed: Sequence[Wire]) -> list[Wire]:
        """Sends composed messages and gives their items `{"chatInfo", "chatItem"}`, one each. Flow 4."""
        if not composed:
            raise Refused("There is no message to send.")
        response = await self._ask(f"/_send {checked_ref(ref)} json {to_json(list(composed))}", "newChatItems")
        items = _objects(response, "chatItems")
        if len(items) != len(composed):
            raise CoreError("unexpected/newChatItems", "The core sent another number of messages than asked.")
        for entry in items:
            _check_item(_object(entry, "chatItem"))
        return items

    async def send_text(
        self, ref: str, text: str, quoted: int | None = None, mentions: dict[str, int] | None = None
    ) -> Wire:
        """Sends one text and gives its item; `mentions` maps names as they stand in it to members. Flow 4."""
        composed: Wire = {"msgContent": {"type": "text", "text": text}}
        if quoted is not None:
            composed["quotedItemId"] = quoted
        if mentions:
            composed["mentions"] = mentions
        return (await self.send_messages(ref, [composed]))[0]

    async def update_item(
        self, ref: str, item_id: int, msg_content: Wire, mentions: dict[str, int] | None = None
    ) -> Wire:
        """Edits an own message of the last 24 hours and gives its item, also when nothing changed. Flow 3."""
        body = to_json({"msgContent": msg_content, "mentions": mentions or {}})
        command = f"/_update item {checked_ref(ref)} {item_id:d} json {body}"
        entry = _object(await self._ask(command, "chatItemUpdated", "chatItemNotChanged"), "chatItem")
        _check_item(_object(entry, "chatItem"))
        return entry

    async def delete_items(self, ref: str, ids: Iterable[int], mode: DeleteMode = "broadcast") -> list[Wire]:
        """The deletions. Unknown ids are left out."""
        command = f"/_delete item {checked_ref(ref)} {id_list(ids)} {mode}"
        return _objects(await self._ask(command, "chatItemsDeleted"), "chatItemDeletions")

    async def read_items(self, ref: str, ids: Iterable[int]) -> None:
        """Marks items read; unknown and read ids are ignored, and no ids ask nothing. Flow 5."""
        if wanted := list(ids):
            await self._ask(f"/_read chat items {checked_ref(ref)} {id_list(wanted)}", "itemsReadForChat")

    async def item_info(self, ref: str, item_id: int) -> Event:
        """`chatItem` and `chatItemInfo` (versions, newest first, and deliveries)."""
        return await self._ask(f"/_get item info {checked_ref(ref)} {item_id:d}", "chatItemInfo")

    # --- files: flows 13 to 16

    async def receive_file(self, file_id: int, path: str, approved_relays: bool = False) -> Wire:
        """Starts receiving into the new file `path`, made empty at once, and gives `{"chatInfo", "chatItem"}`. Flow 13.
        `error/fileNotApproved` names unknown servers (`unknownServers`) unless `approved_relays`."""
        # The path is the rest of the command: blanks at its end would be lost, other beginnings be options.
        if not path.startswith("/") or path != path.rstrip():
            raise Refused("The path of a file must be absolute and must not end in a blank.")
        option = " approved_relays=on" if approved_relays else ""
        response = await self._ask(
            f"/freceive {file_id:d}{option} {path}", "rcvFileAccepted", "rcvFileAcceptedSndCancelled"
        )
        if response.get("type") == "rcvFileAcceptedSndCancelled":
            raise CoreError("error/fileCancelled", "The sender cancelled the file.")
        return _object(response, "chatItem")

    async def cancel_file(self, file_id: int) -> None:
        """Ends a transfer; a received one can be started again. Flow 16. `error/fileCancel` when it has ended."""
        await self._ask(f"/fcancel {file_id:d}", "rcvFileCancelled", "sndFileCancelled")

    async def file_description(self, file_id: int) -> str | None:
        """The description of a received file, None while its sender uploads. It holds the key of the file: not for
        logs. Flow 13, for cores that do not say the file's servers."""
        rows = await self._sql(
            "chat",
            "SELECT d.file_descr_complete, d.file_descr_text FROM rcv_files r"  # noqa: S608 - a number
            " JOIN xftp_file_descriptions d ON d.file_descr_id = r.file_descr_id"
            f" WHERE r.file_id = {file_id:d}",
        )
        complete, _, text = (rows[0] if rows else "").partition("|")
        return text if complete == "1" and text else None

    # --- deliveries: flow 11

    async def connection_ids(self, group_id: int) -> list[str]:
        """The ids of the ready connections to a group's members, for `pending_deliveries`. Flow 11."""
        rows = await self._sql(
            "chat",
            "SELECT c.agent_conn_id FROM group_members m"  # noqa: S608 - a number
            " JOIN connections c ON c.group_member_id = m.group_member_id"
            f" WHERE m.group_id = {group_id:d} AND c.conn_status IN ('ready', 'snd-ready')",
        )
        return [row for row in rows if _AGENT_CONN_ID.fullmatch(row)]

    async def pending_deliveries(self, agent_conn_ids: Iterable[str]) -> int:
        """How many messages still wait for a relay on these connections. Flow 11."""
        ids = list(agent_conn_ids)
        for conn_id in ids:
            if not _AGENT_CONN_ID.fullmatch(conn_id):
                raise Refused("This is not the id of a connection.")
        if not ids:
            return 0
        # Checked above: only letters, digits, "-", "_" and "=" come between the quotes.
        listed = ", ".join(f"CAST('{conn_id}' AS BLOB)" for conn_id in ids)
        rows = await self._sql(
            "agent",
            "SELECT count(*) FROM snd_message_deliveries"  # noqa: S608 - ids that were checked above
            f" WHERE failed = 0 AND conn_id IN ({listed})",
        )
        if len(rows) != 1 or not rows[0].isdecimal():
            raise CoreError("unexpected/sQLResult", "The core did not count its pending deliveries.")
        return int(rows[0])

    async def _sql(self, database: Literal["chat", "agent"], query: str) -> list[str]:
        """The rows without the line of names. Never with text from outside: `/sql` can write."""
        rows = (await self._ask(f"/sql {database} {query}", "sQLResult")).get("rows")
        if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
            raise CoreError("unexpected/sQLResult", "The core's answer has no rows.")
        return rows[1:]

    async def _ask(self, command: str, *expected: str) -> Event:
        response = await self.link.send(checked_command(command))
        if (tag := response.get("type")) not in expected:
            raise CoreError(f"unexpected/{tag}", f"The core answered {tag} to {' '.join(command.split()[:2])}.")
        return response


def _incognito(value: bool | None) -> str:
    return "" if value is None else f" incognito={on_off(value)}"


def _message(text: str | None) -> str:
    # As JSON: the text form would lose blanks at the end.
    return "" if text is None else f" json {to_json({'type': 'text', 'text': text})}"


def _object(parent: Wire, key: str) -> Wire:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise _missing(parent, key)
    return value


def _objects(parent: Wire, key: str) -> list[Wire]:
    value = parent.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _missing(parent, key)
    return value


def _check_item(item: Wire) -> None:
    """What everybody takes for granted of a message of a chat."""
    _number(_object(item, "meta"), "itemId")


def _text(parent: Wire, key: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str):
        raise _missing(parent, key)
    return value


def _number(parent: Wire, key: str) -> int:
    value = parent.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _missing(parent, key)
    return value


def _missing(parent: Wire, key: str) -> CoreError:
    tag = parent.get("type")
    if not isinstance(tag, str):
        return CoreError("unexpected/answer", f"Something in the core's answer has no {key}.")
    return CoreError(f"unexpected/{tag}", f"The core's answer {tag} has no {key}.")
