"""A recording as the replay needs it: who said what in which step, and what came of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.recorded import frames
from tests.sandbox.conformance.compare import TWO_WORDS
from tests.sandbox.conformance.world import NOT_REPLAYED, SECOND

__all__ = ["Act", "Event", "Recording", "settled"]

SAME_PROCESS = {"agent-2": "agent"}
"""A second client of a process is the same core."""

ROUTINE = frozenset((
    "chatCmdError",  # the server's answer to a request without a corrId
    "agentConnsDeleted", "agentRcvQueuesDeleted", "chatError", "chatErrors", "connectionsDiff", "contactAnotherClient",
    "groupMemberUpdated", "hostConnected", "hostDisconnected", "subscriptionEnd", "subscriptionStatus",
))  # fmt: skip
"""Events that a real core sends or not (see the notes of the recordings)."""


@dataclass(frozen=True)
class Act:
    """A command to a core, with its answer if that was recorded; without a command: a place where the world
    around the cores may change."""

    line: int
    time: float
    step: str
    core: str
    command: str | None
    answer: dict[str, Any] | None = None


@dataclass(frozen=True)
class Event:
    """One event of a core. Its place counts among the events of its `chat` (a reference) that come from the same
    member (`source`), or, for a change of a status, among those of the same `item`."""

    line: int
    step: str
    core: str
    chat: str
    item: int | None
    body: dict[str, Any]

    @property
    def is_progress(self) -> bool:
        """Whether it is one of many that say how far a file is: nobody counts them."""
        return "Progress" in self.body["type"]

    @property
    def source(self) -> str:
        """The name of the member of a group whose message made this event: what comes from several is not in order."""
        items = self.body.get("chatItems") or [self.body.get("chatItem") or {}]
        direction = items[0].get("chatItem", {}).get("chatDir", {})
        members = [
            direction.get("groupMember"),
            *(self.body.get(key) for key in ("byMember", "hostMember", "member_", "member")),
        ]
        name = next((m["memberProfile"]["displayName"] for m in members if isinstance(m, dict)), "")
        return "incognito" if TWO_WORDS.fullmatch(name) else name


@dataclass
class Recording:
    """A file of `tests/data/wire`."""

    name: str
    acts: list[Act] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    cores: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, name: str) -> Recording:
        """Everything of the recording that a simulated core can be asked to repeat."""
        recording = cls(name)
        lines = list(enumerate(frames(name), 1))
        step = ""
        for line, frame in lines:
            if frame["dir"] == "step":
                step = frame["text"]
                recording.steps.append(step)
            if (name, step) not in NOT_REPLAYED:
                recording._add(line, frame, step, lines)
        return recording

    def longest(self) -> str:
        """The longest text of a message in an answer."""
        texts = re.findall(r'"itemText": ("(?:[^"\\]|\\.)*")', json.dumps([act.answer for act in self.acts]))
        return str(json.loads(max(texts, key=len)))

    def _add(self, line: int, frame: dict[str, Any], step: str, lines: list[tuple[int, dict[str, Any]]]) -> None:
        core = self._core(line, frame)
        if core != "-" and core not in self.cores:
            self.cores.append(core)
        if frame["dir"] in ("step", "note"):
            self.acts.append(Act(line, frame["t"], step, core, None))
        elif (command := _command(frame)) is not None:
            pair = _pair(frame)
            answer = next((f for _, f in lines[line:] if f["dir"] == "resp" and _pair(f) == pair), None)
            body = None if answer is None else _answer(answer)
            self.acts.append(Act(line, frame["t"], step, core, command, body))
        elif frame["dir"] == "event":
            body = frame.get("resp") or frame.get("result") or {"type": "chatError"}
            self.events += [Event(line, step, core, *e) for e in settled(body)]

    def _core(self, line: int, frame: dict[str, Any]) -> str:
        core = SAME_PROCESS.get(frame["core"], frame["core"])
        since, other = SECOND.get((self.name, core), (0, core))
        return other if line >= since else core


def _command(frame: dict[str, Any]) -> str | None:
    """The command of a frame; of a raw request only when it is a well-formed one."""
    if frame["dir"] == "cmd":
        return frame.get("cmd")
    if frame["dir"] != "raw" or "sent" not in frame:
        return None
    try:
        request = json.loads(frame["sent"])
        request["cmd"].encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(request.get("corrId"), str):
        return None
    frame["corrId"] = request["corrId"]
    return str(request["cmd"])


def _pair(frame: dict[str, Any]) -> tuple[str, str]:
    return frame["core"], str(frame.get("corrId", frame.get("seq")))


def _answer(frame: dict[str, Any]) -> dict[str, Any] | None:
    """The answer in the form of the WebSocket: errors are `chatCmdError`."""
    if "error" in frame:
        return {"type": "chatCmdError", "chatError": frame["error"]}
    return frame.get("resp", frame.get("result"))


def settled(event: dict[str, Any]) -> list[tuple[str, int | None, dict[str, Any]]]:
    """What of an event is determined: (chat, item, event); one event for each item whose status changed."""
    kind = event["type"]
    if kind in ROUTINE:
        return []
    if "File" in kind:
        return _of_a_file(event)
    if kind != "chatItemsStatusesUpdated":
        return [(_chat(event), None, event)]
    single = [{**event, "chatItems": [_without_upload(item)]} for item in event["chatItems"]]
    metas = [(e, e["chatItems"][0]["chatItem"]["meta"]) for e in single]
    return [(_chat(e), m["itemId"], e) for e, m in metas if m["itemStatus"].get("sndProgress") != "partial"]


def _of_a_file(event: dict[str, Any]) -> list[tuple[str, int | None, dict[str, Any]]]:
    """The events of a file have an order of their own; of its progress only the end is determined. How far its message
    is meanwhile is not."""
    if "Progress" in event["type"]:
        sizes = [event[key] for key in ("sentSize", "receivedSize", "totalSize") if key in event]
        if sizes[0] != sizes[1]:
            return []
    out = dict(event)
    for key in ("chatItem", "chatItem_"):
        if key in event and not event["type"].startswith("rcv"):
            item = event[key]["chatItem"]
            meta = {k: v for k, v in item["meta"].items() if k not in ("itemStatus", "sentViaProxy")}
            out[key] = {**event[key], "chatItem": {**item, "meta": {**meta, "itemStatus": {"type": "any"}}}}
    transfer = event.get("rcvFileTransfer") or event.get("fileTransferMeta")
    number = event["chatItem"]["chatItem"]["file"]["fileId"] if transfer is None else transfer["fileId"]
    return [(f"file {number}", None, out)]


def _without_upload(item: dict[str, Any]) -> dict[str, Any]:
    """An own item without the state of its upload, which goes on beside the message."""
    file = item["chatItem"].get("file")
    if file is None or not file["fileStatus"]["type"].startswith("snd"):
        return item
    file = {**file, "fileStatus": {"type": "any"}}
    return {**item, "chatItem": {**item["chatItem"], "file": file}}


def _chat(event: dict[str, Any]) -> str:
    """The chat of an event as a reference."""
    info: dict[str, Any] = event
    if event.get("chatItems"):
        info = event["chatItems"][0]["chatInfo"]
    elif isinstance(event.get("chatItem"), dict):
        info = event["chatItem"]["chatInfo"]
    elif event.get("chatItemDeletions"):
        info = event["chatItemDeletions"][0]["deletedChatItem"]["chatInfo"]
    elif isinstance(event.get("chatInfo"), dict):
        info = event["chatInfo"]
    elif isinstance(event.get("reaction"), dict) and "chatInfo" in event["reaction"]:
        info = event["reaction"]["chatInfo"]
    for key in ("groupInfo", "toGroup", "group"):
        if isinstance(info.get(key), dict) and "groupId" in info[key]:
            return f"#{info[key]['groupId']}"
    for key in ("contact", "toContact"):
        if isinstance(info.get(key), dict) and "contactId" in info[key]:
            return f"@{info[key]['contactId']}"
    return "core"
