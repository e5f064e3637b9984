"""File servers (XFTP relays): which of those that hold a file the core does not know. Pure.

A download shows this machine's address to the relays that hold the file, so relays that only the sender chose need the
owner's word. Two relays are the same when key, hosts and port are: a known name with another key is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["Relay", "Relays", "known_relays", "parse_relay", "sorted_out"]

_URI = re.compile(r"xftp://(?P<key>[^\s:@/]+)(?::[^\s@]*)?@(?P<hosts>[^\s@/?#]+?)(?::(?P<port>[0-9]{1,5}))?/?")


@dataclass(frozen=True, slots=True)
class Relay:
    """One file server, without a password."""

    key: str
    hosts: str
    port: str = ""

    @property
    def shown(self) -> str:
        """Its hosts with the port, for people: foreign text."""
        return f"{self.hosts}:{self.port}" if self.port else self.hosts


@dataclass(frozen=True, slots=True)
class Relays:
    """The relays that hold a file and that the core does not know. `certain` False: the core has to be asked, with a
    download that approves none."""

    unknown: tuple[Relay, ...] = ()
    certain: bool = True

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a card shows of the unknown ones."""
        return tuple(relay.shown for relay in self.unknown)


def parse_relay(uri: str) -> Relay | None:
    """The relay of `xftp://KEY[:PASSWORD]@HOST[,HOST][:PORT]`; None for anything else."""
    found = _URI.fullmatch(uri)
    return Relay(found["key"], found["hosts"], found["port"] or "") if found else None


def known_relays(user_servers: Iterable[dict[str, Any]]) -> frozenset[Relay]:
    """The relays that the core takes files from without approval: those of the user, switched on or not, but for the
    operators that are switched off."""
    known: set[Relay] = set()
    for group in user_servers:
        operator, servers = group.get("operator"), group.get("xftpServers")
        if isinstance(operator, dict) and operator.get("enabled") is not True:
            continue
        for entry in servers if isinstance(servers, list) else ():
            uri = entry.get("server") if isinstance(entry, dict) and not entry.get("deleted") else None
            if isinstance(uri, str) and (relay := parse_relay(uri)) is not None:
                known.add(relay)
    return frozenset(known)


def sorted_out(servers: Iterable[str], known: Collection[Relay], certain: bool = True) -> Relays:
    """The unknown ones of `servers`, each once. One that cannot be read is unknown, as it stands."""
    unknown: dict[Relay, None] = {}
    for uri in servers:
        relay = parse_relay(uri) or Relay("", uri)
        if relay not in known:
            unknown[relay] = None
    return Relays(tuple(unknown), certain)
