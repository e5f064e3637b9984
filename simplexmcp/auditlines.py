"""Entries of the audit log as sentences for people. Pure; whatever is foreign in an entry comes out inert.

An entry that no sentence fits, also one of another version, is shown with all its fields.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, final

from simplexmcp.clock import parse_iso
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

__all__ = ["line_of", "moment_of", "owners_of", "parse_entry", "sentence_of"]

_SENTENCES = {
    "created": "Action {action}: the agent asks to {what}.",
    "decided": "Action {action}: {decision} by {who}.",
    "performed": "Action {action}: done ({what}).",
    "failed": "Action {action}: failed ({what}): {error}",
    "rejected": "Action {action}: not done, rejected ({what}).",
    "expired": "Action {action}: expired ({what}).",
    "cancelled": "Action {action}: cancelled ({what}).",
    "interrupted": "Action {action}: interrupted ({what}).",
    "standing-approval": "{scope} {chat} need no approval any more, by {who}.",
    "revoked": "{scope} {chat} need approval again, by {who}.",
    "leave": "{who} orders to leave {chat}.",
    "left": "{chat} was left, by {who}.",
    "forward": "Action {action}: {who} asks for the file.",
    "forwarded": "Action {action}: the file was forwarded to the owners.",
    "forward-failed": "Action {action}: the file was not forwarded: {error}",
    "files-deleted": "Files of {chat} were deleted ({files}), by {who}.",
    "files-set-aside": 'Files of {chat}, which is gone, are kept in "{folder}".',
    "file-sent": 'File "{path}" was sent to {chat} (as {kind}, {size} bytes).',
    "refused-file": 'File "{path}" was not sent: {reason}',
    "upload-failed": "An upload failed: {error}",
    "owners": "Owners: {owners}.",
    "owners-reset": "The control chat was deleted; a new one was made.",
    "owner-added": "{who} is now an owner.",
    "owner-removed": "{who} is no longer an owner.",
    "refused-command": "A command of {who} was not obeyed: {reason}.",
    "card-refused": "A card was taken back: it held other commands than the server meant.",
    "link-lost": "The link to the SimpleX core was lost.",
    "link-back": "The link to the SimpleX core is back.",
    "core-shared": "Other programs that are connected to the SimpleX core: {clients}.",
}
_WORDS = {"send": "send to", "download": "download from", "leave": "leave"}


def parse_entry(line: bytes) -> dict[str, Any] | None:
    """The entry of one line of the log; None for a line that a crash or a full disk tore."""
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def line_of(entry: dict[str, Any], tz: tzinfo | None = None) -> str:
    """The entry on one line: local day and time, then its sentence. `tz` None is the computer's zone."""
    at = moment_of(entry)
    shown = f"{at.astimezone(tz):%Y-%m-%d %H:%M:%S}" if at is not None else _inert(entry.get("at"))
    return f"{shown}  {sentence_of(entry)}"


def sentence_of(entry: dict[str, Any]) -> str:
    """What happened, on one line."""
    event = entry.get("event")
    sentence = _SENTENCES.get(event) if isinstance(event, str) else None
    if sentence is not None:
        fields = _Fields(entry)
        text = sentence.format_map(fields)
        if not fields.missing:
            return f"{text} {more}" if (more := _more(entry)) else text
    rest = ", ".join(f"{_inert(key)} {_inert(value)}" for key, value in entry.items() if key not in ("at", "event"))
    return f"{_inert(event)}: {rest}" if rest else _inert(event)


def owners_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The owners of an `owners` entry, as `{"member": 3, "name": "Alice"}`."""
    found = entry.get("owners")
    return [owner for owner in found if isinstance(owner, dict)] if isinstance(found, list) else []


def moment_of(entry: dict[str, Any]) -> datetime | None:
    """When it happened, as an aware datetime; None when the entry does not say."""
    try:
        return parse_iso(str(entry.get("at")))
    except ValueError:
        return None


@final
class _Fields(dict[str, str]):
    """The words of a sentence, made from an entry; `missing` when it lacks one."""

    def __init__(self, entry: dict[str, Any]) -> None:
        super().__init__({key: _inert(value) for key, value in entry.items()})
        self.missing = False
        self["scope"] = "Files from" if entry.get("files") is True else "Messages to"
        if "name" in entry or "by" in entry:
            self["who"] = _person(entry.get("by", entry.get("name")), entry.get("member"))
        if "tool" in entry:
            self["what"] = " ".join(filter(None, (_WORDS.get(self["tool"], self["tool"]), self.get("chat"))))
        elif "action" in entry:
            self["what"] = "the server crashed" if entry.get("crashed") else "its action"
        if "owners" in entry:
            people = [_person(owner.get("name"), owner.get("member")) for owner in owners_of(entry)]
            self["owners"] = ", ".join(people) or "none"

    def __missing__(self, key: str) -> str:
        self.missing = True
        return "?"


def _more(entry: dict[str, Any]) -> str:
    if entry.get("event") == "created" and entry.get("state") == "performing":
        return "No approval was needed."
    if entry.get("event") == "standing-approval" and isinstance(count := entry.get("messages"), int):
        return f"It ends after {count} messages."
    return ""


def _person(name: Any, member: Any) -> str:
    return f'"{_inert(name)}" (member {_inert(member)})'


def _inert(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
