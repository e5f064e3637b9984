"""Comparing what a simulated core says with what a real one was seen to say.

Volatile values (times, ids, links, keys) are mapped: the same recorded value must always meet the same simulated
value, and the other way round. Everything else must be equal: keys, texts, numbers, order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TWO_WORDS", "Mapping", "differences"]

TIMES = frozenset((
    "itemTs", "createdAt", "updatedAt", "chatTs", "sentAt", "deletedTs", "userMemberProfileSentAt",
    "userMemberProfileUpdatedAt", "itemVersionTs", "lastMsgFromMemberTs", "formattedItemVersionTs",
))  # fmt: skip
RANDOM = frozenset((
    "agentConnId", "agentConnIds", "connections", "memberId", "itemSharedMsgId", "sharedMsgId", "groupLinkId",
    "xContactId", "agentInvitationId", "pccAgentConnId", "businessId", "customerId", "welcomeSharedMsgId",
    "requestSharedMsgId", "agentRcvFileId", "agentSndFileId", "publicGroupId", "deletedRcvQueues", "connectionCode",
    "connFullLink", "connShortLink", "viaGroupLinkUri", "memberPubKey", "contactLink", "groupLink", "groupKeys",
    "fileDescrText", "privateSndFileDescr", "rcvURIs", "serverAddress", "brokerAddress", "relayServer", "proxyServer",
))  # fmt: skip
NUMBERS = {
    "itemId": "item", "chatItemId": "item", "minUnreadItemId": "item",
    "contactId": "contact", "contactId_": "contact", "byContactId": "contact", "memberContactId": "contact",
    "groupId": "group", "businessGroupId_": "group",
    "groupMemberId": "member", "invitedByGroupMemberId": "member",
    "connId": "connection", "pccConnId": "connection",
    "profileId": "profile", "memberContactProfileId": "profile", "customUserProfileId": "profile",
    "contactRequestId": "request", "contactRequestId_": "request",
    "fileId": "file",
    "chatItemVersionId": "version",
}  # fmt: skip
LISTS = {
    "groups": "groupId",
    "contacts": "contactId",
    "members": "groupMemberId",
    "memberDeliveryStatuses": "groupMemberId",
}
"""Lists without an order of their own, and what they are sorted by here."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TWO_WORDS = re.compile("[A-Z][a-z]+[A-Z][a-z]+(_[0-9]+)?")
"""The name of an incognito profile."""
NAMES = frozenset(("displayName", "localDisplayName"))
RANDOM_NAME = re.compile("[A-Za-z0-9+/]{7}")
"""The name of a member of whom only a made up id is known."""
LONG = 12
"""Shorter values are not looked for inside of texts."""


@dataclass
class Mapping:
    """Which simulated value stands for which recorded one. Numbers belong to a core, texts to everybody."""

    texts: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)
    numbers: dict[tuple[str, str, int], int] = field(default_factory=dict)
    numbers_back: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def text(self, recorded: str, simulated: str) -> bool:
        """Whether the two texts may stand for each other; remembers it."""
        if recorded.startswith("simplex:/") != simulated.startswith("simplex:/"):
            return False
        return (
            self.texts.setdefault(recorded, simulated) == simulated
            and self.back.setdefault(simulated, recorded) == recorded
        )

    def number(self, core: str, kind: str, recorded: int, simulated: int) -> bool:
        """Whether the two ids of a core may stand for each other; remembers it."""
        if 0 in (recorded, simulated):
            return recorded == simulated
        there = self.numbers.setdefault((core, kind, recorded), simulated)
        here = self.numbers_back.setdefault((core, kind, simulated), recorded)
        return there == simulated and here == recorded

    def recorded(self, core: str, kind: str, simulated: int) -> int:
        """The recorded id for a simulated one, or that one itself."""
        return self.numbers_back.get((core, kind, simulated), simulated)

    def rewritten(self, text: str) -> str:
        """A recorded text with the simulated values in place of the recorded ones."""
        for recorded in sorted((t for t in self.texts if len(t) >= LONG and t in text), key=len, reverse=True):
            text = text.replace(recorded, self.texts[recorded])
        return text


