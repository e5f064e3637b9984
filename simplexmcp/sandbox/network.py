"""The simulated SimpleX network: cores, links, and one queue of what is on its way.

Nothing here sleeps or knows threads. A command answers at once and puts deliveries with due times into the queue;
`deliver` does what is due and says how long until the next. The shells around it (`server`, `link`) wait in between.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors
from simplexmcp.sandbox.core import SimulatedCore
from simplexmcp.sandbox.faults import Faults
from simplexmcp.sandbox.relay import FileRelay
from simplexmcp.sandbox.state import CoreState

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Delivery", "LinkEntry", "Network"]

JsonObject = dict[str, Any]

HOP = 0.04
"""Seconds from a core to the relay and on to the other core."""


@dataclass(order=True, slots=True)
class Delivery:
    """Something that core `core` has to do at `due` (seconds since the epoch)."""

    due: float
    number: int
    core: str = field(compare=False)
    do: str = field(compare=False)
    data: JsonObject = field(compare=False)


@dataclass(slots=True)
class LinkEntry:
    """A link that somebody published: `kind` address, group or invitation; `data` is what a short link shows."""

    full: str
    short: str
    kind: str
    core: str
    agent_id: str
    data: JsonObject
    name: str | None = None


class Network:
    """All cores of one simulated network. `clock` gives seconds since the epoch; same inputs give the same outputs."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        faults: Faults | None = None,
        population: bool = True,
        seed: str = "sandbox",
    ) -> None:
        self.clock = clock
        self.faults = faults or Faults()
        self.cores: dict[str, SimulatedCore] = {}
        self.links: dict[str, LinkEntry] = {}
        self.queue: list[Delivery] = []
        self.held: list[Delivery] = []
        self.seed = seed
        self.serial = 0
        self.changed: Callable[[], None] = _nothing
        self.touched: Callable[[], None] = _nothing
        self.files = FileRelay(self)
        self.population = population
        if population:
            from simplexmcp.sandbox import peers

            peers.populate(self)

    def core(self, name: str) -> SimulatedCore:
        """The core of a profile; a new name is a core without a user that is not started."""
        if name not in self.cores:
            self.cores[name] = SimulatedCore(self, CoreState(name))
        return self.cores[name]

    def deliver(self) -> float | None:
        """Do everything that is due; seconds until the next delivery, None when nothing is on its way."""
        while self.queue and self.queue[0].due <= self.clock():
            delivery = heappop(self.queue)
            self.core(delivery.core).perform(delivery)
            self.touched()
        return max(0.0, self.queue[0].due - self.clock()) if self.queue else None

    def schedule(self, core: str, do: str, data: JsonObject, *, after: float = 0.0) -> None:
        """Put a delivery into the queue. Deliveries with equal due times keep their order."""
        self.serial += 1
        heappush(self.queue, Delivery(self.clock() + after, self.serial, core, do, data))
        self.changed()

    def reschedule(self, deliveries: list[Delivery]) -> None:
        """Put parked deliveries back, in their order, due now."""
        for parked in deliveries:
            self.schedule(parked.core, parked.do, parked.data)

    def hold(self, core: str, data: JsonObject) -> None:
        """Keep messages of a core until the relay is there again."""
        self.serial += 1
        self.held.append(Delivery(self.clock(), self.serial, core, "sent", data))

    def relay_up(self, up: bool = True) -> None:
        """Switch the relay server off or on; while it is off nothing leaves a core."""
        self.faults.relay_down = not up
        if up:
            held, self.held = self.held, []
            self.reschedule(held)

    def require_relay(self) -> None:
        """A command needs the relay now: refused while it is off."""
        if self.faults.relay_down:
            raise errors.relay_unreachable()

    def waiting(self, core: str) -> list[JsonObject]:
        """The messages of a core that the relay has not taken yet (the core's `snd_message_deliveries`)."""
        return [d.data for d in (*self.queue, *self.held) if d.core == core and d.do == "sent"]

    # Links

    def publish(self, entry: LinkEntry) -> None:
        """Make a link usable, under both its forms and its name."""
        self.links[link_key(entry.full)] = entry
        self.links[link_key(entry.short)] = entry
        if entry.name is not None:
            self.links[entry.name] = entry

    def withdraw(self, full: str) -> None:
        """A deleted or used link: short form and name are unknown, the full form is refused on connecting."""
        entry = self.links.get(link_key(full))
        if entry is not None:
            for key in [k for k, v in self.links.items() if v is entry]:
                del self.links[key]

    def find_link(self, text: str) -> LinkEntry | None:
        """The published link for a full link, a short link or a name (`@x.simplex`)."""
        return self.links.get(text) or self.links.get(link_key(text))

    def directory(self) -> dict[str, JsonObject]:
        """What a person would find written somewhere: label → {kind, short, full, name} of the population's links."""
        out: dict[str, JsonObject] = {}
        for entry in self.links.values():
            label = entry.data.get("label")
            if isinstance(label, str):
                out[label] = {"kind": entry.kind, "short": entry.short, "full": entry.full, "name": entry.name}
        return out

    # Random-looking, repeatable identifiers

    def random_bytes(self, count: int) -> bytes:
        """Bytes that depend only on the seed and on how many were asked for before."""
        self.serial += 1
        digest = b""
        block = 0
        while len(digest) < count:
            digest += hashlib.sha256(f"{self.seed}/{self.serial}/{block}".encode()).digest()
            block += 1
        return digest[:count]

    def new_id(self) -> str:
        """A member id, shared message id or agent id: 24 characters, base64 twice."""
        return b64encode(urlsafe_b64encode(self.random_bytes(12))).decode()

    def new_key(self, count: int = 32) -> str:
        """A key as it stands in links: base64url without padding."""
        return urlsafe_b64encode(self.random_bytes(count)).decode().rstrip("=")

    def restore(self, deliveries: list[Delivery]) -> None:
        """Take over the queue that was written to the state file."""
        self.queue = deliveries
        heapify(self.queue)


def link_key(text: str) -> str:
    """What identifies a link: its queue or its key, whatever the form it is written in."""
    from simplexmcp.sandbox.targets import link_identity

    return link_identity(text)


def _nothing() -> None:
    """Nobody waits for deliveries yet."""
