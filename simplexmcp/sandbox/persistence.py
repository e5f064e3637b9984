"""A network's state as one JSON file: written whole and at once, so that it is either the old or the new one."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import UserError
from simplexmcp.sandbox.core import SimulatedCore
from simplexmcp.sandbox.network import Delivery, LinkEntry, Network
from simplexmcp.sandbox.state import CoreState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simplexmcp.sandbox.faults import Faults

__all__ = ["dump", "files_of", "load", "save", "text_of", "write"]

JsonObject = dict[str, Any]

FORMAT = 2


def dump(network: Network) -> JsonObject:
    """All that survives a restart. Network settings and started chats do not, as with the real core."""
    held = [*network.held, *network.files.held]
    deliveries = [*network.queue, *held, *(d for core in network.cores.values() for d in core.parked)]
    links: list[LinkEntry] = []
    for entry in network.links.values():
        if not any(entry is known for known in links):
            links.append(entry)
    return {
        "format": FORMAT,
        "seed": network.seed,
        "serial": network.serial,
        "population": network.population,
        "cores": [core.state.to_json() for core in network.cores.values()],
        "links": [asdict(entry) for entry in links],
        "files": network.files.to_json(),
        "queue": [asdict(delivery) for delivery in sorted(deliveries)],
    }


def text_of(network: Network) -> str:
    """The state as the text of its file."""
    return json.dumps(dump(network), ensure_ascii=False, separators=(",", ":"))


def save(network: Network, path: Path) -> None:
    """Write the state now."""
    write(path, text_of(network))


def write(path: Path, text: str) -> None:
    """Replace the file (mode 0600): the new one is written beside it, then takes its place. UserError: it cannot."""
    temporary = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as e:
        raise UserError(f"{path} cannot be written ({e.strerror}). Make room for it, or name another file.") from e


def load(path: Path, clock: Callable[[], float], faults: Faults | None = None) -> Network:
    """The network of a state file; a UserError when it is not one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise UserError(f"{path} was written by another version of the sandbox. Delete it to start anew.")
        network = _restore(data, clock, faults)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise UserError(f"{path} is not a state file of the sandbox ({e}). Delete it to start anew.") from e
    network.files.keep_in(files_of(path))
    return network


def files_of(path: Path) -> Path:
    """The folder beside a state file where the network's file servers keep what was sent."""
    return path.with_name(path.name + ".files")


def _restore(data: JsonObject, clock: Callable[[], float], faults: Faults | None) -> Network:
    network = Network(clock, faults=faults, population=False, seed=data["seed"])
    network.serial = data["serial"]
    for row in data["cores"]:
        network.cores[row["name"]] = SimulatedCore(network, CoreState.from_json(row))
    network.files.restore(data["files"])
    for row in data["links"]:
        network.publish(LinkEntry(**row))
    network.restore([Delivery(**row) for row in data["queue"]])
    if data["population"]:
        from simplexmcp.sandbox import peers

        peers.revive(network)
    return network
