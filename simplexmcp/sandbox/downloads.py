"""Receiving files: descriptions that come, `/freceive`, the download chunk by chunk, `/fcancel`."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, files, uploads
from simplexmcp.sandbox.descriptions import servers_of, total_of
from simplexmcp.sandbox.network import Delivery

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.relay import Upload
    from simplexmcp.sandbox.state import FileRow, Item

__all__ = ["cancel", "on_cancelled", "on_description", "on_step", "receive", "status"]

JsonObject = dict[str, Any]

_SLACK = 10 << 20
"""Bytes that a description may announce more than the message."""

_REASONS = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "permission denied",
    errno.ENOSPC: "resource exhausted",
    errno.EXDEV: "unsupported operation",
    errno.ENOTDIR: "inappropriate type",
    errno.ENAMETOOLONG: "invalid argument",
}


def _reason(e: OSError) -> str:
    """An error as the core's runtime words it."""
    return f"{_REASONS.get(e.errno or 0, 'failed')} ({os.strerror(e.errno or errno.EIO)})"


# What comes from the sender


def on_description(core: SimulatedCore, chat: str, body: JsonObject, member: int | None) -> None:
    """The description of a file: it is complete, and a download that waited for it begins."""
    row = _announced(core, chat, body["id"], member)
    if row is None:
        problem = errors.store_error("fileIdNotFoundBySharedMsgId", sharedMsgId=body["id"]).chat_error
        core.emit_raw({"type": "chatError", "chatError": problem})
        return
    if row.transfer in ("complete", "cancelled") or row.description:
        return
    row.description, row.upload = body["text"], body["upload"]
    item = _item(core, row)
    core.emit(
        "rcvFileDescrReady",
        chatItem=core.item_json(item),
        rcvFileTransfer=files.rcv_transfer(core, row),
        rcvFileDescr=files.rcv_description(row),
    )
    if row.transfer == "accepted":
        try:
            _begin(core, row)
        except errors.CommandFailed as e:
            if chat[0] == "@":
                core.emit_raw({"type": "chatError", "chatError": e.chat_error})


def on_cancelled(core: SimulatedCore, chat: str, body: JsonObject, member: int | None) -> None:
    """The sender cancelled a file. In a group the event still shows the state from before."""
    row = _announced(core, chat, body["id"], member)
    if row is None or row.transfer in ("complete", "cancelled"):
        return
    item = _item(core, row)
    transfer = files.rcv_transfer(core, row)
    before = core.item_json(item)
    files.abandon(core, row)
    shown = before if chat[0] == "#" else core.item_json(item)
    core.emit("rcvFileSndCancelled", chatItem=shown, rcvFileTransfer=transfer)


def _announced(core: SimulatedCore, chat: str, shared: str, member: int | None) -> FileRow | None:
    """The received file of the message with this shared id."""
    for item in core.index.by_shared_id(shared, chat):
        row = core.state.files.get(item.file or 0)
        if row is not None and not row.sent and item.member == member:
            return row
    return None


def _item(core: SimulatedCore, row: FileRow) -> Item:
    item = files.item_of(core, row)
    assert item is not None
    return item


# Accepting


def receive(core: SimulatedCore, a: Arguments) -> Event:
    """`/freceive F [approved_relays=…] [encrypt=…] [inline=…] [PATH]`."""
    number = a.number("file")
    row = files.file_row(core, number)
    if row is None:
        raise errors.store_error("userNotFoundByFileId", fileId=number)
    if row.sent:
        raise errors.store_error("rcvFileNotFound", fileId=number)
    if row.transfer == "cancelled":
        raise errors.error("fileCancelled", message=row.name)
    if row.transfer != "new":
        raise errors.error("fileAlreadyReceiving", message=row.name)
    if a.on("encrypt"):
        raise errors.not_modelled("encrypted files")
    row.path = _make_target(core, row, a.text("path"))
    row.approved = a.on("approved_relays")
    row.transfer = "accepted"
    row.status = {"type": "rcvAccepted"}
    response = core.event("rcvFileAccepted", chatItem=core.item_json(_item(core, row)))
    if row.description:
        _begin(core, row, later=True)
    return response


