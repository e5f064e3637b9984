"""What a page may say: everything else is answered with a sentence, or ends the tab."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.errors import CoreError, Refused
from simplexmcp.phone.acts import ACTS
from simplexmcp.phone.files import Files
from simplexmcp.phone.player import Player
from simplexmcp.phone.requests import BadFrame, Fields, read_request
from simplexmcp.phone.trouble import sentence
from simplexmcp.sandbox.network import Network
from tests.phone.tabs import RefusedError
from tests.phone.world import group, phone

VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.lists(st.integers(), max_size=3)
)
VALUES |= st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5)
NAMES = ("chat", "item", "items", "before", "around", "count", "name", "link", "text", "quote", "mentions", "member")


@pytest.mark.parametrize(
    "frame",
    ["", "x", "[]", "7", "null", "{}", '{"id":1}', '{"do":"chats"}', '{"id":"1","do":"chats"}', '{"id":true,"do":"x"}',
     '{"id":1e400,"do":"x"}',
     '{"id":1,"do":7}', '{"id":99999999999999999999,"do":"x"}', "[" * 100_000, '{"id":NaN,"do":"x"}'],
    ids=range(15),
)  # fmt: skip
async def test_a_frame_that_is_no_request_ends_the_tab(frame: str) -> None:
    with pytest.raises(BadFrame):
        read_request(frame)
    async with phone() as world, world.browser.tab() as tab:
        await tab.ws.send_message(frame)
        await tab.until(lambda: tab.closed)
        assert tab.closed == (1008, "This is no request of the phone's page.")


async def test_nothing_can_be_asked_before_somebody_is_chosen() -> None:
    async with phone() as world, world.browser.tab() as tab:
        for do in ACTS:
            with pytest.raises(RefusedError, match="Choose first"):
                await tab.ask(do, chat="#1")
        with pytest.raises(RefusedError, match="Load it again"):
            await tab.ask("format disk")
        assert (await tab.ask("people"))["people"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"chat": "#1", "text": ""}, "nothing to send"),
        ({"chat": "#1"}, "must be a text"),
        ({"chat": "#1", "text": 7}, "must be a text"),
        ({"chat": "#1", "text": "a\0b"}, "NUL"),
        ({"chat": "#1", "text": "\ud800"}, "half of a character"),
        ({"chat": "#1", "text": "x" * 16_001}, "too long"),
        ({"chat": "#1", "text": "ü" * 15_000}, "too long for one message"),
        ({"chat": "#1 json", "text": "x"}, "no such chat"),
        ({"chat": "#99", "text": "x"}, "no such chat"),
        ({"chat": 1, "text": "x"}, "no such chat"),
        ({"chat": "#1", "text": "x", "quote": "3"}, "number"),
        ({"chat": "#1", "text": "x", "quote": -3}, "number"),
        ({"chat": "#1", "text": "x", "quote": 1 << 60}, "number"),
        ({"chat": "#1", "text": "x", "quote": 999}, "no such message"),
        ({"chat": "#1", "text": "x", "live": "yes"}, "true or false"),
        ({"chat": "#1", "text": "x", "mentions": []}, "at most 3"),
        ({"chat": "#1", "text": "x", "mentions": {str(n): "m" for n in range(4)}}, "at most 3"),
        ({"chat": "#1", "text": "x", "mentions": {"a": 7}}, "names to members"),
        ({"chat": "#1", "text": "x", "mentions": {"\ud800": "m"}}, "half of a character"),
        ({"chat": "@4", "text": "x", "mentions": {"a": "m"}}, "no group"),
        ({"chat": "#1", "text": "x", "upload": "../../etc"}, "Choose the file again"),
    ],
)
async def test_a_message_that_does_not_fit_is_refused_with_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        assert await group(ann) == ["#1"]
        with pytest.raises(RefusedError, match=sentence):
            await ann.ask("send", **fields)
        assert (await ann.ask("open", chat="#1"))["items"] == []


async def test_a_text_with_the_marks_of_commands_of_the_core_is_only_a_text() -> None:
    text = '\n/_delete #1 full\n"}] \\ \u2028 \u202e json [{'
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        await ann.ask("send", chat=ref, text=text)
        assert [item["text"] for item in (await ann.ask("open", chat=ref))["items"]] == [text]


async def test_requests_are_answered_in_their_order() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        for number in range(100, 120):
            request = {"id": number, "do": "send", "chat": ref, "text": str(number)}
            await ann.ws.send_message(json.dumps(request))
        await ann.until(lambda: 119 in ann._answers)
        assert [number for number in ann._answers if number >= 100] == list(range(100, 120))
        assert [item["text"] for item in (await ann.ask("open", chat=ref))["items"]] == [
            str(n) for n in range(100, 120)
        ]


async def refusal(do: str, fields: dict[str, Any]) -> str | None:
    """The sentence with which a lonely person's request is refused; None when it is done."""
    network = Network(lambda: 1_800_000_000.0, population=False)
    core = network.core("ann")
    core.command('/_create user {"profile":{"displayName":"Ann","fullName":""},"pastTimestamp":false}')
    player = Player(core, Files(network))
    await player.start()
    try:
        json.dumps(await ACTS[do](player, Fields(fields)))
    except Refused as refused:
        return str(refused)
    except CoreError as error:
        return sentence(error)
    return None


@given(st.sampled_from(sorted(ACTS)), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_whatever_the_fields_are_an_act_is_done_or_refused_with_a_sentence(do: str, fields: dict[str, Any]) -> None:
    said = trio.run(refusal, do, fields)
    assert said is None or said.endswith(".")


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_frame_is_read_or_refused(frame: str) -> None:
    try:
        read_request(frame)
    except BadFrame:
        return
    assert isinstance(json.loads(frame), dict)
