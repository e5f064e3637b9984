"""Every text that the server posts in the agent control chat (flows 1, 3, 4, 6 to 9, 11, 12); `filecards` has those
about files.

A card is text and the commands that are meant to be tappable in it; `control` compares them with those that the core
finds. No line starts with a command, since the core takes such a line, when it is alone, as one command. Whatever
comes from peers or from the agent goes through `inert`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from simplexmcp import filecards, inert
from simplexmcp.states import State
from simplexmcp.subjects import (
    Attachment,
    Card,
    ConnectSubject,
    DownloadSubject,
    LeaveSubject,
    Outcome,
    SendSubject,
    Subject,
    chat_label,
    command,
    picture,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.chats import Chat

__all__ = [
    "CARD_BYTES", "GREETING", "Attachment", "Card", "ConnectSubject", "DownloadSubject", "LeaveSubject", "Outcome",
    "SendSubject", "Subject", "asking", "chat_label", "command", "crashed_line", "fits", "listing", "outcome_card",
    "picture", "pieces",
]  # fmt: skip

GREETING = "I'm your agent. I ask here before I connect, send, download a file or leave a chat."

CARD_BYTES = 15_000
"""Most bytes of a card's JSON-escaped text: the core's 15,602 for a message less its envelope and an outcome line."""

_QUOTE_BYTES = CARD_BYTES - 3_000
"""Most bytes of a quoted text that a card shows whole; of a longer one its first and last 1,000 characters."""


def asking(subject: Subject, number: int) -> Card:
    """The card of a pending action (flows 3, 4, 7, 13, 15)."""
    words = _words(subject, number)
    text, more = _sentence(subject, "I want to ", done=False, number=number)
    taps = [command(word) for word in words]
    line = f"Tap {', '.join(taps[:-1])} or {taps[-1]}"
    return _with_picture(subject, Card(f"{text}\n{line}", (*more, *words)))


def _words(subject: Subject, number: int) -> tuple[str, ...]:
    match subject:
        case ConnectSubject():
            return (f"approve {number}", f"reject {number}")
        case DownloadSubject():
            return filecards.download_words(subject, number)
        case SendSubject(chat=chat) if not chat.scoped and subject.file is None:
            return (f"approve {chat.ref} {number}", f"approve {chat.ref} all", f"reject {chat.ref} {number}")
        case SendSubject(chat=chat) | LeaveSubject(chat=chat):
            # No standing approval covers a file, or a conversation with a group's admins.
            return (f"approve {chat.ref} {number}", f"reject {chat.ref} {number}")


def _with_picture(subject: Subject, card: Card) -> Card:
    """The card with the preview of its file, as long as both are one message."""
    match subject:
        case DownloadSubject(preview=preview) | SendSubject(file=Attachment(preview=preview)):
            shown = replace(card, picture=picture(preview))
            return shown if fits(shown) else card
        case _:
            return card


def outcome_card(subject: Subject, number: int, outcome: Outcome) -> Card:
    """The card after its action ended, or the post of an action that had no card (flows 6, 8)."""
    done = outcome.state is State.DONE
    text, more = _sentence(subject, "I " if done else "I want to ", done=done, number=number, outcome=outcome)
    line, words = _outcome_line(subject, outcome)
    asked = asking(subject, number)
    card = Card(f"{text}\n{line}", (*more, *words), asked.picture)
    if asked.picture is None or fits(card):
        return card
    line, words = _outcome_line(subject, replace(outcome, error=_short(outcome.error or "")))
    return Card(f"{text}\n{line}", (*more, *words), asked.picture)


def _sentence(
    subject: Subject, start: str, *, done: bool, number: int, outcome: Outcome | None = None
) -> tuple[str, tuple[str, ...]]:
    match subject:
        case ConnectSubject():
            return start + _connect(subject, done=done, connected=outcome is None or outcome.connected), ()
        case DownloadSubject():
            return filecards.downloading(subject, start, done=done), ()
        case SendSubject():
            return _send(subject, start, done=done, number=number)
        case LeaveSubject(chat=chat):
            if chat.ref.startswith("@"):
                return f"{start}{'deleted' if done else 'delete'} {chat_label(chat)}.", ()
            return f"{start}{'left' if done else 'leave'} {chat_label(chat)}.", ()


def _send(subject: SendSubject, start: str, *, done: bool, number: int) -> tuple[str, tuple[str, ...]]:
    first = f"{start}{'sent' if done else 'send'} a message to {chat_label(subject.chat)}"
    text, more = _quoted(subject.text, number)
    parts = [f"{first}: {text}"] if subject.text or subject.file is None else [first]
    if subject.reply_to is not None:
        parts.append(f"replying to {inert.code(_short(subject.reply_to))}")
    if subject.mentions:
        parts.append("mentioning " + ", ".join(_mention(name) for name in subject.mentions))
    if subject.file:
        parts.append(filecards.attaching(subject.file))
    return "\n".join(parts), more


def _connect(subject: ConnectSubject, *, done: bool, connected: bool) -> str:
    verb = ("connected to" if connected else "sent a request to connect to") if done else "connect to"
    kind = f"{subject.kind} " if subject.kind else ""
    who = f"{kind}{inert.name(subject.name)}" if subject.name else f"{kind}somebody whose name the link does not tell"
    if _is_simple_name(subject.target):
        where = f"({subject.target})"
    else:
        # In parentheses a span would be none: the core looks for one at the start of a word.
        where = f"by {inert.span(subject.target)}" + (f", server {inert.span(subject.host)}" if subject.host else "")
    how = "with a random name" if subject.incognito else "as myself"
    text = f"{verb} {who} {where}, {how}."
    if subject.message:
        text += f"\nwith the message {inert.code(subject.message)}"
    return text


def _is_simple_name(target: str) -> bool:
    body = target[1:]
    return (
        target[:1] in "@#"
        and bool(body)
        and all(part and part.isascii() and part.replace("-", "").isalnum() for part in body.split("."))
    )


def _quoted(text: str, number: int) -> tuple[str, tuple[str, ...]]:
    """The text to send, whole or as its beginning and end with the command that shows the rest."""
    if _escaped(inert.code(text)) <= _QUOTE_BYTES:
        return inert.code(text), ()
    keep = 1_000
    cut = inert.cut(text, keep)
    while (
        _escaped(inert.code(cut.head)) + _escaped(inert.code(cut.tail)) > _QUOTE_BYTES
    ):  # escapes can be 10 times as long
        keep //= 2
        cut = inert.cut(text, keep)
    show = f"show {number}"
    middle = f"… {cut.hidden} characters not shown, {command(show)} …"
    return f"{inert.code(cut.head)}\n{middle}\n{inert.code(cut.tail)}", (show,)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


def _mention(name: str) -> str:
    shown = inert.name(name)
    return f"@{shown}" if shown == name and " " not in name else inert.span(f"@{name}")


def _outcome_line(subject: Subject, outcome: Outcome) -> tuple[str, tuple[str, ...]]:
    by = inert.name(outcome.by) if outcome.by else ""
    words: tuple[str, ...]
    if outcome.host:
        decided, words = "Performed without approval (mode host)", ()
    elif outcome.standing and isinstance(subject, SendSubject):
        decided, words = f"Approved for this chat by {by}", (f"revoke {subject.chat.ref}",)
    elif outcome.standing and isinstance(subject, DownloadSubject):
        decided, words = f"Files approved for this chat by {by}", (f"receive {subject.chat.base} off",)
    else:
        decided, words = f"Approved by {by}", ()
    taps = "".join(f" {command(word)}" for word in words)
    match outcome.state:
        case State.DONE:
            return f"{decided}.{taps}", words
        case State.FAILED if not outcome.by and not outcome.host:
            return f"Failed: {inert.span(outcome.error or 'unknown')}", ()
        case State.FAILED:
            return f"{decided}; failed: {inert.span(outcome.error or 'unknown')}{taps}", words
        case State.REJECTED:
            return f"Rejected by {by}.", ()
        case State.EXPIRED:
            return "Expired.", ()
        case State.CANCELLED:
            return "Cancelled: the server stopped.", ()
        case State.INTERRUPTED:
            return f"{decided}; interrupted: the server stopped.", ()
        case State.PENDING | State.PERFORMING:
            raise ValueError(f"{outcome.state} is no outcome")


def crashed_line(state: State, by: str | None) -> str:
    """The last line of a card whose server ended without a stop: the next start adds it (product 5, Journal)."""
    if state is State.PERFORMING:
        decided = f"Approved by {inert.name(by)}" if by else "Performed without approval (mode host)"
        return f"{decided}; interrupted: the server stopped. Check the chat before asking again."
    return "Cancelled: the server stopped."


def pieces(number: int, text: str) -> list[Card]:
    """The whole text of action N in as many posts as it needs (`/show N`)."""
    parts: list[str] = []
    rest = text
    while rest:
        size = min(len(rest), 3_000)
        while size > 1 and _escaped(inert.code(rest[:size])) > CARD_BYTES - 200:
            size //= 2
        parts.append(rest[:size])
        rest = rest[size:]
    return [
        Card(f"Action {number}, part {i} of {len(parts)}:\n{inert.code(part)}") for i, part in enumerate(parts, start=1)
    ]


def fits(card: Card) -> bool:
    """Whether the core takes the card as a message, also with its outcome line."""
    return _escaped(card.text) + len(card.picture or "") <= CARD_BYTES


def _escaped(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def listing(lines: Sequence[Card], empty: str) -> list[Card]:
    """Lines as posts that each fit; `empty` when there are none."""
    posts: list[Card] = []
    for line in lines:
        if posts and _escaped(posts[-1].text) + _escaped(line.text) < CARD_BYTES:
            posts[-1] = Card(f"{posts[-1].text}\n{line.text}", posts[-1].commands + line.commands)
        else:
            posts.append(line)
    return posts or [Card(empty)]


def shown_name(name: str | None) -> str:
    """A name in a sentence, inert; empty for nobody."""
    return inert.name(name) if name else ""


def reminder(number: int, time: str) -> Card:
    """30 minutes before a pending action expires (product 6)."""
    return Card(f"Action {number} expires at {time}.")


def approval_ended(chat: Chat) -> Card:
    """A standing approval bounded in number was used up."""
    return Card(f"The approval of messages to {chat_label(chat)} was used up: they need approval again.")


def approval_over(ref: str) -> Card:
    """The time of a standing approval is over."""
    return Card(f"The time of the approval of messages to chat ({ref}) is over: they need approval again.")


def approved_for(chat: Chat, by: str, until: str | None, messages: int | None) -> Card:
    """A standing approval was given (flow 6)."""
    count = "1 message" if messages == 1 else f"{messages} messages"
    bound = f" until {until}" if until else f" for {count}" if messages else ""
    word = f"revoke {chat.ref}"
    return Card(f"Approved for {chat_label(chat)} by {inert.name(by)}{bound}. {command(word)}", (word,))


def pending_line(subject: Subject, number: int, expires: str) -> Card:
    """One pending action in the reply to `/pending`."""
    match subject:
        case ConnectSubject():
            what, ref = f"connect to {inert.name(subject.name or subject.target)}", ""
        case SendSubject(chat=chat):
            what, ref = f"a message to {chat_label(chat)}", f"{chat.ref} "
        case LeaveSubject(chat=chat):
            what, ref = f"leave {chat_label(chat)}", f"{chat.ref} "
        case DownloadSubject(chat=chat):
            what, ref = f"download {filecards.file_name(subject.name)} from {chat_label(chat)}", f"{chat.ref} "
    verb = "receive" if isinstance(subject, DownloadSubject) else "approve"
    words = (f"{verb} {ref}{number}", f"reject {ref}{number}")
    taps = " ".join(command(word) for word in words)
    return Card(f"Action {number}: {what}, expires at {expires}. {taps}", words)


def as_code(text: str) -> str:
    """A piece of the server's own line, such as an option to type, as code."""
    return inert.span(text)


def chat_line(
    chat: Chat, approved_by: str | None, until: str | None, messages: int | None, files_by: str | None = None
) -> Card:
    """One chat in the reply to `/list`, with who approved messages to it and files from it."""
    text, words = f"{chat_label(chat)}, {chat.state}", []
    if approved_by:
        bound = f" until {until}" if until else f" for {messages} more" if messages else ""
        words.append(f"revoke {chat.ref}")
        text += f", messages approved by {inert.name(approved_by)}{bound} {command(words[-1])}"
    if files_by:
        words.append(f"receive {chat.ref} off")
        text += f", files approved by {inert.name(files_by)} {command(words[-1])}"
    return Card(text, tuple(words))