def _make_target(core: SimulatedCore, row: FileRow, path: str) -> str:
    """The path of the new, empty target. Without a path it is in the files folder or else in the folder for
    temporary files: unlike a real core, a simulated one never writes to somebody's Downloads."""
    relative = not path and core.files_folder is not None
    target = Path(path)
    try:
        if not path:
            target = core.files_folder or _temporary(core)
            target.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            target = _unique(target, row.name)
        elif os.path.lexists(target):
            raise errors.error("fileAlreadyExists", filePath=path)
        target.open("xb").close()
    except (OSError, ValueError) as e:
        reason = _reason(e) if isinstance(e, OSError) else "invalid argument (Invalid argument)"
        message = f"{target}: withBinaryFile: {reason}"
        raise errors.error("fileWrite", filePath=str(target), message=message) from e
    return target.name if relative else str(target)


def _temporary(core: SimulatedCore) -> Path:
    return core.temp_folder or Path(tempfile.gettempdir())


def _unique(folder: Path, name: str) -> Path:
    stem, dot, endings = name.partition(".")
    number = 0
    while True:
        mark = f"_{number}" if number else ""
        target = folder / f"{stem}{mark}{dot}{endings}"
        if not os.path.lexists(target):
            return target
        number += 1


def _begin(core: SimulatedCore, row: FileRow, *, later: bool = False) -> None:
    """The description is there and the file accepted: the download begins, or is refused for its servers."""
    item = _item(core, row)
    known = {_address(server) for server in uploads.own_servers(core)}
    unknown = [server for server in servers_of(row.description) if _address(server) not in known]
    if unknown and not row.approved and not _is_protected(core):
        _reset(core, row)
        emit = core.emit_later if later else core.emit
        emit("chatItemUpdated", chatItem=core.item_json(item))
        raise errors.error("fileNotApproved", fileId=row.file_id, unknownServers=unknown)
    if total_of(row.description) > row.size + _SLACK:
        _reset(core, row)
        raise errors.error("fileRcvChunk", message="description file size is larger than the announced one")
    row.transfer = "connected"
    row.status = {"type": "rcvTransfer", "rcvProgress": 0, "rcvTotal": 1}
    row.agent_id = core.network.new_id()
    core.emit("rcvFileStart", chatItem=core.item_json(item))
    core.after("download", core.network.faults.chunk_seconds, file=row.file_id, agent=row.agent_id, chunk=0)


def _address(server: str) -> str:
    """A server without its password."""
    scheme, _, rest = server.partition("://")
    key, _, host = rest.partition("@")
    return f"{scheme}://{key.partition(':')[0]}@{host}"


def _is_protected(core: SimulatedCore) -> bool:
    """Whether a proxy hides the address of the device from all servers."""
    return "socksProxy" in (core.network_config or {})


def _reset(core: SimulatedCore, row: FileRow) -> None:
    """Back to an offered file; its path stays, the file at it does not."""
    files.remove_target(core, row)
    files.remove_work(row)
    row.transfer = "new"
    row.status = {"type": "rcvInvitation"}


# Downloading


def on_step(core: SimulatedCore, data: JsonObject) -> None:
    """One chunk has come."""
    row = core.state.files.get(data["file"])
    if row is None or row.sent or row.agent_id != data["agent"] or row.transfer != "connected":
        return
    relay, chunk = core.network.files, data["chunk"]
    servers = servers_of(row.description)
    server = servers[chunk % len(servers)]
    if relay.holds(core, server, Delivery(0, 0, core.name, "download", data)):
        return
    if core.name in core.network.faults.redirected:
        core.network.faults.redirected.remove(core.name)
        _abort(core, row)
        return
    upload = relay.find(row.upload or "")
    if upload is None:
        _failed(core, row, {"type": "XFTP", "serverAddress": server, "xftpErr": {"type": "AUTH"}}, {"type": "auth"})
        return
    try:
        _fetch(core, row, upload, chunk)
    except OSError as e:
        reason = f"{row.work}: {_reason(e)}"
        _failed(
            core, row, {"type": "INTERNAL", "internalErr": reason}, {"type": "other", "fileError": f"INTERNAL {reason}"}
        )
        return
    _progress(core, row, sum(upload.sizes[: chunk + 1]), sum(upload.sizes))
    if chunk + 1 < len(upload.sizes):
        core.after("download", core.network.faults.chunk_seconds, **{**data, "chunk": chunk + 1})
    else:
        _finish(core, row)


