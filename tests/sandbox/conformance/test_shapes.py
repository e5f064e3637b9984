"""What the sandbox says has the keys and values that were seen at a real core, wherever in a message they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.recorded import oracle
from tests.sandbox.conformance.replayed import RECORDINGS, replayed

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPES = oracle("shapes")
OBJECTS = {
    "contact": "Contact", "groupInfo": "GroupInfo", "membership": "GroupMember", "groupMember": "GroupMember",
    "member": "GroupMember", "hostMember": "GroupMember", "byMember": "GroupMember",
    "activeConn": "Connection", "meta": "Meta", "chatItem": "ChatItem", "quotedItem": "Quote", "user": "User",
    "groupProfile": "GroupProfile", "memberProfile": "MemberProfile", "contactConnection": "PCC",
    "groupLink": "GroupLink", "chatStats": "chatStats", "groupSummary": "groupSummary", "supportChat": "supportChat",
    "preparedContact": "preparedContact", "preparedGroup": "preparedGroup", "businessChat": "businessChat",
    "itemDeleted": "itemDeleted", "contactLink": "userContactLink", "addressSettings": "addressSettings",
    "contactRequest": "contactRequest",
}  # fmt: skip
"""The kind of the object under a key, where one key always holds one kind."""
WRAPPED = frozenset(("chatItem",))  # also the key of a chat item with its chat around it


def _objects(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield key, value
        for name, part in value.items():
            yield from _objects(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _objects(part, key)


def _wrong_keys(shape: dict[str, Any], value: dict[str, Any]) -> str:
    required, optional = set(shape["required"]), set(shape["optional"])
    missing, unknown = required - value.keys(), value.keys() - required - optional - {"type"}
    return f"missing {sorted(missing)}, unknown {sorted(unknown)}" if missing or unknown else ""


def _wrong_values(value: dict[str, Any], key: str) -> Iterator[str]:
    for name, part in value.items():
        known = SHAPES["values"].get(name)
        if known is not None and isinstance(part, str) and part not in known:
            yield f"{name} = {part!r}"
    known = SHAPES["values"].get(f"{key}.type")
    if known is not None and isinstance(value.get("type"), str) and value["type"] not in known:
        yield f"{key}.type = {value['type']!r}"


def _faults(message: dict[str, Any], kinds: str) -> Iterator[str]:
    kind = message["type"]
    if kind in ("chatCmdError", "chatError"):
        return
    shape = SHAPES[kinds].get(kind)
    if shape is None:
        yield f"{kind} was never seen"
    elif fault := _wrong_keys(shape, message):
        yield f"{kind}: {fault}"
    for key, value in _objects(message):
        name = OBJECTS.get(key)
        if key in WRAPPED and "chatDir" not in value:
            name = "AChatItem" if "chatInfo" in value else None
        if name and (fault := _wrong_keys(SHAPES["objects"][name], value)):
            yield f"{kind} {key} ({name}): {fault}"
        yield from (f"{kind}: {fault}" for fault in _wrong_values(value, key))


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_object_has_the_keys_and_values_that_a_real_core_gives_it(name: str) -> None:
    faults = sorted({fault for kinds, said in replayed(name).said for fault in _faults(said, kinds)})
    assert faults == []


@pytest.mark.parametrize("name", ["04-send", "08-owners"])
def test_the_recordings_themselves_have_these_keys_and_values(name: str) -> None:
    """The check is one that a real core passes."""
    recording = replayed(name).recording
    faults = {fault for act in recording.acts if act.answer for fault in _faults(act.answer, "responses")}
    faults |= {fault for event in recording.events for fault in _faults(event.body, "events")}
    assert faults == set()
