"""What a card asks for, as data: the action's other side, its contents, and how it ended.

`Card` is a post in the control chat; `cards` and `filecards` write its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from simplexmcp import inert

if TYPE_CHECKING:
    from simplexmcp.chats import Chat
    from simplexmcp.states import State

__all__ = [
    "PICTURE_LIMIT", "Attachment", "Card", "ConnectSubject", "DownloadSubject", "LeaveSubject", "Outcome",
    "SendSubject", "Subject", "chat_label", "command", "picture",
]  # fmt: skip

PICTURE_LIMIT = 14_000
"""Characters of a preview, as the apps make and take them."""

_PICTURE = re.compile(r"data:image/(?:jpg|png);base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)


@dataclass(frozen=True)
class Card:
    """A post: its text, each command that the core must find in it (`approve #15 7`), in order, and its picture, a data
    URI."""

    text: str
    commands: tuple[str, ...] = ()
    picture: str | None = None

    def content(self, text: str | None = None) -> dict[str, Any]:
        """The message content of the card, or of its place with another text: what was a picture stays one."""
        said = self.text if text is None else text
        if self.picture is None:
            return {"type": "text", "text": said}
        return {"type": "image", "text": said, "image": self.picture}


@dataclass(frozen=True)
class ConnectSubject:
    """What a `connect` asks: the other side as the plan shows it, and the target as the agent gave it."""

    kind: str
    name: str
    target: str
    host: str
    incognito: bool
    message: str | None


@dataclass(frozen=True)
class Attachment:
    """A file to send, as it was hashed: `kind` is image, video, voice or file, `size` in bytes. `metadata`: what a
    camera or an editor wrote into it goes along."""

    kind: str
    path: str
    size: int
    sha256: str
    metadata: bool = False
    preview: str | None = None


@dataclass(frozen=True)
class SendSubject:
    """What a `send` asks: text to a chat, the text that it replies to, the names of mentioned members, a file."""

    chat: Chat
    text: str
    reply_to: str | None
    mentions: tuple[str, ...]
    file: Attachment | None = None


@dataclass(frozen=True)
class LeaveSubject:
    """What a `leave` asks: leaving a group, or deleting a contact."""

    chat: Chat


@dataclass(frozen=True)
class DownloadSubject:
    """What a `download` asks: a file as its sender (`sender`: a member of a group) announced it. `hosts` are its
    servers that the agent's core does not know."""

    chat: Chat
    item: int
    sender: str | None
    name: str
    size: int
    hosts: tuple[str, ...] = ()
    preview: str | None = None


Subject: TypeAlias = ConnectSubject | SendSubject | LeaveSubject | DownloadSubject


@dataclass(frozen=True)
class Outcome:
    """How an action ended: `by` is the approver's name, None in mode host; `standing` when no card was asked."""

    state: State
    by: str | None = None
    standing: bool = False
    host: bool = False
    error: str | None = None
    connected: bool = True


def command(words: str) -> str:
    """A tappable command as the core parses it: `/'approve 7'`."""
    return f"/'{words}'"


def chat_label(chat: Chat) -> str:
    """Kind, name and ID of a chat, inert: `group Trail (#15)`."""
    return f"{chat.kind} {inert.name(chat.name)} ({chat.ref})"


def picture(preview: object) -> str | None:
    """A preview that can be a card's picture; None for what the apps would not decode."""
    if isinstance(preview, str) and len(preview) <= PICTURE_LIMIT and _PICTURE.fullmatch(preview):
        return preview
    return None