def _abort(core: SimulatedCore, row: FileRow) -> None:
    _reset(core, row)
    row.status = {"type": "rcvAborted"}
    core.emit("chatItemUpdated", chatItem=core.item_json(_item(core, row)))


def _fetch(core: SimulatedCore, row: FileRow, upload: Upload, chunk: int) -> None:
    """Write a chunk to the half file, which lies in a folder of its own among the temporary files."""
    if row.work is None:
        _temporary(core).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp("_rcv.xftp", "", _temporary(core))
        row.work = str(Path(folder) / "xftp.decrypted")
    _fail(core, at_the_end=False)
    core.network.files.fetch(upload, chunk, Path(row.work))


def _fail(core: SimulatedCore, *, at_the_end: bool) -> None:
    """Fail as a test wants it: only EXDEV is found at the end, when the file is moved to its target."""
    error = core.network.faults.download_errors.get(core.name)
    if error is not None and at_the_end == (error == errno.EXDEV):
        del core.network.faults.download_errors[core.name]
        raise OSError(error, os.strerror(error))


def _progress(core: SimulatedCore, row: FileRow, received: int, total: int) -> None:
    row.status = {"type": "rcvTransfer", "rcvProgress": received, "rcvTotal": total}
    core.emit(
        "rcvFileProgressXFTP",
        **files.with_item(core, row),
        receivedSize=received,
        totalSize=total,
        rcvFileTransfer=files.rcv_transfer(core, row),
    )


def _failed(core: SimulatedCore, row: FileRow, agent: JsonObject, shown: JsonObject) -> None:
    """The end of a download: it cannot be tried again."""
    files.remove_target(core, row)
    files.remove_work(row)
    row.status = {"type": "rcvError", "rcvFileError": shown}
    transfer = files.rcv_transfer(core, row)
    row.cancelled = True
    core.emit("rcvFileError", **files.with_item(core, row), agentError=agent, rcvFileTransfer=transfer)


def _finish(core: SimulatedCore, row: FileRow) -> None:
    """The whole file takes the place of the empty target. Where it cannot, nothing more comes of the download."""
    assert row.work is not None
    target = files.real_path(core, row.path or "")
    try:
        _fail(core, at_the_end=True)
        os.rename(row.work, target)  # noqa: PTH104 - the error is worded with both names as they are
    except OSError as e:
        message = f"renameFile:renamePath:rename '{row.work}' to '{target}': {_reason(e)}"
        problem = errors.error("exception", message=message).chat_error
        core.emit_raw({"type": "chatError", "chatError": problem})
        return
    files.remove_work(row)
    row.transfer = "complete"
    row.status = {"type": "rcvComplete"}
    core.emit("rcvFileComplete", chatItem=core.item_json(_item(core, row)))


# Cancelling


def cancel(core: SimulatedCore, a: Arguments) -> Event:
    """`/fcancel F`, of a received file or an own one."""
    number = a.number("file")
    row = files.file_row(core, number)
    if row is None:
        raise errors.store_error("fileNotFound", fileId=number)
    if row.cancelled or row.transfer == "cancelled":
        raise errors.error("fileCancel", fileId=number, message="file already cancelled")
    if row.sent:
        return uploads.cancel(core, row)
    if row.transfer == "complete":
        raise errors.error("fileCancel", fileId=number, message="file transfer is complete")
    transfer = files.rcv_transfer(core, row)
    _reset(core, row)
    row.agent_id = None
    return core.event("rcvFileCancelled", **files.with_item(core, row), rcvFileTransfer=transfer)


def status(core: SimulatedCore, a: Arguments) -> Event:
    """`/fstatus F`: the user and the item, in a list."""
    number = a.number("file")
    row = files.file_row(core, number)
    item = None if row is None else files.item_of(core, row)
    if item is None:
        raise errors.store_error("fileNotFound", fileId=number)
    return {"type": "fileTransferStatusXFTP", "data": [core.user_json(), core.item_json(item)]}
