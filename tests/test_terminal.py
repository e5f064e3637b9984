from __future__ import annotations

import io
import logging
import sys
import unicodedata
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.logs import PrintableFormatter
from simplexmcp.terminal import has_colours, nearest, printable

if TYPE_CHECKING:
    import pytest


def test_escape_sequences_lose_their_escape():
    assert printable("a\x1b]52;c;aGk=\x07b\x1b[2J\rc\n") == ("a<U+001B>]52;c;aGk=<U+0007>b<U+001B>[2J<U+000D>c<U+000A>")


def test_what_reorders_or_hides_text_is_shown():
    assert printable("gpj\u202eexe\u200b\U000e0041\ud800") == "gpj<U+202E>exe<U+200B><U+E0041><U+D800>"


def test_plain_text_of_any_language_is_unchanged():
    assert printable("Алиса & 日本 👍 é") == "Алиса & 日本 👍 é"


@given(st.text(st.characters()))
def test_nothing_active_is_left_and_it_can_be_encoded(text: str):
    shown = printable(text)
    shown.encode()
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def record(message: str, *args: object, exc_info: object = None) -> logging.LogRecord:
    return logging.LogRecord("simplexmcp.x", logging.WARNING, "x.py", 1, message, args, exc_info)  # type: ignore[arg-type]


def test_a_log_line_steers_no_terminal():
    line = PrintableFormatter("%(levelname)s %(message)s").format(record("from %s", "\x1b]0;x\x07\u202e"))
    assert line == "WARNING from <U+001B>]0;x<U+0007><U+202E>"


def test_a_traceback_in_the_log_keeps_its_lines():
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        text = PrintableFormatter("%(message)s").format(record("failed", exc_info=sys.exc_info()))
    assert text.splitlines()[0] == "failed"
    assert text.splitlines()[-1] == "ValueError: <U+001B>[2J"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_a_terminal_whose_user_did_not_refuse_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_colours(Screen())
    assert not has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "")  # as if it were not set
    assert has_colours(Screen())
    monkeypatch.setenv("NO_COLOR", "0")
    assert not has_colours(Screen())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colours(Screen())


def test_a_word_that_is_like_none_gets_no_advice():
    assert nearest("stats", ("serve", "status")) == " Did you mean status?"
    assert nearest("xyzzy", ("serve", "status")) == ""
