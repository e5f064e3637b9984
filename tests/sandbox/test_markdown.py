from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simplexmcp.sandbox.markdown import parse
from tests.recorded import frames, oracle

TEXTS = oracle("markdown")
MARKS = {"bold": "*", "italic": "_", "strikeThrough": "~", "snippet": "`"}
HOSTILE = st.text(st.sampled_from(list("*_~`#!@/['](.) \n1+-:,ab\u200b\xa0\u2003")) | st.characters(), max_size=60)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_text_has_the_formats_that_a_real_core_finds_in_it(text: str) -> None:
    assert parse(text) == TEXTS[text]


def _formatted(value: Any, found: list[tuple[str, Any]]) -> None:
    if isinstance(value, list):
        for part in value:
            _formatted(part, found)
    elif isinstance(value, dict):
        content = value.get("content")
        if isinstance(content, dict) and "msgContent" in content and "chatDir" in value:
            found.append((content["msgContent"]["text"], value.get("formattedText")))
        for part in value.values():
            _formatted(part, found)


@pytest.mark.parametrize("recording", ["01-first-start-lib", "03-join", "04-send", "04b-size-limits", "05-read"])
def test_recorded_messages_have_the_formats_that_the_core_sent_with_them(recording: str) -> None:
    found: list[tuple[str, Any]] = []
    for frame in frames(recording):
        _formatted(frame, found)
    assert found
    for text, formatted in found:
        assert parse(text) == formatted, text


@given(HOSTILE)
@example("\n")
@example("[](")
@example("!1 !")
@example("@'")
@example("##")
def test_any_text_is_parsed_and_no_part_is_empty_or_equal_in_format_to_its_neighbour(text: str) -> None:
    parts = parse(text)
    if parts is None:
        return
    assert any("format" in part for part in parts)
    assert all(part.keys() <= {"text", "format"} for part in parts)
    formats = [part.get("format") for part in parts]
    assert all(a != b for a, b in itertools.pairwise(formats))


@given(HOSTILE)
def test_the_parts_joined_with_their_marks_are_the_text_but_for_one_newline_at_its_end(text: str) -> None:
    parts = parse(text)
    if parts is None or "##" in text:
        return
    kinds = {part["format"]["type"] for part in parts if "format" in part}
    if kinds & {"colored", "small"}:
        return
    if any(a + a in text for a in "*_~`#"):
        return  # two formats that touch are joined, and their inner marks are gone
    joined = "".join(_with_marks(part) for part in parts)
    assert joined == text.removesuffix("\n")


def _with_marks(part: dict[str, Any]) -> str:
    kind = part.get("format", {}).get("type", "")
    mark = MARKS.get(kind, "#" if kind == "secret" else "")
    return mark + part["text"] + mark


@given(st.text(st.characters(exclude_characters="`\n"), min_size=1).filter(lambda t: t.strip(" ") == t))
def test_text_in_backquotes_without_backquotes_and_blanks_at_its_ends_is_one_snippet(text: str) -> None:
    parts = parse(f"say: `{text}` end")
    assert parts == [{"text": "say: "}, {"text": text, "format": {"type": "snippet"}}, {"text": " end"}]


@given(st.text(st.characters(exclude_characters="\n"), min_size=1))
def test_a_line_that_starts_with_a_slash_is_one_command(text: str) -> None:
    expected = {"text": f" /{text}", "format": {"type": "command", "commandStr": text}}
    assert parse(f" /{text}") == [expected]


@pytest.mark.parametrize(
    "piece",
    ["`", "*", "#", "_", "`a` ", "`a", "/'a", "/'a b' ", "@'a ", "[a](", "[ ", "[a](b ", "1 ", "1-", "+1 (1 ",
     "!1 a ", "@a.", "#a ", "# ", "x@", "a@a.", "https://a.b?", "https://@", '"@', "a-", "\n", "*\n", " "],
)  # fmt: skip
def test_a_hostile_text_of_the_largest_size_is_parsed_at_once(piece: str) -> None:
    text = "x " + piece * (15_000 // len(piece))
    started = time.process_time()
    parse(text)
    # It is some milliseconds; quadratic work on this text is many seconds.
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("text", "kind", "link"),
    [
        (
            "https://127.0.0.1/g#17OtcyFNKan21LyQsefycVQDz63hXqFLEgO33do0ZPU?p=7001&c=d6y7jNf2QVk0nH351ZQuLFI11aTOxVJ-qENs9L_0Rpc",
            "group",
            "simplex:/g#17OtcyFNKan21LyQsefycVQDz63hXqFLEgO33do0ZPU?h=127.0.0.1&p=7001&c=d6y7jNf2QVk0nH351ZQuLFI11aTOxVJ-qENs9L_0Rpc",
        ),
        ("https://smp6.simplex.im/i#AAAA/AAAA", "invitation", "simplex:/i#AAAA/AAAA?h=smp6.simplex.im"),
    ],
)
def test_a_short_link_is_a_simplex_link_with_its_servers(text: str, kind: str, link: str) -> None:
    parts = parse(f"see {text} now")
    assert parts is not None
    assert parts[1]["text"] == text
    assert parts[1]["format"]["linkType"] == kind
    assert parts[1]["format"]["simplexUri"] == link


def test_a_full_group_link_is_a_simplex_link_in_its_simplex_form() -> None:
    links = [f["resp"]["groupLink"]["connLinkContact"]["connFullLink"] for f in frames("03-join")
             if f["dir"] == "resp" and "groupLink" in f.get("resp", {})]  # fmt: skip
    parts = parse(links[0])
    assert parts is not None
    assert parts[0]["format"] == {
        "type": "simplexLink", "linkType": "group", "simplexUri": links[0], "smpHosts": ["127.0.0.1"],
    }  # fmt: skip


def test_a_link_text_that_names_another_address_is_no_link() -> None:
    assert parse("[https://bank.example](https://evil.example)") is None
    short = "https://smp6.simplex.im/a#AAAA"
    parts = parse(f"[me]({short})")
    assert parts is not None
    assert parts[0]["format"]["showText"] == "me"
