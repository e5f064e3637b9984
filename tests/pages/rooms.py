"""The rooms' page for a test: its server on a database, the page in a real browser, agents that write."""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.rooms.client import InProcess
from tests.rooms.view.view import viewing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.browser import Browser, Tab
    from tests.rooms.client import Persona
    from tests.rooms.view.view import View


class Agent(InProcess):
    """A runtime with a persona in a room."""

    persona_: Persona

    @property
    def id(self) -> str:
        """The persona's ID."""
        return self.persona_.agent_id

    def says(self, text: Any, **fields: Any) -> int:
        """Posts; the number."""
        return self.call("post_message", content=text, **fields)["seq"]


@dataclass
class Rooms:
    """The page's server and who writes in its database."""

    path: Path
    view: View
    browser: Browser
    stack: ExitStack

    def agent(self, room: str = "hall", **model: str) -> Agent:
        """A new agent in a room, which it makes when it is missing."""
        agent = self.stack.enter_context(Agent(self.path))
        agent.persona_ = agent.enter_room(room, **model)
        return agent

    async def tab(self, address: str = "/", **how: Any) -> Tab:
        """The page in a new tab, as somebody sees it who was never here."""
        origin = f"http://127.0.0.1:{self.view.port}"
        forget = {"origin": origin, "storageTypes": "local_storage"}
        await self.browser.do(lambda: self.browser.driver.execute_cdp_cmd("Storage.clearDataForOrigin", forget))
        return await self.browser.tab(f"{origin}{address}", **how)

    async def reader(self, room: str = "hall", **how: Any) -> Tab:
        """A tab that shows a room."""
        tab = await self.tab(**how)
        await tab.click("#rooms button", room)
        await tab.see("#room-name", room)
        return tab

    async def member(self, name: str, room: str = "hall", **how: Any) -> Tab:
        """A tab of somebody who joined a room."""
        tab = await self.reader(room, **how)
        await tab.type("#name", name)
        await tab.click("#do-join")
        await tab.see("#text")
        return tab


@asynccontextmanager
async def open_rooms(folder: Path, browser: Browser) -> AsyncIterator[Rooms]:
    """The page on a database in a folder, which the first agent makes."""
    path = folder / "chat.db"
    with ExitStack() as stack:
        async with viewing(path) as view, browser.session():
            yield Rooms(path, view, browser, stack)
