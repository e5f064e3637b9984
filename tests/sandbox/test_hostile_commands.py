"""Commands that were broken on the way: each is answered with an object, and nothing is left half done."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from typing import Any

import pytest

from tests.recorded import frames
from tests.sandbox.world import World

RECORDINGS = (
    "02-connect",
    "03-join",
    "04-send",
    "05-read",
    "06-custom-data",
    "07-leave-delete",
    "08-owners",
    "14-misc",
)
JUNK: tuple[Any, ...] = (
    None, True, 7, -1, 1.5, 10**30, "", "x", [], {}, [1], {"a": 1}, "\ud800", "x" * 20_000, 1e308
)  # fmt: skip
NUMBERS = ("0", "1", "2", "4", "9" * 20, "9" * 5000, "٣", "-1", "1.0")
ENDS = ("/_stop", "/_user", "/user", "/_create user", "/_leave #1", "/_delete #1", "/_delete @4")
"""Commands after which there would be nothing left to break."""


@cache
def _commands() -> list[str]:
    found = {frame["cmd"] for name in RECORDINGS for frame in frames(name) if "cmd" in frame}
    return sorted(command for command in found if not command.startswith(ENDS))


class Breaker:
    """Breaks commands: values of another type, other numbers, lost or added characters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, value: Any) -> Any:
        """A JSON value in which something is wrong, mostly."""
        if self.random.random() < 0.25:
            return self.random.choice(JUNK)
        if isinstance(value, dict):
            out = {key: self.value(one) if self.random.random() < 0.5 else one for key, one in value.items()}
            if out and self.random.random() < 0.2:
                out.pop(self.random.choice(list(out)))
            return out
        return [self.value(one) for one in value] if isinstance(value, list) else value

    def command(self, command: str) -> str:
        """A broken command."""
        start = re.search(r"[\[{]", command)
        if start is not None:
            try:
                broken = self.value(json.loads(command[start.start() :]))
            except ValueError:
                pass
            else:
                return command[: start.start()] + json.dumps(broken, ensure_ascii=self.random.random() < 0.5)
        if self.random.random() < 0.5:
            return re.sub(r"\d+", lambda m: self.random.choice((m[0], m[0], *NUMBERS)), command)
        place = self.random.randrange(len(command) + 1)
        added = self.random.choice(("", " ", "\n", "\0", "é", "{", "9", "\ud800"))
        return command[:place] + added + command[place + self.random.randrange(3) :]


@pytest.mark.parametrize("seed", range(8))
def test_a_broken_command_is_answered_and_the_world_goes_on(seed: int) -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol)
    world.connect(agent, bob)
    agent.do("/_address 1")
    breaker = Breaker(seed)
    refused = 0
    for command in breaker.random.sample(_commands(), len(_commands())):
        response = agent.core.command(breaker.command(command))
        assert isinstance(json.loads(json.dumps(response))["type"], str)
        refused += response["type"] == "chatCmdError"
        world.settle()
    assert refused > len(_commands()) / 4
    agent.do("/_start")
    for number in agent.core.state.contacts:
        agent.chat(f"@{number}")
    for number in agent.core.state.groups:
        agent.chat(f"#{number}")
        agent.do(f"/_members #{number}")
    assert agent.do("/_get chats 1 pcc=on count=100")["chats"] != []
    json.dumps([agent.events, bob.events, carol.events], ensure_ascii=False).encode()
