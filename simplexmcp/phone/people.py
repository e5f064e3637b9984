"""Who of the network can be played: everybody but bots, the agent's own core, and names that another program took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.errors import CoreError, Refused
from simplexmcp.phone.player import Line, Player
from simplexmcp.phone.texts import obj, one_line, text_of
from simplexmcp.phone.trouble import sentence
from simplexmcp.sandbox.names import LONGEST, valid_name
from simplexmcp.sandbox.peers import PREFIX

if TYPE_CHECKING:
    from simplexmcp.phone.files import Files
    from simplexmcp.phone.protocol import ChatKind, Person, Place
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.network import Network

__all__ = ["People"]

_BOTS = ("bot", "agent")
_OWNER_LABEL = "Owner"
_KINDS: dict[str, ChatKind] = {"address": "contact", "group": "group"}


@final
class People:
    """The people of a network. `held` is the core that the process itself uses, `owner` who is offered first."""

    def __init__(self, network: Network, files: Files, nursery: trio.Nursery, *, held: str, owner: str) -> None:
        self._network, self._files, self._nursery = network, files, nursery
        self._held, self._owner = held, owner
        self._players: dict[str, Player] = {}
        self._starting = trio.Lock()

    def all(self) -> list[Person]:
        """Everybody who can be played, the owner first."""
        others = [core for name, core in self._network.cores.items() if name not in (self._held, self._owner)]
        known = [self._shown(core) for core in others if core.state.active_user is not None and not _is_bot(core)]
        owner: Person = {
            "name": self._owner, "label": _OWNER_LABEL, "kind": "owner",
            "about": "Owns the agent: approves and rejects what it wants to do.", "tabs": self._tabs(self._owner),
        }  # fmt: skip
        if (core := self._network.cores.get(self._owner)) is not None and core.state.active_user is not None:
            owner["label"] = _label(core)
        return [owner, *sorted(known, key=lambda person: (person["about"], person["label"].casefold()))]

    def places(self) -> list[Place]:
        """The links that the network's population made known."""
        return [
            {"name": entry["name"] or label, "link": entry["short"], "kind": _KINDS.get(entry["kind"], "contact")}
            for label, entry in self._network.directory().items()
        ]

    def person(self, player: Player) -> Person:
        """A person who is played, as the others of the list."""
        return next(person for person in self.all() if person["name"] == player.core.name)

    def known(self, name: str) -> Player | None:
        """The player of this name, when somebody plays it or did."""
        return self._players.get(name)

    async def player(self, name: str) -> Player:
        """Who has this name, or is called so; else somebody new. Raises Refused."""
        async with self._starting:
            core = await self._core(name)
            if core.name not in self._players:
                player = Player(core, self._files)
                try:
                    await player.start()
                except CoreError as error:
                    raise Refused(sentence(error)) from error
                self._players[core.name] = player
                self._nursery.start_soon(player.run)
            return self._players[core.name]

    async def _core(self, name: str) -> SimulatedCore:
        everybody = self.all()
        found = next((each for each in everybody if each["name"] == name), None) or next(
            (each for each in everybody if each["label"] == name), None
        )
        if found is None:
            return await self._new(name, _core_name(name))
        core = self._network.core(found["name"])
        if core.state.active_user is None:
            return await self._new(_OWNER_LABEL, core.name)
        return core

    async def _new(self, label: str, name: str) -> SimulatedCore:
        """Make somebody. Raises Refused."""
        if not name or name == self._held:
            raise Refused("This name is not free. Choose another.")
        known = self._network.cores.get(name)
        if known is not None and (known.state.active_user is not None or known.cli):
            raise Refused("Another program or person uses this name here. Choose another.")
        if valid_name(label) != label or len(label) > LONGEST:
            valid = valid_name(label)
            hint = f' "{valid}" would do.' if valid else ""
            raise Refused(f"SimpleX takes no such name.{hint}")
        core = self._network.core(name)
        try:
            await ChatApi(Line(core)).create_user(label, "human")
        except CoreError as error:
            raise Refused(sentence(error)) from error
        return core

    def _shown(self, core: SimulatedCore) -> Person:
        about = "Lives here, and acts alone while nobody plays." if core.name.startswith(PREFIX) else ""
        return {
            "name": core.name, "label": _label(core), "kind": "person", "about": about, "tabs": self._tabs(core.name)
        }  # fmt: skip

    def _tabs(self, name: str) -> int:
        player = self._players.get(name)
        return len(player.tabs) if player is not None else 0


def _profile(core: SimulatedCore) -> dict[str, Any]:
    return obj(core.command("/user").get("user"), "profile")


def _is_bot(core: SimulatedCore) -> bool:
    return text_of(_profile(core), "peerType") in _BOTS


def _label(core: SimulatedCore) -> str:
    return one_line(text_of(_profile(core), "displayName"))


def _core_name(label: str) -> str:
    """The name of a core for a person's name: `Bob B` is `bob-b`."""
    return "-".join("".join(char if char.isalnum() else " " for char in label.casefold()).split())[:LONGEST]
