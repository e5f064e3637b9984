"""What an error of the core means for the agent."""

from __future__ import annotations

import pytest

from simplexmcp.errors import CoreError
from simplexmcp.tools.trouble import sentence


def test_an_answer_that_is_not_understood_may_have_been_done() -> None:
    text = sentence(CoreError("unexpected/newChatItems", "The core's answer newChatItems has no chatItem."))
    assert "nobody knows whether it was done" in text
    assert "refused" not in text


@pytest.mark.parametrize("said", ["\x1b[2J`x`\n/approve 2", "\u202e" * 400, ""])
@pytest.mark.parametrize("tag", ["error/internalError", "unexpected/x", "errorAgent/BROKER/TIMEOUT", "neverHeardOf"])
def test_whatever_the_core_says_the_sentence_is_one_printable_line(tag: str, said: str) -> None:
    text = sentence(CoreError(tag, said))
    assert text.isprintable()
    assert len(text) < 4_000
