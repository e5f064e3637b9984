"""A simulated network with its phone, and what tests need of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import trio
from PIL import Image

from simplexmcp.core.api import ChatApi
from simplexmcp.core.websocket import open_websocket
from simplexmcp.phone.server import Phone, serve_phone
from simplexmcp.sandbox.driver import drive, trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_clients
from tests.phone.tabs import Browser, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from simplexmcp.core.link import Link
    from tests.phone.tabs import Tab

HELD = "agent"


@dataclass
class World:
    network: Network
    phone: Phone
    browser: Browser
    port: int

    @asynccontextmanager
    async def client(self, profile: str) -> AsyncIterator[Link]:
        """Another program on a core, over its WebSocket."""
        async with open_websocket(f"ws://127.0.0.1:{self.port}/{profile}") as link:
            yield link


@asynccontextmanager
async def phone(*, population: bool = False, network: Network | None = None) -> AsyncIterator[World]:
    """A network, its phone on a free port, and a browser that opened the printed address."""
    async with trio.open_nursery() as nursery:
        if network is None:  # else who made it drives it
            network = Network(trio_clock(), population=population)
            nursery.start_soon(drive, network)
        port = await nursery.start(partial(serve_clients, network, 0, held=HELD))
        served = await nursery.start(partial(serve_phone, network, held=HELD, port=0))
        browser = Browser(served.url())
        await browser.load()
        try:
            yield World(network, served, browser, port)
        finally:
            with trio.CancelScope(shield=True):
                await browser.http.aclose()
            nursery.cancel_scope.cancel()


async def a_bot(link: Link, name: str) -> ChatApi:
    """A bot on a core of the network."""
    api = ChatApi(link)
    await api.create_user(name)
    await api.start()
    return api


async def pair(first: Tab, second: Tab) -> tuple[str, str]:
    """Connect two people; the chat of each."""
    link = (await second.ask("address"))["link"]
    mine = await first.joined(link)
    theirs = await second.push("chat", lambda push: push["chat"]["state"] == "connected")
    return mine, theirs["chat"]["chat"]


async def group(owner: Tab, *members: Tab, role: str = "member") -> list[str]:
    """A group of the owner that the members join; the chat of each, the owner's first."""
    refs = [(await owner.ask("group", name="Hikers"))["chat"]]
    link = (await owner.ask("link", chat=refs[0], role=role))["link"]
    for count, member in enumerate(members, 1):
        refs.append(await member.joined(link))

        def all_connected(count: int = count) -> bool:
            texts = [shown(push["item"]) for push in owner.pushed if push["push"] == "item"]
            return len({text for text in texts if text.endswith(" connected")}) == count

        await owner.until(all_connected)
    return refs


def png() -> bytes:
    data = BytesIO()
    Image.radial_gradient("L").save(data, "PNG")
    return data.getvalue()
