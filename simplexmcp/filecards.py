"""What the control chat is told about files (flows 13 to 16). File names and paths come from others: always in code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp import inert
from simplexmcp.files.names import shown_size
from simplexmcp.subjects import Card, chat_label, command

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.subjects import Attachment, DownloadSubject

__all__ = [
    "attaching",
    "deleted",
    "download_words",
    "downloading",
    "file_name",
    "files_approved",
    "files_need_approval",
    "forwarded",
    "is_a_download",
    "is_no_download",
    "kept",
    "not_received",
    "refused_file",
]

_NAME_LIMIT = 200
_WORDS = {"image": "image", "video": "video", "voice": "voice message", "file": "file"}


def attaching(file: Attachment) -> str:
    """The lines of a send's card about its file (flow 15)."""
    line = f"attaching {_WORDS[file.kind]} {inert.span(file.path)}, {shown_size(file.size)}"
    if file.metadata:
        line += "\nThe file goes as it is, with its metadata (such as where and when a picture was taken)."
    return line


def downloading(subject: DownloadSubject, start: str, *, done: bool) -> str:
    """The sentence of a download's card (flow 13)."""
    who = chat_label(subject.chat)
    if subject.sender is not None:
        who = f"{inert.name(subject.sender)} in {who}"
    verb = "downloaded" if done else "download"
    return (
        f"{start}{verb} a file from {who}: {file_name(subject.name)}, {shown_size(subject.size)}\n{_servers(subject)}"
    )


def _servers(subject: DownloadSubject) -> str:
    if not subject.hosts:
        return "Servers: known."
    # All of them, whole: what the card does not name would be approved unseen.
    shown = ", ".join(inert.span(host) for host in subject.hosts)
    return f"Servers that the agent does not know, and that would see its IP address: {shown}"


def download_words(subject: DownloadSubject, number: int) -> tuple[str, ...]:
    """The commands of a download's card. A later file may lie on other unknown servers: no `all` for them."""
    ref = subject.chat.ref
    every = () if subject.hosts else (f"receive {ref} {number} all",)
    return (f"receive {ref} {number}", *every, f"forward {ref} {number}", f"reject {ref} {number}")


def is_a_download(subject: DownloadSubject, number: int) -> Card:
    """The answer to `/approve` on the card of a download."""
    taps = [command(word) for word in download_words(subject, number)]
    return Card(f"Action {number} is a download: {', '.join(taps[:-1])} or {taps[-1]}", download_words(subject, number))


def is_no_download(number: int) -> Card:
    """The answer to `/receive` or `/forward` with the number of another action."""
    return Card(f"Action {number} is no download; its card shows its commands.")


def files_approved(chat: Chat, by: str) -> Card:
    """`/receive CHAT N all` was given (flow 6)."""
    word = f"receive {chat.base} off"
    return Card(f"Files approved for {chat_label(chat)} by {inert.name(by)}. {command(word)}", (word,))


def files_need_approval(chat: Chat, *, had: bool) -> Card:
    """The answer to `/receive CHAT off`."""
    return Card(f"Files from {chat_label(chat)} {'need approval again' if had else 'had no standing approval'}.")


def not_received(number: int, error: str) -> Card:
    """A `/forward` that failed (flow 14)."""
    return Card(f"Action {number}: the file was not received: {inert.span(error)}.")


def kept(chat: Chat, folder: str, count: int, size: int) -> Card:
    """Files stay when their chat was left (flow 16)."""
    word = f"delete {chat.base} files"
    return Card(
        f"Files from {chat_label(chat)} are kept in {inert.span(folder)}: {_files(count)}, {shown_size(size)}. "
        f"{command(word)}",
        (word,),
    )


def deleted(ref: str, count: int, size: int) -> Card:
    """The answer to `/delete CHAT files`."""
    if not count:
        return Card(f"There are no files from chat ({ref}).")
    return Card(f"Deleted {_files(count)} from chat ({ref}), {shown_size(size)}.")


def refused_file(path: str, reason: str, *, last: bool = False) -> Card:
    """A file that the agent may not send, or that is none; it asked for it (flow 15)."""
    why = reason.removeprefix(f"file: {path} ")
    more = " Further refusals of the next hour are in the audit log only." if last else ""
    return Card(f"The agent asked to send {inert.span(_cut(path))}; it was refused: {inert.span(_cut(why))}{more}")


def forwarded(number: int) -> str:
    """The text of the message that brings a file to the owners."""
    return f"The file of action {number}."


def file_name(name: str) -> str:
    """A file's name as its sender gave it, inert."""
    return inert.span(_cut(name))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_LIMIT else f"{text[:_NAME_LIMIT]}… ({len(text)} characters)"
