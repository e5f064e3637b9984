"""Sending files: checking them, the upload chunk by chunk, and the descriptions that recipients get when it is done."""

from __future__ import annotations

import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from simplexmcp.sandbox import errors, files
from simplexmcp.sandbox.descriptions import chunk_sizes, description, random_texts
from simplexmcp.sandbox.network import Delivery
from simplexmcp.sandbox.relay import DEFAULT_SERVER, Upload

if TYPE_CHECKING:
    from simplexmcp.sandbox.composing import Composed
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.sending import Recipient
    from simplexmcp.sandbox.state import FileRow, Item

__all__ = ["begin", "cancel", "on_described", "on_step", "own_servers"]

JsonObject = dict[str, Any]

_URIS = 4
"""Links that an upload without recipients ends with."""


def own_servers(core: SimulatedCore) -> list[str]:
    """The file servers that a core uses, and knows."""
    servers: list[str] = core.state.servers.get("xftp", [DEFAULT_SERVER])
    return servers


def begin(core: SimulatedCore, messages: list[Composed], to: list[Recipient]) -> list[FileRow | None]:
    """A row for each message's file, and its upload begun; refuses a file before anything is made."""
    sizes = [None if one.file is None else _size(core, one.file) for one in messages]
    rows: list[FileRow | None] = []
    for one, size in zip(messages, sizes, strict=True):
        if one.file is None or size is None:
            rows.append(None)
            continue
        row = files.new_row(core, sent=True, name=PurePosixPath(one.file).name, size=size, path=one.file)
        row.recipients = [_recipient(core, r) for r in to]
        _begin_upload(core, row)
        rows.append(row)
    return rows


def _size(core: SimulatedCore, path: str) -> int:
    place = files.real_path(core, path)
    try:
        found = place.stat()
    except (OSError, ValueError):
        raise errors.error("fileNotFound", message=path) from None
    if not path or not stat.S_ISREG(found.st_mode):
        raise errors.error("fileNotFound", message=path)
    size = found.st_size
    if size > files.LARGEST:
        raise errors.error("fileSize", filePath=path)
    return size


def _recipient(core: SimulatedCore, to: Recipient) -> JsonObject:
    number = files.new_description(core)
    out: JsonObject = {"connId": to.conn.conn_id, "agentConnId": to.conn.agent_id, "descrId": number}
    if to.member is not None:
        return {**out, "name": to.member.name, "member": to.member.member_key}
    contact = core.state.contacts.get(to.conn.entity_id or 0)
    return {**out, "name": "" if contact is None else contact.name}


def _begin_upload(core: SimulatedCore, row: FileRow) -> None:
    network = core.network
    row.agent_id = network.new_id()
    sizes = chunk_sizes(row.size)
    upload = Upload(
        row.agent_id.replace("/", "_"),
        own_servers(core),
        sizes,
        random_texts(len(sizes), network.random_bytes),
        row.size,
        network.clock(),
    )
    row.upload = upload.name
    network.files.add(upload)
    core.after("upload", network.faults.upload_seconds, file=row.file_id, agent=row.agent_id, chunk=0)


def on_step(core: SimulatedCore, data: JsonObject) -> None:
    """One chunk is taken by its server."""
    row = core.state.files.get(data["file"])
    if row is None or row.agent_id != data["agent"] or row.status["type"] in files.ENDED or row.upload is None:
        return
    relay, chunk = core.network.files, data["chunk"]
    upload = relay.find(row.upload)
    if upload is None:
        _failed(core, row, "AUTH")
        return
    if relay.holds(core, upload.server(chunk), Delivery(0, 0, core.name, "upload", data)):
        return
    reason = core.network.faults.upload_errors.pop(core.name, None)
    try:
        if reason is None:
            relay.store(upload, chunk, files.real_path(core, row.path or ""))
    except OSError as e:
        reason = f"{row.path}: {e.strerror}"
    if reason is not None:
        _failed(core, row, reason)
        return
    _progress(core, row, sum(upload.sizes[: chunk + 1]), sum(upload.sizes))
    if chunk + 1 < len(upload.sizes):
        core.after("upload", core.network.faults.chunk_seconds, **{**data, "chunk": chunk + 1})
    else:
        _uploaded(core, row, upload)


