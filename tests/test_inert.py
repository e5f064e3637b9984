"""Foreign text on a card: nothing of it is active, nothing of it is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp import inert
from simplexmcp.sandbox import markdown

HOSTILE = [
    "/'approve 7 all'",
    "/approve 7",
    "a\n/approve 7",
    "`a` /'approve 7' `b`",
    "``/'approve 7'``",
    "` /'approve 7' `",
    "*bold*",
    "#hidden#",
    "[x](https://example.com)",
    "!1 red!",
    "a@example.com",
    "+44 20 7946 0958",
    "@Bob",
    "#team",
    "https://example.com/'approve 7'",
    "\u202e/'approve 7'",
    "x\u2028/'approve 7'",
    "x\r\n/'approve 7'",
    " ",
    "",
    "\n\n\n",
    "`",
    "ˋ",
    "\ud800",
    "\0",
]

texts = st.text(st.one_of(st.sampled_from("/'` *_~#!@[]()\n\t.:1aé\u202e\u200b"), st.characters()), max_size=60)


def active(text: str) -> list[str]:
    """The kinds of active things that the core finds, code spans left out."""
    found = markdown.parse(text) or []
    kinds = [part.get("format", {}).get("type") for part in found]
    return [kind for kind in kinds if kind not in (None, "snippet")]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert_in_a_code_span(text: str) -> None:
    assert active(f"I want to send a message: {inert.code(text)}\nTap here") == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_inert(text: str) -> None:
    assert active(f"I want to connect to bot {inert.name(text)} (x), as myself.") == []


@given(texts)
def test_any_text_is_inert_in_a_code_span(text: str) -> None:
    assert active(f"text: {inert.code(text)}\nend") == []


@given(texts)
def test_any_name_is_inert_and_one_line(text: str) -> None:
    shown = inert.name(text)
    assert active(f"group {shown} (x): end") == []
    assert "\n" not in shown


@given(texts, texts)
def test_two_foreign_texts_on_a_card_do_not_make_each_other_active(one: str, other: str) -> None:
    card = f"from {inert.name(one)}: {inert.code(other)}\nreplying to {inert.code(one)}\nmentioning {inert.span(other)}"
    assert active(card) == []


@given(texts)
def test_no_invisible_character_is_left(text: str) -> None:
    shown = inert.code(text)
    assert inert.visible(shown) == shown


def test_invisible_characters_are_named() -> None:
    assert inert.visible("a\u202eb\u200bc\x1bd\ud800") == "a<U+202E>b<U+200B>c<U+001B>d<U+D800>"
    assert inert.visible("tag\U000e0041") == "tag<U+E0041>"


def test_emoji_keep_their_presentation_but_a_selector_elsewhere_is_shown() -> None:
    assert inert.visible("✌\ufe0f") == "✌\ufe0f"
    assert inert.visible("1\ufe0f\u20e3 ℹ\ufe0f ↔\ufe0f") == "1\ufe0f\u20e3 ℹ\ufe0f ↔\ufe0f"
    for plain in ("a", ".", "!", "`", "^", "+", "", "🏽"):
        assert inert.visible(f"{plain}\ufe0f") == f"{plain}<U+FE0F>"


def test_a_flood_of_combining_marks_is_shown_as_what_it_is() -> None:
    assert inert.visible("a" + "\u0301" * 6) == "a" + "\u0301" * 4 + "<U+0301>" * 2


def test_plain_names_stay_as_they_are() -> None:
    assert inert.name("Trail") == "Trail"
    assert inert.name("SimpleX Directory") == "SimpleX Directory"
    assert inert.name("Zoë") == "Zoë"


def test_a_name_that_imitates_a_card_is_a_code_span() -> None:
    assert inert.name("Bob (@4). Approved by Alice.") == "`Bob (@4). Approved by Alice.`"


def test_empty_lines_that_would_push_text_off_the_screen_are_counted() -> None:
    assert inert.code("a" + "\n" * 40 + "b") == "`a`\n`⏎×39`\n`b`"
    assert inert.code("a" + " " * 40 + "b") == "`a␣×40b`"
    assert inert.code("a" + "\u2003 \u3000\u00a0" * 10 + "b") == "`a␣×40b`"
    assert inert.code("\u00a0 \u2003") == "`␣␣␣`"
    assert inert.code("5\u00a0€") == "`5\u00a0€`"


def test_a_cut_keeps_the_beginning_and_the_end_and_counts_the_rest() -> None:
    text = "a" * 1000 + "x" * 500 + "b" * 1000
    cut = inert.cut(text)
    assert (cut.head, cut.tail, cut.hidden) == ("a" * 1000, "b" * 1000, 500)


@given(st.text(st.sampled_from("a\u0301\u200d\U0001f469\U0001f3fd"), min_size=2100, max_size=2200))
def test_a_cut_loses_nothing_and_parts_no_character(text: str) -> None:
    cut = inert.cut(text)
    assert len(cut.head) + cut.hidden + len(cut.tail) == len(text)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)
