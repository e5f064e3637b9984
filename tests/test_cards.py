"""Cards: the exact texts of the flows, nothing active that the server did not mean, nothing hidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp import cards
from simplexmcp.cards import ConnectSubject, LeaveSubject, Outcome, SendSubject
from simplexmcp.chats import Chat
from simplexmcp.said import commands_in
from simplexmcp.sandbox import markdown
from simplexmcp.states import State

TRAIL = Chat(ref="#15", kind="group", name="Trail", state="connected")
RIDGELINE = Chat(ref="#9", kind="business", name="Ridgeline", state="connected")
BOT = Chat(ref="@4", kind="bot", name="Helper", state="connected")
CONNECT = ConnectSubject("bot", "SimpleX Directory", "@directory.simplex", "", incognito=False, message=None)
DONE = Outcome(State.DONE, by="Alice")

foreign = st.text(st.one_of(st.sampled_from("/'` *_~#!@[]()\n.:1a\u202e"), st.characters()), max_size=80)


def found(card: cards.Card) -> tuple[str, ...]:
    """The commands that the core finds in a card."""
    item: dict[str, Any] = {}
    if parts := markdown.parse(card.text):
        item["formattedText"] = parts
    return commands_in(item)


def send(text: str, chat: Chat = TRAIL, reply: str | None = None, mentions: tuple[str, ...] = ()) -> SendSubject:
    return SendSubject(chat, text, reply, mentions)


def test_the_card_of_a_connect_is_that_of_flow_3() -> None:
    card = cards.asking(CONNECT, 7)
    assert card.text == (
        "I want to connect to bot SimpleX Directory (@directory.simplex), as myself.\nTap /'approve 7' or /'reject 7'"
    )
    assert found(card) == card.commands == ("approve 7", "reject 7")
    assert cards.outcome_card(CONNECT, 7, DONE).text == (
        "I connected to bot SimpleX Directory (@directory.simplex), as myself.\nApproved by Alice."
    )


def test_a_connect_that_the_other_side_has_not_answered_says_so() -> None:
    text = cards.outcome_card(CONNECT, 7, Outcome(State.DONE, by="Alice", connected=False)).text
    assert text.startswith("I sent a request to connect to bot SimpleX Directory")


def test_a_connect_by_link_shows_the_link_its_server_and_the_random_name() -> None:
    subject = ConnectSubject("contact", "Bob", "https://smp.example/a#KEY", "smp.example", incognito=True, message="hi")
    card = cards.asking(subject, 7)
    assert card.text.startswith(
        "I want to connect to contact Bob by `https://smp.example/a#KEY`, server `smp.example`, with a random name.\n"
        "with the message `hi`\n"
    )
    assert found(card) == card.commands


def test_the_card_of_a_send_is_that_of_flow_4() -> None:
    card = cards.asking(send("where?", reply="hello", mentions=("Switchback",)), 7)
    assert card.text == (
        "I want to send a message to group Trail (#15): `where?`\nreplying to `hello`\nmentioning @Switchback\n"
        "Tap /'approve #15 7', /'approve #15 all' or /'reject #15 7'"
    )
    assert found(card) == card.commands == ("approve #15 7", "approve #15 all", "reject #15 7")


def test_the_outcome_under_a_standing_approval_is_that_of_flow_6() -> None:
    card = cards.outcome_card(send("hi", RIDGELINE), 8, Outcome(State.DONE, by="Alice", standing=True))
    assert card.text == (
        "I sent a message to business Ridgeline (#9): `hi`\nApproved for this chat by Alice. /'revoke #9'"
    )
    assert found(card) == card.commands == ("revoke #9",)
    assert cards.approved_for(RIDGELINE, "Alice", None, None).text == (
        "Approved for business Ridgeline (#9) by Alice. /'revoke #9'"
    )


def test_the_cards_of_a_leave_are_those_of_flow_7() -> None:
    assert cards.asking(LeaveSubject(RIDGELINE), 3).text == (
        "I want to leave business Ridgeline (#9).\nTap /'approve #9 3' or /'reject #9 3'"
    )
    assert cards.outcome_card(LeaveSubject(RIDGELINE), 3, DONE).text == (
        "I left business Ridgeline (#9).\nApproved by Alice."
    )
    assert cards.asking(LeaveSubject(BOT), 3).text.startswith("I want to delete bot Helper (@4).\n")
    assert cards.outcome_card(LeaveSubject(BOT), 3, DONE).text.startswith("I deleted bot Helper (@4).\n")


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (Outcome(State.DONE, host=True), "Performed without approval (mode host)."),
        (Outcome(State.REJECTED, by="Alice"), "Rejected by Alice."),
        (Outcome(State.EXPIRED), "Expired."),
        (Outcome(State.CANCELLED), "Cancelled: the server stopped."),
        (Outcome(State.INTERRUPTED, by="Alice"), "Approved by Alice; interrupted: the server stopped."),
        (Outcome(State.FAILED, by="Alice", error="no `way`"), "Approved by Alice; failed: `no ˋwayˋ`"),
        (Outcome(State.FAILED, error="gone"), "Failed: `gone`"),
    ],
)
def test_each_outcome_has_its_line(outcome: Outcome, line: str) -> None:
    card = cards.outcome_card(send("hi"), 7, outcome)
    assert card.text.split("\n")[-1] == line
    assert found(card) == card.commands


@given(foreign, foreign, foreign, foreign)
def test_no_foreign_text_adds_or_takes_a_command(text: str, name: str, quoted: str, error: str) -> None:
    chat = Chat(ref="#15", kind="group", name=name, state="connected")
    subject = SendSubject(chat, text, quoted, (name, text))
    for card in (
        cards.asking(subject, 7),
        cards.outcome_card(subject, 7, Outcome(State.FAILED, by=name, error=error)),
        cards.outcome_card(subject, 7, Outcome(State.DONE, by=name, standing=True)),
        cards.asking(ConnectSubject("bot", name, text or "x", quoted, incognito=True, message=error), 7),
        cards.approved_for(chat, name, None, 20),
        cards.pending_line(subject, 7, "21:00"),
        cards.chat_line(chat, name, None, None),
    ):
        assert found(card) == card.commands


@given(foreign)
def test_no_line_of_a_card_starts_with_a_command(text: str) -> None:
    card = cards.asking(send(text), 7)
    assert not any(line.lstrip(" ").startswith("/") for line in card.text.split("\n"))


def test_a_text_over_the_size_of_a_card_shows_its_ends_and_how_to_see_the_rest() -> None:
    text = "a" * 6000 + "x" * 6000 + "/'approve 9'" + "z" * 988
    card = cards.asking(send(text), 7)
    assert f"… {len(text) - 2000} characters not shown, /'show 7' …" in card.text
    assert "a" * 1000 in card.text
    assert "z" * 988 in card.text
    assert card.commands == ("show 7", "approve #15 7", "approve #15 all", "reject #15 7") == found(card)
    assert cards.fits(card)


def test_the_shown_pieces_are_the_whole_text() -> None:
    text = "".join(chr(97 + n % 26) for n in range(14_000)) + "\u202e"
    shown = [card.text.split("\n", 1)[1].strip("`") for card in cards.pieces(7, text)]
    assert "".join(shown) == text[:-1] + "<U+202E>"
    assert all(cards.fits(card) for card in cards.pieces(7, "\u202e" * 15_000))


def test_a_text_of_fifteen_thousand_hidden_characters_still_fits_a_card() -> None:
    assert cards.fits(cards.asking(send("\u202e" * 15_000), 7))


def test_the_reply_to_pending_has_a_line_for_each_action_and_parts_when_it_is_long() -> None:
    lines = [cards.pending_line(send("x"), n, "21:00") for n in range(1, 51)]
    posts = cards.listing(lines, "No action is pending.")
    assert [word for post in posts for word in found(post)] == [word for line in lines for word in line.commands]
    assert all(cards.fits(post) for post in posts)
    assert cards.listing([], "No action is pending.") == [cards.Card("No action is pending.")]