def _progress(core: SimulatedCore, row: FileRow, sent: int, total: int) -> None:
    row.status = {"type": "sndTransfer", "sndProgress": sent, "sndTotal": total}
    core.emit(
        "sndFileProgressXFTP",
        **files.with_item(core, row),
        fileTransferMeta=files.snd_meta(row),
        sentSize=sent,
        totalSize=total,
    )


def _failed(core: SimulatedCore, row: FileRow, reason: str) -> None:
    row.status = {"type": "sndError", "sndFileError": {"type": "other", "fileError": reason}}
    core.network.files.remove(row.upload or "")
    shown = f"INTERNAL {{internalErr = {reason!r}}}"
    core.emit("sndFileError", **files.with_item(core, row), fileTransferMeta=files.snd_meta(row), errorMessage=shown)


def _uploaded(core: SimulatedCore, row: FileRow, upload: Upload) -> None:
    """All is on the servers: an upload without recipients ends with links, others with descriptions."""
    network = core.network
    private = description(upload.sizes, upload.servers, upload.shared, network.random_bytes, party="sender")
    if row.item_id is None:
        links = [f"simplex:/file#/?desc={quote(describe(core, upload), safe='')}" for _ in range(_URIS)]
        core.emit("sndStandaloneFileComplete", fileTransferMeta=files.snd_meta(row), rcvURIs=links)
        row.status = {"type": "sndComplete"}
        return
    # The item of this event is read before its new state is written.
    item = files.with_item(core, row)
    row.status = {"type": "sndTransfer", "sndProgress": 1, "sndTotal": 1}
    core.emit("sndFileProgressXFTP", **item, fileTransferMeta=files.snd_meta(row), sentSize=1, totalSize=1)
    group = _item(core, row).chat[0] == "#"
    if group:
        row.status = {"type": "sndComplete"}
        shown = core.item_json(_item(core, row))
        core.emit("sndFileCompleteXFTP", chatItem=shown, fileTransferMeta=files.snd_meta(row))
    row.private_description = private
    row.description = describe(core, upload)
    for number, one in enumerate(row.recipients):
        conn = core.conn_by_agent_id(one["agentConnId"])
        if conn is not None and conn.status not in ("deleted", "new"):
            text = row.description if number == 0 else describe(core, upload)
            body = {"x": "file.descr", "id": _item(core, row).shared_id, "text": text, "upload": row.upload}
            core.send(conn, [body], files=[] if group else [row.file_id])


def describe(core: SimulatedCore, upload: Upload) -> str:
    """A new description of a file for one recipient."""
    return description(upload.sizes, upload.servers, upload.shared, core.network.random_bytes, party="recipient")


def _item(core: SimulatedCore, row: FileRow) -> Item:
    item = files.item_of(core, row)
    assert item is not None
    return item


def on_described(core: SimulatedCore, number: int) -> None:
    """The relay has taken the description for a contact: the file is sent."""
    row = core.state.files.get(number)
    item = None if row is None else files.item_of(core, row)
    if row is None or item is None or row.status["type"] in files.ENDED:
        return
    row.status = {"type": "sndComplete"}
    meta = files.snd_meta(row, private=True)
    core.emit("sndFileCompleteXFTP", chatItem=core.item_json(item), fileTransferMeta=meta)


def cancel(core: SimulatedCore, row: FileRow) -> JsonObject:
    """`/fcancel` of an own file: the servers delete it and the recipients are told; the response."""
    files.abandon(core, row)
    item = files.item_of(core, row)
    for one in row.recipients:
        conn = core.conn_by_agent_id(one["agentConnId"])
        if item is not None and conn is not None and conn.status != "deleted":
            core.send(conn, [{"x": "file.cancel", "id": item.shared_id}])
    return core.event(
        "sndFileCancelled",
        **files.with_item(core, row),
        fileTransferMeta=files.snd_meta(row, private=True),
        sndFileTransfers=files.snd_transfers(row),
    )
