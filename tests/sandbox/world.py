"""A simulated network with a clock that only a test moves, and people who act by commands."""

from __future__ import annotations

import json
from typing import Any

from simplexmcp.sandbox.network import Network

__all__ = ["BEGAN", "Person", "World"]

JsonObject = dict[str, Any]

BEGAN = 1_796_000_000.0
"""The time at which every test begins, seconds since the epoch."""


class Person:
    """Somebody with a core: commands that must succeed (`do`) or be refused (`refused`), and all events so far."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.core = world.network.core(name)
        self.events: list[JsonObject] = []
        self.core.subscribe(self.events.append)

    def do(self, command: str, value: Any = None) -> JsonObject:
        """The response to a command, with a JSON argument at its end if one is given."""
        response = self.core.command(_text(command, value))
        assert response["type"] != "chatCmdError", (command, response)
        return response

    def refused(self, command: str, value: Any = None) -> JsonObject:
        """The innermost error with which a command is refused."""
        response = self.core.command(_text(command, value))
        assert response["type"] == "chatCmdError", (command, response)
        error: JsonObject = response["chatError"]
        return error.get("errorType") or error.get("storeError") or error.get("agentError") or error

    def say(self, ref: str, text: str, **message: Any) -> JsonObject:
        """Send a text; the new item."""
        content = {"msgContent": {"type": "text", "text": text}, **message}
        response = self.do(f"/_send {ref} json", [content])
        item: JsonObject = response["chatItems"][0]["chatItem"]
        return item

    def chat(self, ref: str, page: str = "count=100") -> JsonObject:
        """A chat with its items, oldest first, and statistics."""
        chat: JsonObject = self.do(f"/_get chat {ref} {page}")["chat"]
        return chat

    def texts(self, ref: str) -> list[str]:
        """The texts of the messages of a chat."""
        return [
            item["meta"]["itemText"]
            for item in self.chat(ref)["chatItems"]
            if item["content"]["type"].endswith("MsgContent")
        ]

    def item(self, ref: str, text: str) -> JsonObject:
        """The newest item with this text."""
        found: JsonObject = next(i for i in reversed(self.chat(ref)["chatItems"]) if i["meta"]["itemText"] == text)
        return found

    def item_id(self, ref: str, text: str) -> int:
        """Its id."""
        number: int = self.item(ref, text)["meta"]["itemId"]
        return number

    def members(self, group: int = 1) -> dict[str, JsonObject]:
        """The other members of a group by name."""
        rows = self.do(f"/_members #{group}")["group"]["members"]
        return {row["localDisplayName"]: row for row in rows}

    def member_id(self, name: str, group: int = 1) -> int:
        """The local id of a member."""
        number: int = self.members(group)[name]["groupMemberId"]
        return number

    def tags(self) -> list[str]:
        """The tags of all events, in order."""
        return [event["type"] for event in self.events]

    def got(self, tag: str) -> list[JsonObject]:
        """The events with a tag."""
        return [event for event in self.events if event["type"] == tag]

    def forget(self) -> None:
        """Forget all events so far."""
        self.events.clear()


class World:
    """A network without population, unless one is wanted."""

    def __init__(self, *, population: bool = False, network: Network | None = None) -> None:
        self.now = BEGAN
        self.network = network or Network(self.clock, population=population)

    def clock(self) -> float:
        """The time of the network."""
        return self.now

    def settle(self) -> None:
        """Let time pass until nothing is on its way."""
        while (wait := self.network.deliver()) is not None:
            self.now += max(wait, 0.000_001)

    def stranger(self, name: str) -> Person:
        """A core without a user, not started."""
        return Person(self, name)

    def person(self, name: str, **profile: Any) -> Person:
        """Somebody with a user and a started core."""
        person = self.stranger(name.lower().replace(" ", "-"))
        user = {"profile": {"displayName": name, "fullName": "", **profile}, "pastTimestamp": False}
        person.do("/_create user", user)
        person.do("/_start")
        self.settle()
        person.forget()
        return person

    def connect(self, inviter: Person, guest: Person) -> tuple[int, int]:
        """Make two people contacts by a one-time link; the contact's id for each."""
        link = inviter.do("/_connect 1")["connLinkInvitation"]
        guest.do(f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
        self.settle()
        ids = tuple(p.got("contactConnected")[-1]["contact"]["contactId"] for p in (inviter, guest))
        return ids[0], ids[1]

    def group(self, owner: Person, name: str, *guests: Person, role: str = "member", **profile: Any) -> JsonObject:
        """A group of `owner` that `guests` join by its link; the link."""
        info = owner.do("/_group 1", {"displayName": name, "fullName": "", **profile})["groupInfo"]
        link: JsonObject = owner.do(f"/_create link #{info['groupId']} {role}")["groupLink"]["connLinkContact"]
        for guest in guests:
            self.join(guest, link)
        return link

    def join(self, guest: Person, link: JsonObject) -> int:
        """Join a group by its link; its local id."""
        plan = guest.do(f"/_connect plan 1 {link['connShortLink']}")
        data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
        full, short = plan["connLink"]["connFullLink"], plan["connLink"]["connShortLink"]
        chat = guest.do(f"/_prepare group 1 {full} {short} direct=on", data)["chat"]
        number: int = chat["chatInfo"]["groupInfo"]["groupId"]
        guest.do(f"/_connect group #{number}")
        self.settle()
        return number


def _text(command: str, value: Any) -> str:
    return command if value is None else f"{command} {json.dumps(value, ensure_ascii=False)}"
