"""What is a message and what is not: pure, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.listener.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Complaint,
    Message,
    error_body,
    progress_body,
    read_message,
    result_body,
    whole,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


def nested(depth: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


@given(st.dictionaries(st.text(), VALUES), st.integers() | st.text(), st.text(min_size=1))
def test_a_message_is_read_as_it_was_written(params: dict[str, Any], number: Any, method: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    assert Message(method, params, number) == read_message(body)


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    assert isinstance(read_message(body), Complaint)


@given(VALUES)
def test_no_json_makes_reading_raise(value: Any) -> None:
    read_message(json.dumps(value).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2}}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} {}',
        b'{"jsonrpc":"2.0","id":1,"method":"m\xff"}',
        '{"jsonrpc":"2.0","id":1,"method":"m"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"m"}',
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
    ],
)
def test_what_is_not_plain_json_is_a_parse_error(body: bytes) -> None:
    complaint = read_message(body)
    assert isinstance(complaint, Complaint)
    assert (complaint.code, complaint.id) == (PARSE_ERROR, None)
    assert len(complaint.text) < 200


@pytest.mark.parametrize(
    ("body", "about"),
    [
        (b"[]", "Batches"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', "Batches"),
        (b"1", "JSON-RPC"),
        (b"null", "JSON-RPC"),
        (b'{"id":1,"method":"m"}', "2.0"),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', "2.0"),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', "id"),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', "id"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', "id"),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', "id"),
        (b'{"jsonrpc":"2.0","id":1}', "method"),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', "method"),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', "method"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', "params"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}', "surrogate"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"\\uDC00":1}}', "surrogate"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud83d x"}}', "surrogate"),
        (b'{"jsonrpc":"2.0","id":"\\ud83d","method":"m"}', "surrogate"),
        (nested(64), "nested"),
        (nested(900), "nested"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(body: bytes, about: str) -> None:
    complaint = read_message(body)
    assert isinstance(complaint, Complaint)
    assert complaint.code == INVALID_REQUEST
    assert about in complaint.text
    assert error_body(complaint.id, complaint.code, complaint.text).isascii()


def test_the_id_is_told_when_it_could_be_read() -> None:
    complaint = read_message(b'{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":"\\udfff"}}')
    assert isinstance(complaint, Complaint)
    assert complaint.id == "x"


def test_whole_characters_beyond_the_basic_plane_pass() -> None:
    message = read_message(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud83d\\ude00"}}')
    assert Message("m", {"a": "\U0001f600"}, 1) == message


def test_nesting_up_to_the_limit_and_many_siblings_pass() -> None:
    assert isinstance(read_message(nested(63)), Message)
    wide = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": [[] for _ in range(10_000)]}})
    assert isinstance(read_message(wide.encode()), Message)


def test_a_notification_and_a_posted_response_have_no_id() -> None:
    assert Message("n", {}, None) == read_message(b'{"jsonrpc":"2.0","method":"n"}')
    assert Message("", {}, None) == read_message(b'{"jsonrpc":"2.0","id":3,"result":{}}')


@given(st.text() | st.text(st.characters(categories=["Cs"]), max_size=3))
def test_what_is_written_is_ascii_and_read_by_anybody(text: str) -> None:
    for body in (result_body(1, "{}"), error_body(text, 1, "x"), progress_body("t", 2, whole(text))):
        assert body.isascii()
        assert b"\n" not in body
    assert whole(text) == json.loads(progress_body("t", 2, whole(text)))["params"].get("message", "")
    whole(text).encode()
