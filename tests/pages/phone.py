"""The phone for a test: the agent's server on a network, its page in a real browser, and an MCP client."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.phone.server import serve_phone
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from simplexmcp.phone.server import Phone
    from tests.browser import Browser, Tab
    from tests.e2e.world import Agent, Person, World

CARD = ".item:has(.tap) .text"
"""A card that still asks."""


@dataclass
class Stage:
    """A network with its phone."""

    world: World
    browser: Browser
    phone: Phone

    async def somebody(self, name: str, **how: Any) -> Tab:
        """A tab that plays a new person."""
        tab = await self.browser.tab(self.phone.url(), **how)
        await tab.see("dialog", "Who are you?")
        await tab.type("#dialog-input", name)
        await tab.click("dialog button", "Create")
        await tab.see("#my-name", name)
        return tab


@dataclass
class Owned(Stage):
    """A network with an agent and its owner, who sits at the page."""

    owner: Tab
    agent: Agent

    async def ask(self, nursery: trio.Nursery, tool: str, **arguments: Any) -> Result:
        """The agent calls a tool; its card has come when this returns."""
        result = Result()

        async def call() -> None:
            result.content = await self.agent.call(tool, **arguments)
            result.came.set()

        nursery.start_soon(call)
        await self.owner.see(CARD, "I want to")
        return result

    async def connected(self, nursery: trio.Nursery, bob: Person) -> tuple[str, str]:
        """The agent is in a group of Bob's, with the owner's word; its reference on Bob's and the agent's side. The
        call itself goes on, as it waits for messages."""
        group, link = await bob.make_group("Trail")
        await self.ask(nursery, "connect", target=link, wait=20, idle=1)
        await self.owner.click(".tap", "/approve 1")
        await self.owner.see(".item .text", "I connected to group Trail")
        chats = (await self.agent.call("list"))["chats"]
        return group, next(chat["chat"] for chat in chats if chat["name"] == "Trail")


class Result:
    """The result of a call, once it came."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}
        self.came = trio.Event()

    async def wait(self) -> dict[str, Any]:
        with trio.fail_after(20):
            await self.came.wait()
        return self.content


@asynccontextmanager
async def open_phone(folder: Path, browser: Browser, *, population: bool = False) -> AsyncIterator[Stage]:
    """A network without an agent."""
    async with open_world(folder, population=population) as world:
        phone = await world.nursery.start(partial(serve_phone, world.network, held="agent", port=0))
        async with browser.session():
            yield Stage(world, browser, phone)


@asynccontextmanager
async def open_owned(folder: Path, browser: Browser, **how: Any) -> AsyncIterator[Owned]:
    """An agent, and an owner who joined its control chat by the printed URL. `how`: the size of the window."""
    async with open_phone(folder, browser) as stage:
        server = await stage.world.serve()
        owner = await browser.tab(stage.phone.url(await server.link()), **how)
        await owner.click("dialog button", "Join")
        await owner.see(".text", "I'm your agent.")
        async with server.agent() as agent:
            yield Owned(stage.world, browser, stage.phone, owner, agent)
        await server.end()
