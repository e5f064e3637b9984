"""Doing again in a simulated network what was recorded in a real one, and collecting what differs.

Commands are sent in their recorded order. Before each one the network works until every core has said as much as in
the recording up to that line, or until nothing is on its way; after a pause in the recording it works until it is
quiet.
"""

from __future__ import annotations

import errno
import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simplexmcp.sandbox.network import Network
from tests.sandbox.conformance.compare import Mapping, differences
from tests.sandbox.conformance.disk import Disk
from tests.sandbox.conformance.recording import Act, Event, Recording, settled
from tests.sandbox.conformance.rewriting import links, rewritten
from tests.sandbox.conformance.world import CUT, LONGEST, ONLY, PEOPLE, USERLESS, WORLD

__all__ = ["Finding", "Outcome", "replay"]

START = 1_796_076_000.0
"""The evening of the recordings, in seconds since the epoch."""
END = 10**9
PATIENCE = 5.0
"""Something that comes later than that was not waited for."""
PAUSE = 2.0
"""A gap of so many seconds in a recording: everything had come to rest."""


@dataclass(frozen=True)
class Finding:
    """One difference: where, and what was recorded and simulated."""

    line: int
    step: str
    core: str
    what: str
    path: str
    recorded: Any
    simulated: Any


@dataclass
class Outcome:
    """What a replay found. `refused` are commands that the sandbox says it does not model; `said` is all that the
    cores said, as ("events" or "responses", object)."""

    recording: Recording
    answers: int = 0
    events: int = 0
    findings: list[Finding] = field(default_factory=list)
    refused: list[tuple[Act, str]] = field(default_factory=list)
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@dataclass
class _Stream:
    """The events of one core that keep their order, as recorded and as simulated."""

    recorded: list[Event] = field(default_factory=list)
    simulated: list[Event] = field(default_factory=list)
    learned: int = 0


