"""A recording as the replay needs it: who said what in which step, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.recorded import frames

__all__ = ["PEOPLE", "Act", "Event", "Recording", "settled"]

PEOPLE: dict[str, dict[str, Any]] = {
    "agent": {"displayName": "My Agent", "fullName": "", "peerType": "bot"},
    "alice": {"displayName": "Alice", "fullName": ""},
    "bob": {"displayName": "Bob", "fullName": ""},
    "carol": {"displayName": "Carol", "fullName": ""},
    "helper": {"displayName": "Helper Bot", "fullName": "", "peerType": "bot"},
    "shop": {"displayName": "Shop", "fullName": ""},
}

SAME_PROCESS = {"agent-2": "agent"}
"""A second client of a process is the same core."""

ROUTINE = frozenset((
    "agentConnsDeleted", "agentRcvQueuesDeleted", "chatError", "chatErrors", "connectionsDiff", "contactAnotherClient",
    "groupMemberUpdated", "hostConnected", "hostDisconnected", "subscriptionEnd", "subscriptionStatus",
))  # fmt: skip
"""Events that a real core sends or not (see the notes of the recordings)."""


@dataclass(frozen=True)
class Act:
    """Something done to a core: a command with its answer, or a change of the world (`note`)."""

    line: int
    time: float
    step: str
    core: str
    command: str
    answer: dict[str, Any] | None = None
    answer_line: int = 0


@dataclass(frozen=True)
class Event:
    """One event of a core; `stream` is the sequence in which its place counts."""

    line: int
    step: str
    core: str
    stream: str
    body: dict[str, Any]


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
        answers = {_pair(frame): (line, frame) for line, frame in lines if frame["dir"] == "resp"}
        step = ""
        for line, frame in lines:
            core = SAME_PROCESS.get(frame["core"], frame["core"])
            if frame["dir"] == "step":
                step = frame["text"]
                recording.steps.append(step)
            elif frame["dir"] == "cmd" and "cmd" in frame:
                answer_line, answer = answers.get(_pair(frame), (0, None))
                body = None if answer is None else _answer(answer)
                recording.acts.append(Act(line, frame["t"], step, core, frame["cmd"], body, answer_line))
            elif frame["dir"] == "note":
                recording.acts.append(Act(line, frame["t"], step, core, f"note {frame['text']}"))
            elif frame["dir"] == "event" and "type" in (body := frame.get("resp") or frame.get("result") or {}):
                recording.events += [Event(line, step, core, *e) for e in settled(body)]
            if core != "-" and core not in recording.cores:
                recording.cores.append(core)
        return recording


def _pair(frame: dict[str, Any]) -> tuple[str, str]:
    return frame["core"], str(frame.get("corrId", frame.get("seq")))


def _answer(frame: dict[str, Any]) -> dict[str, Any] | None:
    """The answer in the form of the WebSocket: errors are `chatCmdError`."""
    if "error" in frame:
        return {"type": "chatCmdError", "chatError": frame["error"]}
    return frame.get("resp", frame.get("result"))


def settled(event: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What of an event is determined: (stream, event) pairs; one event for each item whose status changed."""
    kind = event["type"]
    if kind in ROUTINE:
        return []
    if kind == "chatItemsStatusesUpdated":
        single = [{**event, "chatItems": [item]} for item in event["chatItems"]]
        return [
            (f"{_chat(e)} status of {e['chatItems'][0]['chatItem']['meta']['itemId']}", e)
            for e in single
            if e["chatItems"][0]["chatItem"]["meta"]["itemStatus"].get("sndProgress") != "partial"
        ]
    return [(_chat(event), event)]


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
