"""The largest messages and the names that a real core accepted are those that the sandbox accepts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.recorded import oracle
from tests.sandbox.conformance.pair import Pair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMITS = oracle("size-limits")
NAMES = oracle("valid-names")


def _reply(pair: Pair, to: str, quoted: int, text: str) -> dict[str, Any]:
    return pair.send("agent", to, text, quotedItemId=quoted)


def _received(pair: Pair, to: str) -> int:
    pair.send("bob", "#1" if to == "#1" else f"@{pair.do('bob', '/_contacts 1')['contacts'][0]['contactId']}", "q")
    return pair.last("agent", to)


def _own(pair: Pair, to: str, text: str) -> int:
    """A message of the agent with a time of the longest form, nine digits behind the second: it is in the quote."""
    while True:
        meta = pair.send("agent", to, text)["chatItems"][0]["chatItem"]["meta"]
        if len(meta["itemTs"]) == len("2026-11-30T21:00:00.123456789Z"):
            return int(meta["itemId"])


SENDERS: dict[str, Callable[[Pair, str], dict[str, Any]]] = {
    "text, direct": lambda p, text: p.send("agent", p.direct, text),
    "text, group": lambda p, text: p.send("agent", "#1", text),
    "text live=on, direct": lambda p, text: p.send("agent", p.direct, text, " live=on"),
    'reply to a received "q", direct': lambda p, text: _reply(p, p.direct, _received(p, p.direct), text),
    'reply to an own "own", direct': lambda p, text: _reply(p, p.direct, _own(p, p.direct, "own"), text),
    'reply to a received "q", group': lambda p, text: _reply(p, "#1", _received(p, "#1"), text),
    'reply to an own "own", group': lambda p, text: _reply(p, "#1", _own(p, "#1", "own"), text),
    "edit, direct": lambda p, text: p.edit(p.direct, _own(p, p.direct, "a"), text),
    "edit, group": lambda p, text: p.edit("#1", _own(p, "#1", "a"), text),
    # The recorded mention was of "Alice", this one is of "Bob": the name counts twice, in the text and as a key.
    'mention of "Alice", group (length with the name)': lambda p, text: p.send(
        "agent", "#1", "@Bob " + text[: len(text) - len("@Bob ") + 2], mentions={"Bob": p.bob()}
    ),
    "edit with a mention, group": lambda p, text: p.edit(
        "#1", _own(p, "#1", "a"), "@Bob " + text[: len(text) - len("@Bob ") + 2], {"Bob": p.bob()}
    ),
}
FILES = (
    "file a.txt of 1000 bytes, direct",
    "file a.txt of 1000 bytes, group",
    "image with a preview of 100 characters, direct",
)


def _tag(answer: dict[str, Any]) -> str:
    error = answer["chatError"]
    if error["type"] == "errorStore":
        return str(error["storeError"]["type"])
    return f"{error['errorType']['type']}: {error['errorType']['message']}"


def test_every_measured_kind_of_message_is_tried_here() -> None:
    assert {*SENDERS, *FILES, "text ttl=86400, direct"} == LIMITS.keys()


def test_messages_with_a_time_to_live_are_refused_as_not_modelled() -> None:
    pair = Pair()
    answer = pair.send("agent", pair.direct, "x", " ttl=86400")
    assert _tag(answer).startswith("commandError: the sandbox does not model ")


@pytest.mark.parametrize("kind", FILES)
def test_the_largest_caption_is_sent_and_one_byte_more_is_refused(kind: str, tmp_path: Path) -> None:
    pair = Pair()
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(1000))
    content: dict[str, Any] = {"type": "file"}
    if kind.startswith("image"):
        content = {"type": "image", "image": "data:" + "x" * 95}
    source = {"filePath": str(path)}
    largest = LIMITS[kind]["largest_text"]
    to = "#1" if kind.endswith("group") else pair.direct
    for length in (largest, largest + 1):
        answer = pair.send("agent", to, "", msgContent={**content, "text": "x" * length}, fileSource=source)
        assert answer["type"] == ("newChatItems" if length == largest else "chatCmdError"), answer


@pytest.mark.parametrize("kind", SENDERS)
def test_the_largest_text_is_sent_and_one_byte_more_is_refused_with_the_cores_error(kind: str) -> None:
    pair = Pair()
    largest = LIMITS[kind]["largest_text"]
    padding = "x" * (largest + 10)
    fitting = SENDERS[kind](pair, padding[:largest])
    assert fitting["type"] in ("newChatItems", "chatItemUpdated"), fitting
    refused = SENDERS[kind](pair, padding[: largest + 1])
    assert refused["type"] == "chatCmdError"
    assert [_tag(refused)] == LIMITS[kind]["error"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_user_name_is_accepted_or_corrected_as_a_real_core_does(name: str) -> None:
    pair = Pair()
    profile = {"profile": {"displayName": name, "fullName": ""}, "pastTimestamp": False}
    answer = pair.do("other", f"/_create user {json.dumps(profile)}")
    if name == NAMES[name] and name:
        assert answer["type"] == "activeUser"
        assert answer["user"]["profile"]["displayName"] == name
    else:
        assert answer["chatError"]["errorType"] == {
            "type": "invalidDisplayName", "displayName": name, "validName": NAMES[name],
        }  # fmt: skip