class _Replay:
    def __init__(self, recording: Recording, phase: float, network: Network | None, disk: Disk) -> None:
        self.recording = recording
        self.disk = disk
        self.start = START + phase
        self.now = self.start
        self.network = network or Network(lambda: self.now, population=False, seed="replay")
        self.mapping = Mapping()
        self.pending = deque(recording.events)
        self.streams: dict[tuple[str, str, str], _Stream] = defaultdict(_Stream)
        self.statuses = _Stream()
        self.wanted: dict[str, int] = defaultdict(int)
        self.counts: dict[str, int] = defaultdict(int)
        self.outcome = Outcome(recording)
        self.unseen: list[str] = []
        self.step = ""
        self.line = 0
        (disk.root / "mnt").mkdir()
        for name in recording.cores:
            self._open(name)
        self._quiet()
        self.streams.clear()
        self.statuses = _Stream()
        self.counts.clear()

    def _open(self, name: str) -> None:
        core = self.network.core(name)
        core.temp_folder = self.disk.folder(name, "tmp")
        self.disk.folder(name, "files/d")
        core.subscribe(lambda event: self._heard(name, event))
        if (self.recording.name, name) not in USERLESS:
            profile = json.dumps({"profile": PEOPLE[name], "pastTimestamp": False})
            for command in (f"/_create user {profile}", "/_start"):
                answer = core.command(command)
                assert answer["type"] in ("activeUser", "chatStarted"), answer

    def _heard(self, name: str, said: dict[str, Any]) -> None:
        said = self.disk.back(said)
        self.outcome.said.append(("events", said))
        for chat, item, body in settled(said):
            event = Event(self.line, self.step, name, self._recorded_chat(name, chat), item, body)
            self._keep(event).simulated.append(event)
            self.counts[name] += not event.is_progress

    def _recorded_chat(self, core: str, chat: str) -> str:
        """The reference by which a chat of the simulated core is called in the recording."""
        kind = {"@": "contact", "#": "group"}.get(chat[0])
        if kind is None:
            return chat
        number = int(chat[1:])
        return f"{chat[0]}{self.mapping.numbers_back.get((core, kind, number), number)}"

    def _keep(self, event: Event) -> _Stream:
        if event.item is not None:
            return self.statuses
        return self.streams[event.core, event.chat, event.source]

    def _quiet(self) -> None:
        for _ in range(100_000):
            wait = self.network.deliver()
            if wait is None:
                return
            self.now += max(wait, 1e-6)
        raise AssertionError("the network does not come to rest")

    def _until(self, line: int) -> None:
        """Work until every core has said what it said in the recording before `line`."""
        while self.pending and self.pending[0].line < line:
            event = self.pending.popleft()
            self.wanted[event.core] += not event.is_progress
            self._keep(event).recorded.append(event)
        for _ in range(100_000):
            if self._enough():
                return
            wait = self.network.deliver()
            if wait is None or wait > PATIENCE or self._enough():
                return
            self.now += max(wait, 1e-6)

    def _reach(self, when: float) -> None:
        """Work until a time has come."""
        while (wait := self.network.deliver()) is not None and self.now + wait <= when:
            self.now += max(wait, 1e-6)

    def _enough(self) -> bool:
        return all(self.counts[core] >= count for core, count in self.wanted.items())

    def run(self) -> Outcome:
        before = 0.0
        for act in self.recording.acts:
            self.step, self.line = act.step, act.line
            rest = act.time - before >= PAUSE
            if rest:
                self._reach(self.start + act.time)
            self._until(act.line)
            if rest:
                self.counts.update(self.wanted)  # a difference must not shift all that follows
            before = act.time
            if act.command is not None and act.command.startswith("/sql agent"):
                self._quiet()  # it asks what has not been delivered yet, some time after a command
            self.now = max(self.now, self.start + act.time)
            for action in WORLD.get((self.recording.name, act.line), ()):
                self._world(*action)
            if act.command is not None:
                self._command(act, act.command)
        self._quiet()
        self._until(END)
        self._compare_events()
        return self.outcome

    def _world(self, what: str, *whom: str) -> None:
        if what == "relay":
            self.network.relay_up(whom[0] == "up")
        elif what == "file server":
            servers = self.network.files
            {"down": servers.down, "up": servers.up, "empty": servers.remove_all}[whom[0]]()
        elif what == "chunks take":
            self.network.faults.chunk_seconds = float(whom[0])
        elif what == "other file system":
            self.network.faults.download_errors[whom[0]] = errno.EXDEV
        elif what == "send":
            core, chat, *texts = whom
            texts = [self.recording.longest() if text == LONGEST else text for text in texts]
            messages = json.dumps([{"msgContent": {"type": "text", "text": text}} for text in texts])
            self.network.core(core).command(rewritten(core, f"/_send {chat} json {messages}", self.mapping))
            self._quiet()
        else:
            self.network.core(whom[0]).command(f"/_{what}")

    def _command(self, act: Act, command: str) -> None:
        self._learn()
        self._guess(command)
        given = self.disk.command(act.core, rewritten(act.core, command, self.mapping), act.answer)
        answer = self.disk.back(self.network.core(act.core).command(given))
        self.outcome.said.append(("responses", answer))
        if act.answer is None:
            self.unseen += links(json.dumps(answer))
            return
        self.outcome.answers += 1
        if (reason := _refusal(answer)) is not None:
            self.outcome.refused.append((act, reason))
            return
        found = differences(act.core, act.answer, answer, self.mapping)
        self._add(act, command[:70], found)

    def _guess(self, command: str) -> None:
        """A link of which the making was not recorded is the one that was made last."""
        for link in links(command):
            if link not in self.mapping.texts and self.unseen:
                last = [made for made in self.unseen if made[:16] == link[:16]]
                if last:
                    self.mapping.text(link, last[-1].rstrip('"},'))

    def _add(self, at: Act | Event, what: str, found: list[tuple[str, Any, Any]]) -> None:
        self.outcome.findings += [Finding(at.line, at.step, at.core, what, *difference) for difference in found]

    def _learn(self) -> None:
        """Map the volatile values of the events so far: later commands name them."""
        for stream in self.streams.values():
            while stream.learned < min(len(stream.recorded), len(stream.simulated)):
                one, other = stream.recorded[stream.learned], stream.simulated[stream.learned]
                if _sign(one) != _sign(other):
                    break
                differences(one.core, one.body, other.body, self.mapping)
                stream.learned += 1

    def _status_streams(self) -> list[_Stream]:
        """The changes of each item's status."""
        streams: dict[tuple[str, int], _Stream] = defaultdict(_Stream)
        for event in self.statuses.recorded:
            streams[event.core, event.item or 0].recorded.append(event)
        for event in self.statuses.simulated:
            number = event.item or 0
            known = self.mapping.numbers_back.get((event.core, "item", number), -number)
            streams[event.core, known].simulated.append(event)
        return list(streams.values())

    def _compare_events(self) -> None:
        for stream in [*self.streams.values(), *self._status_streams()]:
            signs = [_sign(e) for e in stream.recorded], [_sign(e) for e in stream.simulated]
            matcher = SequenceMatcher(None, *signs, autojunk=False)
            for tag, i, j, k, m in matcher.get_opcodes():
                if tag == "equal":
                    for one, other in zip(stream.recorded[i:j], stream.simulated[k:m], strict=True):
                        self.outcome.events += 1
                        found = differences(one.core, one.body, other.body, self.mapping)
                        self._add(one, "event " + _sign(one), found)
                    continue
                for event in stream.recorded[i:j]:
                    self._add(event, f"event in {event.chat}", [("", _sign(event), "missing")])
                for event in [e for e in stream.simulated[k:m] if self._recorded(e)]:
                    self._add(event, f"event in {event.chat}", [("", "missing", _sign(event))])
        self.outcome.findings.sort(key=lambda f: f.line)

    def _recorded(self, event: Event) -> bool:
        """Whether an event like this would be in the recording."""
        name = self.recording.name
        return (name, event.step) not in CUT and ONLY.get(name, event.core) == event.core


def _refusal(answer: dict[str, Any]) -> str | None:
    """The sandbox's own words when it does not model a command."""
    message = answer.get("chatError", {}).get("errorType", {}).get("message", "")
    return message if isinstance(message, str) and message.startswith("the sandbox does not model") else None


def _sign(event: Event) -> str:
    """What an event is about, in a few words: two events with different words are never the same event."""
    body = event.body
    if "chatItems" not in body and "chatItem" not in body:
        sizes = [body[key] for key in ("sentSize", "receivedSize") if key in body]
        return " ".join(str(part) for part in (body["type"], *sizes))
    items = body["chatItems"] if "chatItems" in body else [body["chatItem"]]
    return f"{body['type']} {'; '.join(_item(i['chatItem']) for i in items)}"


def _item(item: dict[str, Any]) -> str:
    content = item["content"]
    kind = content["type"]
    if isinstance(content.get(kind), dict):
        kind += "/" + content[kind]["type"]
    return f"{kind} {item['meta']['itemText'][:60]!r} {item['meta']['itemStatus']['type']}"


def replay(recording: Recording, *, phase: float = 0.0, network: Network | None = None) -> Outcome:
    """Replay a recording from `phase` seconds after a whole second on, in a fresh network unless one is given."""
    with TemporaryDirectory(prefix="replay-") as folder:
        return _Replay(recording, phase, network, Disk(Path(folder))).run()
