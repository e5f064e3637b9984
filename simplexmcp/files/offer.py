"""A file that was checked and may be offered to the owner, its copy, and the message that carries it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from simplexmcp.files.opening import Identity

__all__ = ["As", "FileOffer", "Kind", "SentCopy", "composed_file", "content_of"]

As = Literal["auto", "image", "video", "voice", "file"]
"""How the agent wants a file sent."""

Kind = Literal["image", "video", "voice", "file"]
"""What a file is sent as."""


@dataclass(frozen=True)
class FileOffer:
    """A file at the moment it was read: what the card shows, and what is sent."""

    path: str
    """The real, absolute path, as the agent gave it."""
    name: str
    """The name that receivers see: made safe, with the extension of what a picture is written as."""
    size: int
    """Bytes of the file at `path`; a picture that is written again has another size."""
    kind: Kind
    identity: Identity
    sha256: str
    preview: str = ""
    """A data URI of at most 14,000 characters; "" for voice messages and plain files."""
    duration: int = 0
    """Whole seconds of a video or voice message; else 0."""
    metadata: bool = False
    """True when the file is sent as it is, and may carry metadata: any type but plain text."""
    rewritten: bool = False
    """True for pictures that are sent without metadata, in at most 261,120 bytes."""

    @property
    def binding(self) -> tuple[Any, ...]:
        """What equal requests have in common: path, kind, identity and hash."""
        return (self.path, self.kind, self.identity, self.sha256)


@dataclass(frozen=True)
class SentCopy:
    """A copy in a folder of its own in `files/sent`; `Folders.delete_copy(path)` deletes both."""

    path: Path
    size: int


def content_of(offer: FileOffer, text: str) -> dict[str, Any]:
    """The `msgContent` of a message with this file and the caption `text`: for its length, and for `/_send`."""
    content: dict[str, Any] = {"type": offer.kind, "text": text}
    if offer.kind in ("image", "video"):
        content["image"] = offer.preview
    if offer.kind in ("video", "voice"):
        content["duration"] = offer.duration
    return content


def composed_file(offer: FileOffer, copy: SentCopy, text: str) -> dict[str, Any]:
    """The message as `/_send` takes it: `{"fileSource", "msgContent"}`."""
    return {"fileSource": {"filePath": str(copy.path)}, "msgContent": content_of(offer, text)}
