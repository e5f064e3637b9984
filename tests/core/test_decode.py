"""The core's envelopes: each is an answer, an event, or unreadable; nothing else happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.core.decode import Answer, UnreadableError, event_text, frame, result_text
from simplexmcp.errors import CoreError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["corrId", "resp", "result", "error", "type", "chatError", "errorType", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(JSON.map(json.dumps) | st.text() | st.binary())
def test_any_text_is_an_answer_an_event_or_unreadable(data: str | bytes) -> None:
    try:
        what = frame(data)
    except UnreadableError:
        return
    if isinstance(what, Answer):
        assert isinstance(what.corr_id, str)
        assert isinstance(what.outcome, CoreError) or isinstance(what.outcome["type"], str)
    else:
        assert isinstance(what["type"], str)


@given(JSON.map(json.dumps) | st.text() | st.binary())
def test_any_text_of_the_library_is_an_outcome_or_unreadable(data: str | bytes) -> None:
    try:
        outcome = result_text(data)
    except UnreadableError:
        return
    assert isinstance(outcome, CoreError) or isinstance(outcome["type"], str)
    assert isinstance(event_text(data)["type"], str)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "errorType": {"type": "commandError", "message": "Failed reading: empty"}},
        {"type": "errorAgent", "agentError": {"type": "SMP", "smpErr": {"type": "AUTH"}}, "agentConnId": ""},
        {"type": "errorStore", "storeError": {"type": "groupLinkNotFound", "groupInfo": {"groupId": 1}}},
    ],
)
def test_both_transports_give_the_same_error(error: dict[str, Any]) -> None:
    over_socket = frame(json.dumps({"corrId": "1", "resp": {"type": "chatCmdError", "chatError": error}}))
    from_library = result_text(json.dumps({"error": error}))
    assert isinstance(over_socket, Answer)
    assert isinstance(over_socket.outcome, CoreError)
    assert isinstance(from_library, CoreError)
    assert over_socket.outcome.tag == from_library.tag
    assert over_socket.outcome.error == from_library.error == error


def test_an_error_without_its_object_is_still_an_error() -> None:
    answer = frame('{"corrId":"1","resp":{"type":"chatCmdError"}}')
    assert isinstance(answer, Answer)
    assert isinstance(answer.outcome, CoreError)
