"""Mentions as the core finds them; its own parser is the oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.sandbox import markdown
from simplexmcp.tools.mentions import mention_keys, with_mentions

NAMES = st.text(alphabet="ab'é1 _-*.@\n", min_size=0, max_size=8)


def found(text: str) -> set[str]:
    parts = markdown.parse(text) or []
    return {part["format"]["memberName"] for part in parts if part.get("format", {}).get("type") == "mention"}


def test_a_name_in_the_text_is_not_put_before_it_again() -> None:
    for text in ("@Bob hi", "hi @Bob", "hi @Bob, you", "a\n@Bob!"):
        assert with_mentions(text, {"Bob": 44}) == text


def test_a_name_that_is_not_there_is_put_before_the_text() -> None:
    for text in ("hi", "hi Bob", "hi @Bobby", "a@Bob", "*hi @Bob*", "`@Bob`", "@bob"):
        assert with_mentions(text, {"Bob": 44}) == f"@Bob {text}"
    assert with_mentions("hi", {"Bob": 44, "Switchback Sam": 45}) == "@Bob @'Switchback Sam' hi"


def test_names_that_cannot_stand_in_a_text_get_a_form_that_can() -> None:
    assert mention_keys({1: "O'Neil", 2: "a.b", 3: "  "}) == {"O Neil": 1, "a b": 2, "member 3": 3}
    assert mention_keys({1: "Bob", 2: "Bob"}) == {"Bob": 1, "Bob 2": 2}


@given(st.lists(NAMES, min_size=1, max_size=3), st.text(alphabet="ab @'*`\n/#", max_size=20))
def test_the_core_finds_every_mention(names: list[str], text: str) -> None:
    keys = mention_keys(dict(enumerate(names, start=40)))
    assert len(keys) == len(names)
    assert set(keys) <= found(with_mentions(text, keys))
