"""Faults that a test switches on: refused commands, lost links, delays, disorder, and things nobody has heard of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Faults"]

JsonObject = dict[str, Any]


@dataclass
class _Refusal:
    prefix: str
    error: JsonObject
    core: str | None
    times: int


@dataclass
class Faults:
    """What goes wrong, for all cores or one. Plain settings, read by the model and by the shells around it."""

    response_delay: float = 0.0
    """Seconds that the shells hold back each response (a slow core)."""
    event_delay: float = 0.0
    """Seconds that each event is held back."""
    events_first: bool = False
    """Events caused by a command come before its response, even those that the core sends after it."""
    response_first: bool = False
    """All events caused by a command come after its response."""
    unknown_fields: bool = False
    """Every object of an event gets a field that no version knows."""
    unknown_events: int = 0
    """Before each event, this many events with an unknown tag."""
    relay_down: bool = False
    """Nothing leaves a core (see `Network.relay_up`)."""
    upload_seconds: float = 0.25
    """Seconds from a message to the first chunk of its file on the server."""
    chunk_seconds: float = 0.1
    """Seconds for each chunk of a file, up and down."""
    upload_errors: dict[str, str] = field(default_factory=dict)
    """Cores whose next upload fails, and why (`sndFileError`)."""
    download_errors: dict[str, int] = field(default_factory=dict)
    """Cores whose next download fails, and the error number: such as `errno.ENOSPC` (`rcvFileError`), or
    `errno.EXDEV`: the target is on another file system."""
    redirected: set[str] = field(default_factory=set)
    """Cores whose next download is led to servers that nobody approved: it is aborted, and can be accepted again."""
    tells_servers: bool = False
    """Details of a message name the servers of its file, as a newer core does (`fileXftpServers`)."""
    announced: dict[str, int] = field(default_factory=dict)
    """Cores that announce files with this size (bytes) instead of the true one."""
    refusals: list[_Refusal] = field(default_factory=list)
    drops: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def fail(self, prefix: str, error: JsonObject, *, core: str | None = None, times: int = 1) -> None:
        """The next `times` commands that begin with `prefix` are refused with this CHATERROR object."""
        self.refusals.append(_Refusal(prefix, error, core, times))

    def drop(self, core: str, when: str = "", *, done: bool = False) -> None:
        """The shells lose their connection to the core at its next command that begins with `when`, unanswered; the
        command is carried out before that (`done`) or not at all."""
        self.drops[core] = (when, done)

    def refusal(self, core: str, command: str) -> JsonObject | None:
        """The error for this command, if one is waiting for it."""
        for refusal in self.refusals:
            if command.startswith(refusal.prefix) and refusal.core in (None, core):
                refusal.times -= 1
                if refusal.times <= 0:
                    self.refusals.remove(refusal)
                return refusal.error
        return None

    def dropped(self, core: str, command: str) -> bool | None:
        """Whether the connection is lost instead of this command being answered, and then whether it is done; once."""
        when, done = self.drops.get(core, (None, False))
        if when is None or not command.startswith(when):
            return None
        del self.drops[core]
        return done

    def distort(self, event: JsonObject) -> list[JsonObject]:
        """What a subscriber gets for an event: the event itself, and what was added to it and before it."""
        strange = [{"type": "sandboxUnknownEvent", "number": n} for n in range(self.unknown_events)]
        return [*strange, _with_unknown(event) if self.unknown_fields else event]


_MAPS = frozenset({"mentions", "customData"})
"""Objects whose keys are data, not fields."""


def _with_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        known = {key: item if key in _MAPS else _with_unknown(item) for key, item in value.items()}
        return {**known, "sandboxUnknownField": {"a": [1, None]}}
    if isinstance(value, list):
        return [_with_unknown(item) for item in value]
    return value
