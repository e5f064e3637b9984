"""What the page and the server of the phone say to each other: types only.

One WebSocket `/stream` for each tab, JSON text frames. A tab plays one person at a time (`become`).

* page → server: a request `{"id": N, "do": WORD, …}`; N is any number that the page chose. Answered in order by
  `{"re": N, "ok": {…}}` or `{"re": N, "error": "A sentence for the person."}`.
* server → page: pushes `{"push": WORD, …}` of the person that the tab plays, in the order of the network. An answer
  may come before or after the pushes of what it did.

The first frame is the push `hello`. A tab that does not read is cut off, a frame that is no request is answered by a
close with 1008, a server that ends closes with 1001. After a reconnect the page says `become` again and opens its
chat again.

| do | other fields | ok |
| --- | --- | --- |
| people | | Hello without `push` |
| become | name (of a Person, or a new name) | Became |
| chats | | {chats: [Chat]} |
| plan | link | Plan |
| accept | chat | {} (joins where Chat.join is) |
| join | link | {chat?: REF}; its `state` tells how it goes on; absent: it comes by a push |
| open | chat, before? or around? (item), count? (1 to 100, else 50) | Opened |
| read | chat, items? (else all that is there) | {} |
| send | chat, text, quote? (item), mentions? ({NAME: memberId}), upload?, live? | {item: ItemId} |
| edit | chat, item, text, mentions?, live? | {} |
| delete | chat, item, everyone | {} |
| receive | chat, item | {} (fetches the file) |
| cancel | chat, item | {} (stops its upload or download) |
| members | chat | {members: [Member]} |
| role | chat, member, role | {} |
| remove | chat, member | {} |
| leave | chat | {} (a group; stays as history) |
| forget | chat | {} (deletes the chat for this person; a contact is told) |
| group | name | {chat: REF} |
| link | chat, role? (member, observer) | Link, made when there is none |
| address | | Link of the person, made when there is none |

A live message: `send` with `live: true`, then `edit` with `live: true` as it grows, then `edit` without it.

Files: `POST /upload?name=NAME` with the raw bytes as body answers Upload as JSON, or `{"error": SENTENCE}` with a
status from 400; its `upload` goes into one `send` within ten minutes. `FileView.url` is downloaded by GET.

The page is served at `/` and `/join?link=LINK` (`index.html` both times), its parts at `/assets/NAME`: those of
`phone/assets` and those of `web/assets` (`base.css`).
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "Answer", "Became", "Can", "Chat", "ChatKind", "ChatPush", "ChatRef", "ChatState", "Color", "FileState",
    "FileView", "ForgottenPush", "From", "GonePush", "Hello", "HelloPush", "Item", "ItemId", "ItemPush", "Limits",
    "Link", "Mark", "Member", "MembersPush", "MenuEntry", "Opened", "Part", "PartKind", "PeoplePush", "Person",
    "Place", "Plan", "ProgressPush", "Push", "Quote", "Role", "Status", "Upload",
]  # fmt: skip

ChatRef: TypeAlias = str
"""`@4`, `#15`, `#15(_support)` or `#15(_support:44)`: only good for the person that it was given to."""
ItemId: TypeAlias = int
"""Of one person's core: the same message has another number at another person."""
ChatKind: TypeAlias = Literal["contact", "bot", "group", "business", "channel"]
ChatState: TypeAlias = Literal["connected", "connecting", "prepared", "deleted", "left", "removed"]
"""`prepared`: planned, not joined. Only in `connected` can be written, when `cannot` says nothing else."""
Role: TypeAlias = Literal["owner", "admin", "moderator", "member", "observer"]
PartKind: TypeAlias = Literal[
    "plain", "bold", "italic", "strike", "snippet", "secret", "small", "colored", "link", "mention", "command"
]
Color: TypeAlias = Literal["red", "green", "blue", "yellow", "cyan", "magenta"]
FileState: TypeAlias = Literal["uploading", "sent", "offered", "receiving", "received", "failed", "cancelled"]
Mark: TypeAlias = Literal["sending", "sent", "received", "failed"]


