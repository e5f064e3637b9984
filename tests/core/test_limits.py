from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.core.limits import MAX_MESSAGE, Quote, encoded_size, json_length, message_size
from tests.recorded import oracle

LENGTHS = oracle("json-length")
LIMITS = oracle("size-limits")
RECEIVED = Quote({"type": "text", "text": "q"})
OWN = Quote({"type": "text", "text": "own"}, own=True)
KINDS: dict[str, dict[str, Any]] = {
    "text, direct": {},
    "text, group": {"group": True},
    "text live=on, direct": {"live": True},
    "text ttl=86400, direct": {"ttl": 86400},
    'reply to a received "q", direct': {"quote": RECEIVED},
    'reply to an own "own", direct': {"quote": OWN},
    'reply to a received "q", group': {"quote": RECEIVED, "group": True},
    'reply to an own "own", group': {"quote": OWN, "group": True},
    'mention of "Alice", group (length with the name)': {"mentions": ("Alice",), "group": True},
    "edit, direct": {"edit": True},
    "edit, group": {"edit": True, "group": True},
    "edit with a mention, group": {"edit": True, "group": True, "mentions": ("Alice",)},
    "file a.txt of 1000 bytes, direct": {"kind": "file", "file": ("a.txt", 1000)},
    "file a.txt of 1000 bytes, group": {"kind": "file", "file": ("a.txt", 1000), "group": True},
    "image with a preview of 100 characters, direct": {"image": "x" * 100, "file": ("a.png", 1000)},
}


@pytest.mark.parametrize("text", LENGTHS, ids=ascii)
def test_the_length_of_a_text_is_that_of_a_real_core(text: str) -> None:
    assert json_length(text) == LENGTHS[text]


@given(st.text(st.characters(exclude_characters="\b\f", exclude_categories=["Cs"])))
def test_the_length_of_a_text_is_that_of_its_json(text: str) -> None:
    assert json_length(text) == len(json.dumps(text, ensure_ascii=False).encode()) - 2


def test_every_measured_kind_of_message_is_known_here() -> None:
    assert KINDS.keys() == LIMITS.keys()


@pytest.mark.parametrize("kind", LIMITS)
def test_the_largest_text_that_a_real_core_sends_is_the_largest_that_fits(kind: str) -> None:
    largest = LIMITS[kind]["largest_text"]
    assert encoded_size("x" * largest, **KINDS[kind]) == MAX_MESSAGE
    assert encoded_size("x" * (largest + 1), **KINDS[kind]) > MAX_MESSAGE


def test_the_scope_and_further_mentions_count_as_the_wire_reference_says() -> None:
    assert encoded_size("", scope=True) - encoded_size("") == 64
    one = encoded_size("", mentions=("Bob",))
    assert one - encoded_size("") == 56 + 3
    assert encoded_size("", mentions=("Bob", "Eve")) - one == 43 + 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\\né', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
)


@given(st.dictionaries(st.text("ab", max_size=3), VALUES, max_size=3))
def test_the_size_of_a_message_is_that_of_its_compact_json(params: dict[str, Any]) -> None:
    message = {"v": "1-19", "msgId": "x" * 24, "event": "x.msg.new", "params": params}
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    assert message_size("x.msg.new", params) == len(text.encode())
