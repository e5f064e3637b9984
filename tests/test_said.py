"""What a message of the control chat says, from whatever the core says of it."""

from __future__ import annotations

from typing import Any

import pytest

from simplexmcp.said import commands_in


def test_the_commands_of_a_message_are_found_in_their_order() -> None:
    parts = [
        {"text": "Tap "},
        {"text": "/'approve 7'", "format": {"type": "command", "commandStr": "approve 7"}},
        {"text": "x", "format": {"type": "bold"}},
        {"text": "/'reject 7'", "format": {"type": "command", "commandStr": "reject 7"}},
    ]
    assert commands_in({"formattedText": parts}) == ("approve 7", "reject 7")


@pytest.mark.parametrize("odd", [None, [], {}, 3, "text", [3, "text", None, []], [{"format": 3}, {"format": {}}, {}]])
def test_what_is_no_list_of_parts_holds_no_command(odd: Any) -> None:
    assert commands_in({"formattedText": odd}) == ()