class Part(TypedDict):
    """A piece of a text as the SimpleX apps render it. Everything but `command` is inert."""

    kind: PartKind
    text: str
    """What to show; may hold line breaks. For a command `/approve 7`, without the quotes."""
    color: NotRequired[Color]
    """Of `colored`."""
    uri: NotRequired[str]
    """Of `link`: what the copy button copies. Never an href."""
    me: NotRequired[bool]
    """Of `mention`: true when it is the person that the tab plays."""
    send: NotRequired[str]
    """Of `command`: a tap sends this text at once (`send` without quote and mentions)."""


class From(TypedDict):
    """Who wrote a message."""

    name: str
    member: NotRequired[int]
    """In a group: `Member.member`."""
    memberId: NotRequired[str]
    """In a group: what `mentions` of `send` takes."""
    role: NotRequired[str]
    bot: NotRequired[bool]


class Quote(TypedDict):
    """The message that a message answers, as it was when it was quoted."""

    name: str
    """Who wrote it; "you" for the person that the tab plays."""
    text: str
    item: NotRequired[ItemId]
    """Absent when this person has no such message."""


class Status(TypedDict):
    """How far an own message came."""

    mark: Mark
    text: str
    """The same in words, for screen readers: "received by everybody"."""


class FileView(TypedDict):
    """The file of a message."""

    name: str
    size: int
    """Bytes."""
    state: FileState
    progress: NotRequired[float]
    """0 to 1, while uploading or receiving."""
    error: NotRequired[str]
    """A sentence, in `failed`."""
    url: NotRequired[str]
    """When the bytes are here: a path of this server that downloads them."""
    can: NotRequired[Literal["receive", "cancel"]]
    """The request that makes sense now."""


class Can(TypedDict):
    """What may be done with an item now; what is absent may not."""

    reply: NotRequired[bool]
    edit: NotRequired[bool]
    everyone: NotRequired[bool]
    """`delete` with everyone: true; of somebody else's message: moderation."""


class Item(TypedDict):
    """A line of a chat: a message, or an event told in a sentence."""

    id: ItemId
    order: str
    """Items are shown in the ascending order of this text."""
    at: str
    """ISO 8601 UTC with milliseconds."""
    kind: Literal["message", "event"]
    mine: bool
    unread: bool
    parts: list[Part]
    """Empty for a file without text, and when deleted. Of an event: one plain part."""
    text: str
    """The text as it was written, with its marks: for editing and copying. "" when deleted."""
    sender: NotRequired[From]
    """Absent for an own message, and for an event without a person."""
    quote: NotRequired[Quote]
    mentions: NotRequired[dict[str, str]]
    """NAME as it stands in the text → memberId: `edit` gives back those that are kept."""
    mentionsMe: NotRequired[bool]
    edited: NotRequired[bool]
    live: NotRequired[bool]
    """The message is still being written."""
    deleted: NotRequired[str]
    """"deleted" or "deleted by NAME": what to show instead of the parts."""
    forwarded: NotRequired[bool]
    status: NotRequired[Status]
    image: NotRequired[str]
    """A preview: `data:image/jpeg;base64,…` or png, checked."""
    file: NotRequired[FileView]
    can: Can


class MenuEntry(TypedDict):
    """An entry of a command menu: exactly one of `send`, `fill` and `commands`."""

    label: str
    send: NotRequired[str]
    """Chosen, this text is sent at once: `/pending`."""
    fill: NotRequired[str]
    """Chosen, this text goes into the composer to be completed: `/approve N`."""
    commands: NotRequired[list[MenuEntry]]
    """A menu in the menu."""


class Preview(TypedDict):
    """The last line of a chat, for the list: plain text."""

    text: str
    name: NotRequired[str]
    """Who wrote it, in a group; "you" for the person that the tab plays."""


class Chat(TypedDict):
    """A chat as the list and the header show it."""

    chat: ChatRef
    name: str
    kind: ChatKind
    about: NotRequired[str]
    """Its short description or welcome text: plain."""
    image: NotRequired[str]
    """Its picture, as `Item.image`."""
    state: ChatState
    unread: int
    at: str
    """When something happened last: the list is sorted by it, newest first. ISO 8601 UTC with milliseconds."""
    last: NotRequired[Preview]
    role: NotRequired[str]
    """Of the person in the group."""
    members: NotRequired[int]
    """How many the group has, oneself too."""
    menu: list[MenuEntry]
    """Empty: no menu button."""
    cannot: NotRequired[str]
    """Why nothing can be written here: a sentence. Absent when it can."""
    join: NotRequired[bool]
    """The person was invited, or looked the link up, and can join now (`accept`)."""
    manage: NotRequired[bool]
    """The person may make the group's link (`link`)."""


