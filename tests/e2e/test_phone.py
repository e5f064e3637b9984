"""The phone of `serve --core sandbox`: a newcomer owns the agent on the page alone, with the real server and a real
client."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import trio

from tests.e2e.world import open_world
from tests.phone.tabs import Browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.e2e.world import Agent, Server
    from tests.phone.tabs import Tab


@asynccontextmanager
async def served(folder: Path, **changes: Any) -> AsyncIterator[Server]:
    """`serve --core sandbox` with its phone on a free port."""
    async with open_world(folder) as world:
        server = await world.serve(core="sandbox", phone_port=0, **changes)
        yield server
        await server.end()


async def address(server: Server) -> str:
    """The page's address as it was printed."""
    line = await server.lines.see("Phone (a simulation)")
    found = re.search(r"http://\S+", line)
    assert found is not None
    return found[0]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Browser]:
    browser = Browser(url)
    await browser.load()
    try:
        yield browser
    finally:
        with trio.CancelScope(shield=True):
            await browser.http.aclose()


async def own(tab: Tab, url: str) -> str:
    """What the page does with the printed address: become the owner, and join by the link in it."""
    owner = next(person for person in tab.pushed[0]["people"] if person["kind"] == "owner")
    await tab.ask("become", name=owner["name"])
    ref = await tab.joined(parse_qs(urlsplit(url).query)["link"][0])
    await tab.see("I'm your agent", chat=ref)
    return ref


async def result_of(nursery: trio.Nursery, agent: Agent, tool: str, **arguments: Any) -> Any:
    """A call that goes on while the owner decides; a function that waits for its result."""
    result: dict[str, Any] = {}
    done = trio.Event()

    async def call() -> None:
        result.update(await agent.call(tool, **arguments))
        done.set()

    async def wait() -> dict[str, Any]:
        await done.wait()
        return result

    nursery.start_soon(call)
    return wait


async def test_the_address_stands_right_after_the_link_and_joins_the_owner_with_one_click(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        url = await address(server)
        link = await server.link()
        lines = server.lines.all
        assert lines[lines.index(link) + 1].startswith("Phone (a simulation): ")
        assert parse_qs(urlsplit(url).query)["link"] == [link]
        async with opened(url) as browser, browser.tab() as tab:
            ref = await own(tab, url)
            await server.lines.see("is now an owner")
            chat = (await tab.push("chat", lambda push: push["chat"].get("role") == "owner"))["chat"]
            assert (chat["chat"], chat["name"]) == (ref, "My Agent")
            assert [entry.get("send", entry.get("fill")) for entry in chat["menu"]] == [
                "/pending",
                "/list",
                "/leave CHAT",
            ]


async def test_a_card_is_approved_by_a_tap_and_visibly_changes_and_the_result_comes(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        url = await address(server)
        async with (
            opened(url) as browser,
            browser.tab() as tab,
            server.agent() as agent,
            trio.open_nursery() as nursery,
        ):
            ref = await own(tab, url)
            result = await result_of(nursery, agent, "connect", target="@echo.simplex", idle=1)
            card = await tab.see("I want to connect", chat=ref)
            approve, reject = tab.commands(card)
            assert (approve, reject) == ("/approve 1", "/reject 1")
            await tab.ask("send", chat=ref, text=approve)
            changed = await tab.push(
                "item", lambda push: push["item"]["id"] == card["id"] and push["item"].get("edited")
            )
            assert "Approved by Owner" in changed["item"]["text"]
            assert tab.commands(changed["item"]) == []
            assert not changed["new"]
            assert (await result())["status"] == "done"

            result = await result_of(nursery, agent, "send", chat="@4", text="/'approve 3' hello", wait=5, idle=1)
            card = await tab.see("I want to send", chat=ref)
            assert set(tab.commands(card)) == {"/approve @4 2", "/approve @4 all", "/reject @4 2"}
            await tab.ask("send", chat=ref, text="/reject @4 2")
            assert (await result())["status"] == "rejected"


async def test_the_agents_core_cannot_be_played_and_is_not_offered(tmp_path: Path) -> None:
    async with served(tmp_path) as server, opened(await address(server)) as browser, browser.tab() as tab:
        assert not [person for person in tab.pushed[0]["people"] if "gent" in person["label"]]
        for name in ("agent", "Agent", "My Agent"):
            answer = await tab_refusal(tab, name)
            assert name == "My Agent" or "not free" in answer


async def tab_refusal(tab: Tab, name: str) -> str:
    await tab.ws.send_message(json.dumps({"id": 77, "do": "become", "name": name}))
    answer = await tab.until(lambda: tab._answers.pop(77, None))
    return str(answer.get("error", ""))


async def test_the_owner_is_there_again_after_a_restart_and_the_address_has_no_link(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        url = await address(server)
        async with opened(url) as browser, browser.tab() as tab:
            await own(tab, url)
            await server.lines.see("is now an owner")
    async with served(tmp_path) as server:
        again = await address(server)
        assert urlsplit(again).path == "/"
        assert "link" not in parse_qs(urlsplit(again).query)
        async with opened(again) as browser, browser.tab("owner") as tab:
            (chat,) = (await tab.ask("chats"))["chats"]
            assert (chat["name"], chat["role"]) == ("My Agent", "owner")
            await tab.ask("send", chat=chat["chat"], text=chat["menu"][0]["send"])
            answer = await tab.see("No action is pending", chat=chat["chat"])
            asked = await tab.see("/pending", chat=chat["chat"])
            assert asked["order"] < answer["order"]


async def test_the_token_of_the_page_is_in_no_file(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        url = await address(server)
        token = parse_qs(urlsplit(url).query)["token"][0]
        async with opened(url) as browser, browser.tab() as tab:
            await own(tab, url)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert held == []
    assert any(path.name == "audit.jsonl" for path in tmp_path.rglob("*"))
