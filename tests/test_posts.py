"""Every text that the program can post in the control chat, whatever is foreign in it: nothing of that is active,
invisible or left out without a word, and the commands are those that were meant."""

from __future__ import annotations

import inspect
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from simplexmcp import cards, commands, filecards, inert
from simplexmcp.chats import Chat
from simplexmcp.files.folders import Folders
from simplexmcp.files.offer import SentCopy
from simplexmcp.files.uploads import Uploads
from simplexmcp.sandbox import markdown
from simplexmcp.states import FINAL, State
from simplexmcp.subjects import Attachment, Card, ConnectSubject, DownloadSubject, LeaveSubject, Outcome, SendSubject
from tests.test_cards import found

if TYPE_CHECKING:
    from collections.abc import Callable

# Pieces that the core's markdown, an eye or a screen reacts to.
PIECES = (
    "/", "'", "`", "ˋ", "*", "_", "~", "#", "!1 ", "!", "@", "[", "](", ")", " ", "\n", "\r", "\t", "\\", ":", ".", ",",
    "/'approve 7 all'", "/approve 7", "/", "@Bob", "@'B b'", "#team", "#9", "https://evil.example/x", "simplex:/a#x",
    "evil.example", "a@evil.example", "+44 20 7946 0958", "2026-11-30 21", "@x.simplex", "Tap ", "Approved by Alice.",
    "\u202e", "\u200b", "\u2028", "\u00a0", "\u3000", "\ufe0f", "\u0301", "\U000e0041", "\ud800", "\0", "\x1b[2J", "😀",
)  # fmt: skip
foreign = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=14).map("".join)
PICTURE = "data:image/jpg;base64,/9j/4AAQ"


class Long(str):
    """A text whose failure is reported in short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{str(self[:60])!r} and so on to {len(self)} characters"


long_text = st.builds(
    lambda unit, times, end: Long(unit * times + end), foreign, st.sampled_from((1, 1, 40, 400)), foreign
)
some = settings(max_examples=25, deadline=None, phases=[Phase.generate, Phase.shrink])


@dataclass(frozen=True)
class Foreign:
    """What others wrote, and what the core's objects say."""

    name: str
    by: str
    text: str
    error: str
    path: str
    hosts: tuple[str, ...]
    ref: str
    kind: str
    number: int
    count: int
    flag: bool

    @property
    def chat(self) -> Chat:
        return Chat(ref=self.ref, kind=self.kind, name=self.name, state="connected")

    @property
    def whole(self) -> Chat:
        """Its chat without a scope: what a standing approval is about."""
        return replace(self.chat, ref=self.chat.base)

    @property
    def send(self) -> SendSubject:
        file = (
            Attachment("image", self.path, self.count, "0" * 64, self.flag, PICTURE) if self.number % 3 == 0 else None
        )
        return SendSubject(
            self.chat, self.text, self.error if self.flag else None, (self.name, self.by)[: self.count % 3], file
        )

    @property
    def subjects(self) -> list[cards.Subject]:
        sender = self.by if self.flag else None
        return [
            self.send,
            LeaveSubject(self.chat),
            ConnectSubject(self.kind, self.name, self.path, self.error, self.flag, self.text[:400] or None),
            DownloadSubject(self.chat, 30, sender, self.path, self.count, self.hosts, PICTURE if self.flag else None),
        ]

    @property
    def outcomes(self) -> list[Outcome]:
        by = self.by or None
        return [
            Outcome(state, by, standing=standing, host=host, error=self.error or None, connected=self.flag)
            for state in FINAL
            for standing, host in ((False, False), (True, False), (False, True))
            if not (standing and self.chat.scoped)
        ]


anything = st.builds(
    Foreign,
    name=foreign, by=foreign, text=long_text, error=foreign, path=foreign,
    hosts=st.lists(foreign, max_size=4).map(tuple),
    ref=st.sampled_from(("#15", "@4", "#15(_support)", "#15(_support:44)")),
    kind=st.sampled_from(("contact", "bot", "group", "business", "channel")),
    number=st.integers(1, 9_999), count=st.integers(1, 2**40), flag=st.booleans(),
)  # fmt: skip

