"""Arguments of the tools: one sentence for what does not fit, schemas that clients read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.errors import Refused
from simplexmcp.tools import arguments


@pytest.mark.parametrize(
    ("model", "given_", "sentence"),
    [
        (arguments.Send, {}, "`chat` is missing."),
        (arguments.Send, {"chat": "@4"}, "`text` is missing."),
        (arguments.Send, {"chat": "@4", "text": ""}, "`text` must not be empty."),
        (arguments.Send, {"chat": "@4", "file": ""}, "`file` must not be empty."),
        (arguments.Send, {"chat": "@4", "file": "/x" * 3000}, "`file` must have at most 4096 characters."),
        (
            arguments.Send,
            {"chat": "@4", "text": "t", "as": "image"},
            "`as` says how a file is shown; give its path in `file` too.",
        ),
        (
            arguments.Send,
            {"chat": "@4", "file": "/x", "as": "gif"},
            "`as` must be one of 'auto', 'image', 'video', 'voice' or 'file'.",
        ),
        (arguments.Send, {"chat": "@4", "file": "/x", "as_": "file"}, "`as_` is not an argument of send."),
        (arguments.Download, {"chat": "@4"}, "`item` is missing."),
        (arguments.Download, {"chat": "@4", "item": 0}, "`item` must be at least 1."),
        (arguments.Send, {"chat": "@4", "text": 5}, "`text` must be a text."),
        (arguments.Send, {"chat": "@4", "text": "t", "wait": 86401}, "`wait` must be at most 86400."),
        (arguments.Send, {"chat": "@4", "text": "t", "wait": "soon"}, "`wait` must be a number."),
        (arguments.Send, {"chat": "@4", "text": "t", "wait": float("nan")}, "`wait` must be a number."),
        (arguments.Send, {"chat": "@4", "text": "t", "idle": 0}, "`idle` must be at least 1."),
        (arguments.Send, {"chat": "@4", "text": "t", "mention": 5}, "`mention` must be a list."),
        (arguments.Send, {"chat": "@4", "text": "t", "mention": ["x"]}, "`mention.0` must be a whole number."),
        (
            arguments.Send,
            {"chat": "@4", "text": "t", "mention": [2**70]},
            "`mention.0` must be at most 9223372036854775807.",
        ),
        (arguments.Receive, {"limit": 0}, "`limit` must be at least 1."),
        (arguments.Receive, {"limit": 101}, "`limit` must be at most 100."),
        (arguments.Receive, {"limit": 1.5}, "`limit` must be a whole number."),
        (arguments.Receive, {"chat": ""}, "`chat` must not be empty."),
        (arguments.Receive, {"chat": "x" * 201}, "`chat` must have at most 200 characters."),
        (arguments.Connect, {"target": "x", "incognito": "perhaps"}, "`incognito` must be true or false."),
        (arguments.Connect, {"target": "x", "message": ""}, "`message` must not be empty."),
        (
            arguments.Connect,
            {"target": "x\udc00"},
            "`target` holds half of a character (a lone surrogate), which no message can carry; remove it.",
        ),
        (
            arguments.ListChats,
            {"\ud800": 1},
            r"`\ud800` holds half of a character (a lone surrogate), which no message can carry; remove it.",
        ),
        (arguments.ListChats, {"all\n": True}, r"`all\n` is not an argument of list."),
    ],
)
def test_what_does_not_fit_is_one_sentence(model: Any, given_: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        arguments.checked(model, given_)
    assert str(refused.value) == sentence


def test_defaults_are_those_of_the_product() -> None:
    connect = arguments.checked(arguments.Connect, {"target": "x"})
    assert (connect.message, connect.incognito, connect.wait, connect.idle, connect.limit) == (None, False, 60, 5, 50)
    send = arguments.checked(arguments.Send, {"chat": "@4", "text": "t"})
    assert (send.reply_to, send.mention, send.wait, send.idle, send.limit) == (None, (), 0, 5, 50)
    assert (send.file, send.as_) == (None, "auto")
    assert arguments.checked(arguments.Send, {"chat": "@4", "file": "/x"}).text == ""
    assert arguments.checked(arguments.Download, {"chat": "@4", "item": 3}).wait == 60
    receive = arguments.checked(arguments.Receive, {})
    assert (receive.chat, receive.wait, receive.limit) == (None, 0, 50)
    assert arguments.checked(arguments.Receive, {"chat": None}).chat is None


@given(
    st.dictionaries(
        st.text(max_size=5) | st.sampled_from(["chat", "text", "wait"]), st.text(max_size=5) | st.integers() | st.none()
    )
)
def test_any_arguments_are_checked_or_refused_in_one_line(given_: dict[str, Any]) -> None:
    for model in (arguments.Send, arguments.Receive, arguments.ListChats):
        try:
            arguments.checked(model, given_)  # type: ignore[type-var]
        except Refused as refused:
            text = str(refused)
            assert "\n" not in text
            assert text.endswith((".", "remove it."))
            text.encode()


def test_schemas_are_plain_objects_that_allow_nothing_else() -> None:
    for model in (
        arguments.Connect,
        arguments.Send,
        arguments.Receive,
        arguments.History,
        arguments.Download,
        arguments.Leave,
        arguments.ListChats,
    ):
        schema = arguments.schema(model)
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert "title" not in str(schema)
        assert "anyOf" not in str(schema)
    send = arguments.schema(arguments.Send)
    assert send["required"] == ["chat"]
    assert send["properties"]["as"]["enum"] == ["auto", "image", "video", "voice", "file"]
    assert send["properties"]["reply_to"]["type"] == "integer"
    assert send["properties"]["mention"]["maxItems"] == 3