class Member(TypedDict):
    """A member of a group, oneself first."""

    member: int
    memberId: str
    name: str
    mention: str
    """As it is written in a text: `@Bob`, `@'Bob B'`, with `name` → memberId in `mentions`. "" when it cannot be."""
    role: str
    state: Literal["connected", "connecting"]
    me: bool
    bot: bool
    roles: list[Role]
    """The roles that the person may give to this member; empty when none."""
    removable: bool


class Person(TypedDict):
    """Somebody of the simulated network who can be played."""

    name: str
    """For `become`."""
    label: str
    """The name that others see."""
    kind: Literal["owner", "person"]
    """`owner`: the one whom the page offers first; exactly one."""
    about: str
    """A sentence or ""."""
    tabs: int
    """How many tabs play this person now."""


class Place(TypedDict):
    """A link that one would find written somewhere in the simulated network."""

    name: str
    link: str
    kind: ChatKind


class Limits(TypedDict):
    """What the page may ask for."""

    name: int
    """Characters of a new person's or group's name."""
    text: int
    """Characters of a message; the core counts bytes and refuses less with a sentence."""
    file: int
    """Bytes of an upload."""


class Hello(TypedDict):
    """What a tab can choose from."""

    people: list[Person]
    """The owner first."""
    places: list[Place]
    limits: Limits


class Became(TypedDict):
    """Who the tab plays now, and this person's chats, newest first."""

    person: Person
    chats: list[Chat]


class Plan(TypedDict):
    """What a link leads to."""

    kind: ChatKind | Literal["unknown"]
    name: str
    about: NotRequired[str]
    image: NotRequired[str]
    can: bool
    """Whether `join` makes sense."""
    text: str
    """A sentence for the person: "You can join this group." """
    chat: NotRequired[ChatRef]
    """The chat that it already is."""


class Opened(TypedDict):
    """A part of a chat, in order."""

    chat: Chat
    items: list[Item]
    older: bool
    """There are older ones: `open` with `before` the first item."""
    newer: bool
    """Only after `around`: there are newer ones than the last; `open` without it shows the end."""


class Link(TypedDict):
    """A link to give away."""

    link: str
    qr: str
    """`data:image/png;base64,…`."""


class Upload(TypedDict):
    """The answer to an upload."""

    upload: str
    name: str
    size: int
    image: NotRequired[str]
    """The preview that will be sent, when it is a picture: `Item.image`."""


class Answer(TypedDict):
    """The answer to one request: `ok` or `error`."""

    re: int
    ok: NotRequired[object]
    error: NotRequired[str]


class HelloPush(Hello):
    """The first frame."""

    push: Literal["hello"]


class PeoplePush(TypedDict):
    """Somebody is new, has another name, or is played by more or fewer tabs."""

    push: Literal["people"]
    people: list[Person]


class ChatPush(TypedDict):
    """A chat is new or changed (unread, name, state, last line, menu)."""

    push: Literal["chat"]
    chat: Chat


class ForgottenPush(TypedDict):
    """A chat was deleted for this person."""

    push: Literal["forgotten"]
    chat: ChatRef


class ItemPush(TypedDict):
    """An item is new or changed: put it at its place, or in place of the one with its id."""

    push: Literal["item"]
    chat: ChatRef
    item: Item
    new: bool
    """True when it just arrived or was sent: announce it."""


class GonePush(TypedDict):
    """Items were removed without a trace."""

    push: Literal["gone"]
    chat: ChatRef
    items: list[ItemId]


class ProgressPush(TypedDict):
    """The file of an item moved on."""

    push: Literal["progress"]
    chat: ChatRef
    item: ItemId
    progress: float


class MembersPush(TypedDict):
    """Who is in the group, or a role, changed: ask `members` again when they are shown."""

    push: Literal["members"]
    chat: ChatRef


Push: TypeAlias = HelloPush | PeoplePush | ChatPush | ForgottenPush | ItemPush | GonePush | ProgressPush | MembersPush