POSTS: dict[str, Callable[[Foreign], list[Card]]] = {
    "cards.asking": lambda f: [cards.asking(subject, f.number) for subject in f.subjects],
    "cards.outcome_card": lambda f: [
        cards.outcome_card(subject, f.number, outcome) for subject in f.subjects for outcome in f.outcomes
    ],
    "cards.pieces": lambda f: cards.pieces(f.number, f.text),
    "cards.listing": lambda f: cards.listing(
        [cards.pending_line(subject, f.number, "21:00") for subject in f.subjects] * 20, "No action is pending."
    ),
    "cards.reminder": lambda f: [cards.reminder(f.number, "21:00")],
    "cards.approval_ended": lambda f: [cards.approval_ended(f.chat)],
    "cards.approval_over": lambda f: [cards.approval_over(f.ref)],
    "cards.approved_for": lambda f: [
        cards.approved_for(f.whole, f.by, until, messages)
        for until, messages in ((None, None), ("21:00", None), (None, 1))
    ],
    "cards.pending_line": lambda f: [cards.pending_line(subject, f.number, "21:00") for subject in f.subjects],
    "cards.chat_line": lambda f: [
        cards.chat_line(f.whole, f.by, None, f.number, f.by), cards.chat_line(f.whole, None, None, None),
    ],
    "filecards.is_a_download": lambda f: [filecards.is_a_download(_download(f), f.number)],
    "filecards.is_no_download": lambda f: [filecards.is_no_download(f.number)],
    "filecards.files_approved": lambda f: [filecards.files_approved(f.chat, f.by)],
    "filecards.files_need_approval": lambda f: [filecards.files_need_approval(f.chat, had=f.flag)],
    "filecards.not_received": lambda f: [filecards.not_received(f.number, f.error)],
    "filecards.kept": lambda f: [filecards.kept(f.chat, f.path, f.number, f.count)],
    "filecards.deleted": lambda f: [filecards.deleted(f.ref, f.number, f.count)],
    "filecards.refused_file": lambda f: [filecards.refused_file(f.path, f.error, last=f.flag)],
}  # fmt: skip

_MENTIONED = r"(?:@[^\W\d_]+(?:-[^\W\d_]+)*|`[^`\n]+`)"
_MENTIONS = re.compile(rf"mentioning {_MENTIONED}(?:, {_MENTIONED})*")
_OURS = re.compile(r"/'[^'\n]+'")


def _download(f: Foreign) -> DownloadSubject:
    subject = f.subjects[3]
    assert isinstance(subject, DownloadSubject)
    return subject


def kinds(text: str) -> set[str | None]:
    """What the core finds in a text, but for the plain names of mentioned members."""
    lines = (line for line in text.split("\n") if not _MENTIONS.fullmatch(line))
    return {(part.get("format") or {}).get("type") for part in markdown.parse("\n".join(lines)) or []}


def test_every_function_that_makes_a_post_is_tried_here() -> None:
    made = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (cards, filecards)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
        and inspect.signature(function).return_annotation in ("Card", "list[Card]")
    }  # fmt: skip
    assert made == POSTS.keys()


@pytest.mark.parametrize("function", POSTS)
@some
@given(f=anything)
def test_nothing_foreign_is_active_or_invisible_and_the_commands_are_those_meant(function: str, f: Foreign) -> None:
    for card in POSTS[function](f):
        assert found(card) == card.commands, card.text
        assert kinds(card.text) <= {None, "snippet", "command"}, card.text
        assert inert.visible(card.text) == card.text
        assert not any(line.lstrip(" ").startswith("/") for line in card.text.split("\n"))
        assert cards.fits(card) or function == "cards.outcome_card"


