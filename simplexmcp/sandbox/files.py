"""The files of messages: their rows, and the objects of the wire that show them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox.descriptions import PART
from simplexmcp.sandbox.state import FileRow, free_id

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Item

__all__ = [
    "ENDED",
    "LARGEST",
    "abandon",
    "announced",
    "attach",
    "cancel_all",
    "cancelled_by_sender",
    "drop",
    "file_row",
    "new_row",
    "rcv_description",
    "rcv_transfer",
    "receive_announced",
    "received_name",
    "show",
    "snd_meta",
    "snd_transfers",
]

JsonObject = dict[str, Any]

CHUNK = 15780
"""Bytes of a chunk of the old protocol, which every transfer still shows."""

LARGEST = 1 << 30
"""Bytes of the largest file."""

ENDED = frozenset({"sndComplete", "sndCancelled", "sndError", "rcvComplete", "rcvCancelled", "rcvError"})
"""File statuses of transfers that are over."""


def new_row(core: SimulatedCore, *, sent: bool, name: str, size: int, **fields: Any) -> FileRow:
    """A new row of files."""
    status = {"type": "sndStored" if sent else "rcvInvitation"}
    number = free_id(core.state.files)
    row = FileRow(number, core.user.user_id, sent, name, size, status, **fields)
    core.state.files[number] = row
    return row


def new_description(core: SimulatedCore) -> int:
    """The id of a new row of file descriptions; these are never deleted."""
    core.state.last_description += 1
    return core.state.last_description


def file_row(core: SimulatedCore, number: int) -> FileRow | None:
    """A file of the active user."""
    row = core.state.files.get(number)
    return None if row is None or row.user_id != core.user.user_id else row


def received_name(name: str) -> str:
    """The name of a received file as the core keeps it: its last part, made valid."""
    return name.rpartition("/")[2].replace("\0", "_") or "_"


def announced(row: FileRow, size: int | None = None) -> JsonObject:
    """What a message says of its file."""
    return {"name": row.name, "size": row.size if size is None else size}


# On the wire


def show(row: FileRow) -> JsonObject:
    """FILE of a chat item."""
    out: JsonObject = {"fileId": row.file_id, "fileName": row.name, "fileSize": row.size}
    if row.path is not None:
        out["fileSource"] = {"filePath": row.path}
    return {**out, "fileStatus": row.status, "fileProtocol": "xftp"}


def item_of(core: SimulatedCore, row: FileRow) -> Item | None:
    """The item of a file; an upload that belongs to none has none."""
    return None if row.item_id is None else core.state.items.get(row.item_id)


def with_item(core: SimulatedCore, row: FileRow) -> JsonObject:
    """`chatItem_` of an event, when there is an item."""
    item = item_of(core, row)
    return {} if item is None else {"chatItem_": core.item_json(item)}


def snd_meta(row: FileRow, *, private: bool = False) -> JsonObject:
    """fileTransferMeta."""
    upload: JsonObject = {"agentSndFileId": row.agent_id}
    if private and row.private_description is not None:
        upload["privateSndFileDescr"] = row.private_description
    return {
        "fileId": row.file_id,
        "xftpSndFile": {**upload, "agentSndFileDeleted": False},
        "fileName": row.name,
        "filePath": row.path,
        "fileSize": row.size,
        "chunkSize": CHUNK,
        "cancelled": False,
    }


def snd_transfers(row: FileRow) -> list[JsonObject]:
    """sndFileTransfers: one for each recipient."""
    done = row.private_description is not None
    out: list[JsonObject] = []
    for one in row.recipients:
        shown: JsonObject = {
            "fileId": row.file_id,
            "fileName": row.name,
            "filePath": row.path,
            "fileSize": row.size,
            "chunkSize": CHUNK,
            "recipientDisplayName": one["name"],
            "connId": one["connId"],
            "agentConnId": one["agentConnId"],
        }
        if "member" in one:
            shown["groupMemberId"] = one["member"]
        finished = "connected" if "member" in one else "complete"
        out.append({**shown, "fileStatus": finished if done else "new", "fileDescrId": one["descrId"]})
    return out


def rcv_description(row: FileRow) -> JsonObject:
    """rcvFileDescr."""
    parts = -(-len(row.description) // PART)
    return {
        "fileDescrId": row.description_id,
        "fileDescrText": row.description,
        "fileDescrPartNo": parts,
        "fileDescrComplete": parts > 0,
    }


def rcv_transfer(core: SimulatedCore, row: FileRow) -> JsonObject:
    """rcvFileTransfer."""
    upload: JsonObject = {"rcvFileDescription": rcv_description(row)}
    if row.agent_id is not None:
        upload["agentRcvFileId"] = row.agent_id
    upload |= {"agentRcvFileDeleted": False, "userApprovedRelays": row.approved}
    status: JsonObject = {"type": row.transfer}
    if row.transfer not in ("new", "cancelled"):
        status["filePath"] = row.path
    out = {
        "fileId": row.file_id,
        "xftpRcvFile": upload,
        "fileInvitation": {"fileName": row.name, "fileSize": row.size},
        "fileStatus": status,
        "fileType": "normal",
        "senderDisplayName": _sender(core, row),
        "chunkSize": CHUNK,
        "cancelled": row.cancelled,
    }
    return out if row.member is None else {**out, "grpMemberId": row.member}


def _sender(core: SimulatedCore, row: FileRow) -> str:
    if row.member is not None:
        member = core.state.members.get(row.member)
        return "" if member is None else member.name
    item = item_of(core, row)
    contact = None if item is None else core.state.contacts.get(int(item.chat[1:]))
    return "" if contact is None else contact.name


# Receiving a message with a file


def receive_announced(core: SimulatedCore, file: JsonObject | None, member: int | None) -> FileRow | None:
    """The row for the file that a message announces; None without one, or when it is refused and the message with
    it."""
    if file is None:
        return None
    name, size = received_name(str(file["name"])), int(file["size"])
    if size <= 0 or size > LARGEST:
        problem = {"type": "error", "errorType": {"type": "fileSize", "filePath": name}}
        core.emit_raw({"type": "chatError", "chatError": problem})
        return None
    return new_row(core, sent=False, name=name, size=size, member=member, description_id=new_description(core))


def attach(item: Item, row: FileRow | None) -> None:
    """The file of a new item."""
    if row is not None:
        item.file, row.item_id = row.file_id, item.item_id


# Ending


def real_path(core: SimulatedCore, path: str) -> Path:
    """Where a path of a row is: relative ones are in the files folder, or in the folder of the process."""
    return Path(path) if core.files_folder is None else core.files_folder / path


def remove_target(core: SimulatedCore, row: FileRow) -> None:
    """Delete what is at the target of a download that is given up."""
    if row.path is not None and not row.sent:
        real_path(core, row.path).unlink(missing_ok=True)


def remove_work(row: FileRow) -> None:
    """Delete the half file of a download."""
    if row.work is not None:
        shutil.rmtree(Path(row.work).parent, ignore_errors=True)
        row.work = None


def abandon(core: SimulatedCore, row: FileRow) -> None:
    """The transfer of a file that is still going on is given up, without an event."""
    if row.sent:
        if row.upload is not None:
            core.network.files.remove(row.upload)
        row.cancelled = True
        row.status = {"type": "sndCancelled"}
        return
    remove_work(row)
    row.agent_id = None
    row.cancelled = True
    row.transfer = "cancelled"
    row.status = {"type": "rcvCancelled"}


def cancel_all(core: SimulatedCore, chat: str) -> None:
    """A chat is left or deleted: its transfers that are not over are cancelled."""
    for row in list(core.state.files.values()):
        item = item_of(core, row)
        if item is not None and item.chat == chat and row.status["type"] not in ENDED:
            abandon(core, row)


def drop(core: SimulatedCore, item: Item) -> None:
    """An item is gone, and with it the row of its file; its number is free again. What is on the disk stays, unless
    there is a files folder."""
    row = None if item.file is None else core.state.files.pop(item.file, None)
    if row is None:
        return
    if row.status["type"] not in ENDED:
        abandon(core, row)
    if core.files_folder is not None and row.path is not None:
        real_path(core, row.path).unlink(missing_ok=True)


def cancelled_by_sender(core: SimulatedCore, item: Item) -> None:
    """The sender deleted the message of a file: whatever is not over is cancelled, and an empty target stays."""
    row = None if item.file is None else core.state.files.get(item.file)
    if row is not None and row.status["type"] not in ENDED:
        abandon(core, row)