def differences(
    core: str, recorded: Any, simulated: Any, mapping: Mapping, path: str = "", key: str = ""
) -> list[tuple[str, Any, Any]]:
    """What differs: (path, recorded, simulated); empty when the two say the same."""
    if isinstance(recorded, dict) and isinstance(simulated, dict):
        return _objects(core, recorded, simulated, mapping, path)
    if isinstance(recorded, list) and isinstance(simulated, list):
        return _lists(core, recorded, simulated, mapping, path, key)
    if type(recorded) is not type(simulated):
        return [(path, recorded, simulated)]
    return [] if _same(core, key, recorded, simulated, mapping) else [(path, recorded, simulated)]


def _objects(
    core: str, recorded: dict[str, Any], simulated: dict[str, Any], mapping: Mapping, path: str
) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    for key in sorted(recorded.keys() | simulated.keys()):
        where = f"{path}.{key}" if path else key
        if key not in simulated:
            found.append((where, recorded[key], "no such key"))
        elif key not in recorded:
            found.append((where, "no such key", simulated[key]))
        elif (kind := _kind_of(key, recorded)) is not None:
            if not mapping.number(core, kind, recorded[key], simulated[key]):
                found.append((where, recorded[key], simulated[key]))
        else:
            found += differences(core, recorded[key], simulated[key], mapping, where, key)
    return found


def _kind_of(key: str, recorded: dict[str, Any]) -> str | None:
    """What a number of an object counts, where that depends on the object."""
    if key == "entityId":
        return {"member": "member", "contact": "contact"}.get(recorded.get("connType", ""))
    if key == "connId" and recorded.get("connType") == "member":
        # Members of a group connect with each other in random order.
        return f"connection {recorded['agentConnId']}"
    if key == "indexInGroup" and recorded[key] > 0:
        # Members are introduced in random order.
        return f"place in group {recorded['groupId']}"
    return None


def _lists(
    core: str, recorded: list[Any], simulated: list[Any], mapping: Mapping, path: str, key: str
) -> list[tuple[str, Any, Any]]:
    if path.endswith("chat.chatItems") and any("group" in v["chatDir"]["type"] for v in recorded):
        # Items of one second have no fixed place in a group: the order of arrival is compared instead.
        recorded = sorted(recorded, key=lambda v: v["meta"]["itemId"])
        simulated = sorted(simulated, key=lambda v: mapping.recorded(core, "item", v["meta"]["itemId"]))
    if len(recorded) != len(simulated):
        return [(f"{path} (length)", [_brief(v) for v in recorded], [_brief(v) for v in simulated])]
    if (order := LISTS.get(key)) and all(isinstance(v, dict) for v in (*recorded, *simulated)):
        recorded = sorted(recorded, key=lambda v: v.get(order, 0))
        simulated = sorted(simulated, key=lambda v: v.get(order, 0))
    found: list[tuple[str, Any, Any]] = []
    for number, (one, other) in enumerate(zip(recorded, simulated, strict=True)):
        found += differences(core, one, other, mapping, f"{path}[{number}]", key)
    return found


def _brief(value: Any) -> Any:
    """A few words for an object of a long list."""
    if isinstance(value, dict):
        content = value.get("chatItem", value).get("content")
        if isinstance(content, dict):
            meta = value.get("chatItem", value).get("meta", {})
            return f"{content['type']} {meta.get('itemText', '')!r}"
        return value.get("localDisplayName", value.get("type", sorted(value)[:3]))
    return value


def _same(core: str, key: str, recorded: Any, simulated: Any, mapping: Mapping) -> bool:
    if isinstance(recorded, str):
        if TIME.fullmatch(recorded) and (key in TIMES or key == "viewed"):
            return _same_time(key, recorded, simulated)
        random = key in RANDOM or (TWO_WORDS.fullmatch(recorded) and TWO_WORDS.fullmatch(simulated))
        if key in NAMES and RANDOM_NAME.fullmatch(recorded) and RANDOM_NAME.fullmatch(simulated):
            random = True
        if random:
            return mapping.text(recorded, simulated)
        return recorded == simulated or mapping.rewritten(recorded) == simulated
    if isinstance(recorded, int) and not isinstance(recorded, bool) and key in NUMBERS:
        return mapping.number(core, NUMBERS[key], recorded, simulated)
    return bool(recorded == simulated)


def _same_time(key: str, recorded: str, simulated: str) -> bool:
    """Times differ, but a banner's is fixed, and whole seconds tell a received message from an own one."""
    if recorded.startswith("1970"):
        return recorded == simulated
    match = TIME.fullmatch(simulated)
    return match is not None and (key != "itemTs" or ("." in recorded) == ("." in simulated))