@some
@given(f=anything)
def test_each_command_on_a_post_is_one_that_the_program_obeys_and_about_its_own_action_or_chat(f: Foreign) -> None:
    for posts in POSTS.values():
        for card in posts(f):
            for words in card.commands:
                command = commands.parse(f"/'{words}'")
                assert not isinstance(command, str | None), words
                assert getattr(command, "number", f.number) == f.number
                assert getattr(command, "chat", f.ref) in (None, f.ref, f.ref.partition("(")[0])


@some
@given(f=anything)
def test_a_card_always_shows_kind_and_id_of_its_chat_and_its_name_whole_or_counted(f: Foreign) -> None:
    for subject in f.subjects:
        text = cards.asking(subject, f.number).text
        shown = inert.name(f.name)
        if not isinstance(subject, ConnectSubject):
            assert f"{f.kind} {shown} ({f.ref})" in text
        elif f.name:
            assert f"{f.kind} {shown} " in text
        one_line = f.name.replace("\n", " ")
        assert shown in (one_line, inert.span(one_line)) or f"… ({len(f.name)} characters)" in shown


@some
@given(text=long_text | st.builds(lambda a, n, b: Long(a + "x" * n + b), foreign, st.integers(1, 30_000), foreign))
def test_a_card_shows_the_whole_text_or_both_ends_and_how_much_is_between(text: str) -> None:
    card = cards.asking(SendSubject(Chat("#15", "group", "Trail", "connected"), text, None, ()), 7)
    if inert.code(text) in card.text:
        assert "show 7" not in card.commands
        return
    cuts = [inert.cut(text, keep) for keep in (1_000, 500, 250)]
    shown = [
        f"{inert.code(cut.head)}\n… {cut.hidden} characters not shown, /'show 7' …\n{inert.code(cut.tail)}\n"
        for cut in cuts
        if len(cut.head) + cut.hidden + len(cut.tail) == len(text)
    ]
    assert any(ends in card.text for ends in shown)


@some
@given(text=long_text)
def test_the_pieces_of_a_text_are_all_of_it(text: str) -> None:
    shown = [card.text.partition("\n")[2] for card in cards.pieces(7, text)]
    rest = text
    for piece in shown:
        size = next(n for n in range(min(len(rest), 3_000), 0, -1) if inert.code(rest[:n]) == piece)
        rest = rest[size:]
    assert rest == ""


@given(by=foreign, state=st.sampled_from((State.PERFORMING, State.PENDING)))
def test_what_the_next_start_adds_to_a_card_is_inert(by: str, state: State) -> None:
    line = cards.crashed_line(state, by)
    assert kinds(f"I want to send a message.\n{line}") <= {None, "snippet"}
    assert "\n" not in line


@some
@given(f=anything, chat_known=st.booleans(), item=st.none() | st.integers(1, 9_999))
def test_what_owners_are_told_of_a_failed_upload_is_inert(f: Foreign, chat_known: bool, item: int | None) -> None:
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        folders = Folders(Path(folder))
        uploads = Uploads(folders, lines.append)
        copy = Path(folder) / "files" / "sent" / "a" / "copy"
        copy.parent.mkdir(parents=True)
        copy.write_text("x")
        uploads.track(3, SentCopy(copy, 1), f.ref)
        info = {"type": "group", "groupInfo": {"groupId": 15, "groupProfile": {"displayName": f.name}}}
        entry = {"chatInfo": info if chat_known else None, "chatItem": {"meta": {"itemId": item}}}
        meta = {"fileId": 3, "fileName": f.path, "filePath": str(copy)}
        uploads.on_event(
            {"type": "sndFileError", "chatItem_": entry, "fileTransferMeta": meta, "errorMessage": f.error}
        )
    (line,) = lines
    assert kinds(line) <= {None, "snippet"}, line
    assert inert.visible(line) == line


@given(foreign)
def test_no_post_has_a_command_that_is_not_counted(text: str) -> None:
    card = cards.asking(SendSubject(Chat("#15", "group", text, "connected"), text, text, (text,)), 7)
    assert len(_OURS.findall(re.sub(r"`[^`\n]*`", "", card.text))) == len(card.commands)
