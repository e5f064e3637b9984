"""A small simulated network for tests: two people who are contacts and share a group."""

from __future__ import annotations

import json
from typing import Any

from simplexmcp.sandbox.network import Network

__all__ = ["Pair"]


class Pair:
    """Agent and Bob: contacts (`direct` is the agent's reference of Bob), and members of the agent's group `#1`."""

    def __init__(self) -> None:
        self.now = 1_796_076_000.0
        self.network = Network(lambda: self.now, population=False, seed="pair")
        for name, shown in (("agent", "My Agent"), ("bob", "Bob")):
            profile = {"profile": {"displayName": shown, "fullName": ""}, "pastTimestamp": False}
            self.do(name, f"/_create user {json.dumps(profile)}")
            self.do(name, "/_start")
        invitation = self.do("agent", "/_connect 1")["connLinkInvitation"]["connFullLink"]
        self.do("bob", f"/_connect 1 {invitation}")
        self.direct = f"@{self.do('agent', '/_contacts 1')['contacts'][0]['contactId']}"
        self.do("agent", '/_group 1 {"displayName":"Trail","fullName":""}')
        link = self.do("agent", "/_create link #1 member")["groupLink"]["connLinkContact"]["connFullLink"]
        self.do("bob", f"/_connect 1 {link}")

    def do(self, name: str, command: str) -> dict[str, Any]:
        """The answer to a command, after everything that it caused has happened."""
        answer = self.network.core(name).command(command)
        while (wait := self.network.deliver()) is not None:
            self.now += max(wait, 1e-6)
        return answer

    def send(self, name: str, to: str, text: str, options: str = "", **message: Any) -> dict[str, Any]:
        """The answer to sending one text message; `message` are further keys of the composed message."""
        composed = {"msgContent": {"type": "text", "text": text}, "mentions": {}, **message}
        return self.do(name, f"/_send {to}{options} json {json.dumps([composed])}")

    def edit(self, to: str, item: int, text: str, mentions: dict[str, int] | None = None) -> dict[str, Any]:
        """The answer of the agent's core to an edit of its message `item`."""
        updated = {"msgContent": {"type": "text", "text": text}, "mentions": mentions or {}}
        return self.do("agent", f"/_update item {to} {item} json {json.dumps(updated)}")

    def bob(self) -> int:
        """Bob's groupMemberId in the agent's core."""
        members = self.do("agent", "/_members #1")["group"]["members"]
        return int(next(m["groupMemberId"] for m in members if m["localDisplayName"].startswith("Bob")))

    def last(self, name: str, to: str) -> int:
        """The newest item of a chat."""
        items = self.do(name, f"/_get chat {to} count=1")["chat"]["chatItems"]
        return int(items[-1]["meta"]["itemId"])
