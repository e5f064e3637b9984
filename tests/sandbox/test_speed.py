"""The model is fast enough for large chats. The bounds (milliseconds of CPU time) are ten times what was measured."""

from __future__ import annotations

import time

import pytest

from tests.sandbox.world import Person, World

MESSAGES = 3000


@pytest.fixture(scope="module")
def busy() -> Person:
    """Somebody with many contacts and groups, and a group with many messages."""
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob)
    for number in range(60):
        world.group(agent, f"Group {number}")
    for start in range(0, MESSAGES, 100):
        messages = [{"msgContent": {"type": "text", "text": f"message {start + n}"}} for n in range(100)]
        bob.do("/_send #1 json", messages)
        world.settle()
    return agent


def _milliseconds(person: Person, command: str, times: int = 20) -> float:
    began = time.process_time()
    for _ in range(times):
        person.do(command)
    return (time.process_time() - began) / times * 1000


@pytest.mark.parametrize(
    ("command", "bound"),
    [
        ("/user", 1.0),
        ("/_members #1", 1.0),
        ("/_groups 1", 5.0),
        ("/_get chat #1 count=10", 5.0),
        ("/_get chat #1 initial=10", 20.0),
        ("/_get chats 1 count=10", 8.0),
        ('/_send #1 json [{"msgContent":{"type":"text","text":"hi"}}]', 2.0),
    ],
)
def test_a_command_is_quick_in_a_large_profile(busy: Person, command: str, bound: float) -> None:
    assert _milliseconds(busy, command) < bound
