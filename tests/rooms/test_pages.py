"""Pages keep to their budget to the unit, whatever the messages hold, and are never empty because of a size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps, size, units
from simplexmcp.rooms.pages import FLOOR, Draft, fill, fit, remainder, shrink, trim

# Letters of each cost: plain, two units (astral), a two-letter escape, a six-letter escape.
TEXTS = st.text(st.sampled_from('aé\U0001f600"\\\n\x01\u2028'), max_size=600)
NAMES = st.text(st.sampled_from('ab"\\é\U0001f600'), min_size=1, max_size=100)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    body = draw(TEXTS)
    length = len(body) + draw(st.integers(0, 3)) * 1000
    mentions = draw(st.none() | st.lists(NAMES, max_size=20))
    message: dict[str, Any] = {"seq": draw(st.integers(1, 2**53)), "from": draw(NAMES), "format": "text"}
    if draw(st.booleans()):
        message["priority"] = True
    message["content"] = body
    message["to"] = mentions
    message["reply_to"] = draw(st.none() | st.just({"seq": 1, "from": "a" * 200, "preview": "\x01" * 100 + "..."}))
    message["at"] = "2026-07-01 12:00:00"
    message["unix"] = 1_780_000_000
    if length > len(body):
        message.update(truncated=True, length=length)
    if draw(st.booleans()):
        message["supersedes"] = 7
    if draw(st.booleans()):
        message.update(room_id=3, room_name=draw(NAMES))
    return Draft(message, body, length)


def draft(content: str, *, to: list[str] | None = None, **more: Any) -> Draft:
    message = {"seq": 1, "from": "a", "format": "text", "content": content, "to": to, "reply_to": None}
    message = {**message, "at": "2026-07-01 12:00:00", "unix": 1_780_000_000, **more}
    return Draft(message, content, len(content))


@given(TEXTS, st.integers(-3, 700))
@example("\U0001f600", 1)
@example("\x01", 5)
def test_the_longest_start_of_a_text_that_fits_is_taken(text: str, room: int) -> None:
    part = fit(text, room)
    assert text.startswith(part)
    assert not part or units(dumps(part)) - 2 <= room
    if part != text:
        assert units(dumps(text[: len(part) + 1])) - 2 > room


@given(st.lists(drafts(), max_size=6), st.integers(FLOOR + 2, 4000))
def test_a_page_holds_the_first_messages_and_keeps_to_its_budget(given_drafts: list[Draft], budget: int) -> None:
    page = fill(given_drafts, budget)
    assert page.used == size(page.messages) <= budget
    assert bool(page.messages) == bool(given_drafts)
    whole = [each.message for each in given_drafts]
    if page.byte_limited:
        assert size(whole[: len(page.messages) + 1]) > budget or page.messages[0] != whole[0]
    else:
        assert len(page.messages) == len(whole)
    if page.messages and page.messages[0] == whole[0]:
        assert page.messages == whole[: len(page.messages)]
    else:
        assert len(page.messages) <= 1


@given(drafts(), st.integers(FLOOR, 3000))
def test_any_message_can_be_made_small_enough_and_says_how(given_draft: Draft, budget: int) -> None:
    small = shrink(given_draft, budget)
    whole = given_draft.message
    assert size(small) <= budget
    assert small["seq"] == whole["seq"]
    if small == whole:
        return
    assert size(whole) > budget
    assert given_draft.body.startswith(small["content"])
    if small["content"] != whole["content"]:
        assert small["truncated"] is True
        assert small["length"] == given_draft.length
    if given_draft.body and not small["content"]:
        assert small["oversized"] is True
    if small["to"] != whole["to"] and small["to"] is not None:
        assert small["to_truncated"] is True
        assert small["to_total"] == len(whole["to"])
        assert small["to"] == whole["to"][: len(small["to"])]


def test_a_long_text_is_cut_to_the_last_unit() -> None:
    small = shrink(draft("x" * 5000), 1000)
    assert size(small) == 1000
    assert list(small)[-3:] == ["unix", "truncated", "length"]
    assert small["length"] == 5000
    assert "oversized" not in small


def test_a_structured_body_is_cut_as_the_text_that_it_is() -> None:
    body = dumps({"list": ["entry"] * 500})
    whole = draft(body)
    small = shrink(whole._replace(message={**whole.message, "format": "json", "content": json.loads(body)}), 800)
    assert small["content"] == body[: len(small["content"])]
    assert small["content"].startswith('{"list":["entry",')


def test_mentions_are_halved_once_the_text_is_gone() -> None:
    names = [f"agent-{number:03}" for number in range(100)]
    small = shrink(draft("text", to=names), 700)
    assert small["content"] == ""
    assert small["to"] == names[:25]
    assert list(small)[-5:] == ["truncated", "length", "to_truncated", "to_total", "oversized"]
    assert small["to_total"] == 100


def test_a_message_without_text_does_not_call_itself_cut_when_only_its_mentions_were() -> None:
    small = shrink(draft("", to=["agent"] * 100), 600)
    assert "truncated" not in small
    assert small["to_truncated"] is True


def test_a_stub_is_what_remains_of_a_message_whose_envelope_is_too_big() -> None:
    reply = {"seq": 1, "from": "p" * 200, "preview": "\x01" * 100}
    whole = draft("text", to=["\\" * 200])
    small = shrink(whole._replace(message={**whole.message, "reply_to": reply, "room_name": "\x01" * 200}), FLOOR)
    assert (small["content"], small["to"], small["reply_to"], small["oversized"]) == ("", None, None, True)
    assert small["from"] == "a"
    assert 0 < len(small["room_name"]) < 200


def test_the_author_is_cut_last() -> None:
    whole = draft("text")
    small = shrink(whole._replace(message={**whole.message, "from": "\x01" * 200, "room_name": "hall"}), FLOOR)
    assert small["room_name"] == ""
    assert 0 < len(small["from"]) < 200


def test_the_other_fields_of_an_answer_are_charged_first() -> None:
    fixed = {"room_name": "hall", "messages": [], "byte_limited": True}
    left = remainder(1000, fixed)
    page = fill([draft("x" * 5000)], left)
    assert size({**fixed, "messages": page.messages}) == 1000


def test_a_budget_that_leaves_no_room_for_a_message_is_too_small_and_says_what_is_needed() -> None:
    fixed = {"room_name": "\x01" * 200, "messages": []}
    with pytest.raises(RoomsError, match=r"too small.*at least (\d+)") as refused:
        remainder(1000, fixed)
    needed = int(str(refused.value).split("at least ")[1].rstrip("."))
    assert remainder(needed, fixed) == FLOOR + 2
    with pytest.raises(RoomsError):
        remainder(needed - 1, fixed)


def test_a_listing_loses_its_last_rows_but_never_all() -> None:
    rows = [{"name": "x" * 100} for _ in range(10)]
    assert trim(rows, size(rows)) == (rows, False)
    assert trim(rows, size(rows) - 1) == (rows[:9], True)
    assert trim(rows, 3) == (rows[:1], True)
    assert trim([], 3) == ([], False)
