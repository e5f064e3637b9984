"""Tabs of the phone's page without a browser: the cookie of the printed URL, a WebSocket, and requests on it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from trio_websocket import ConnectionClosed, connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DEADLINE = 30.0


class RefusedError(Exception):
    """The sentence with which a request was answered."""


class Browser:
    """What the tabs of one browser have in common: the page's address and its cookie."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.origin = url.partition("/?")[0].partition("/join")[0]
        self.cookie = ""
        self.http = httpx2.AsyncClient(base_url=self.origin, timeout=DEADLINE)

    async def load(self) -> None:
        """Open the printed address, as a click on it does."""
        answer = await self.http.get(self.url)
        assert answer.status_code == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.http.headers["cookie"] = self.cookie

    async def upload(self, name: str, content: bytes | AsyncIterator[bytes]) -> dict[str, Any]:
        answer = await self.http.post(f"/upload?name={name}", content=content, headers={"origin": self.origin})
        found = answer.json()
        if answer.status_code != 200:
            raise RefusedError(found["error"])
        return found

    @asynccontextmanager
    async def tab(self, name: str | None = None) -> AsyncIterator[Tab]:
        """A tab, that plays this person when one is named."""
        headers = [("Cookie", self.cookie), ("Origin", self.origin)]
        port = int(self.origin.rpartition(":")[2])
        async with trio.open_nursery() as nursery:
            with trio.fail_after(DEADLINE):
                ws = await connect_websocket(
                    nursery, "127.0.0.1", port, "/stream", use_ssl=False, extra_headers=headers,
                    max_message_size=1 << 26,
                )  # fmt: skip
            try:
                tab = Tab(ws)
                nursery.start_soon(tab.pump)
                await tab.push("hello")
                if name is not None:
                    await tab.ask("become", name=name)
                yield tab
            finally:
                await trio.aclose_forcefully(ws._stream)
                nursery.cancel_scope.cancel()


class Tab:
    """One tab: what was pushed to it, and requests."""

    def __init__(self, ws: Any) -> None:
        self.ws = ws
        self.pushed: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self._changed = trio.Event()

    async def pump(self) -> None:
        while self.closed is None:
            try:
                frame = json.loads(await self.ws.get_message())
            except ConnectionClosed as end:
                self.closed = (end.reason.code, end.reason.reason or "") if end.reason else (1006, "")
            else:
                if "re" in frame:
                    self._answers[frame["re"]] = frame
                else:
                    self.pushed.append(frame)
            self._changed.set()
            self._changed = trio.Event()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition gives once it is true."""
        with trio.fail_after(DEADLINE):
            while not (found := condition()):
                await self._changed.wait()
        return found

    async def ask(self, do: str, **fields: Any) -> Any:
        """The answer to a request; RefusedError for an error."""
        self._number += 1
        number = self._number
        await self.ws.send_message(json.dumps({"id": number, "do": do, **fields}))
        answer = await self.until(lambda: self._answers.pop(number, None))
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["ok"]

    async def push(self, kind: str, wanted: Callable[[dict[str, Any]], Any] = lambda push: True) -> dict[str, Any]:
        """The first push of a kind that is wanted, now or when it comes."""
        return await self.until(lambda: next((p for p in self.pushed if p["push"] == kind and wanted(p)), None))

    async def see(self, needle: str, *, chat: str | None = None) -> dict[str, Any]:
        """The first item whose shown text has this text in it."""

        def fits(push: dict[str, Any]) -> bool:
            return (chat is None or push["chat"] == chat) and needle in shown(push["item"])

        return (await self.push("item", fits))["item"]

    async def joined(self, link: str) -> str:
        """Join by a link, and wait until it is connected; the chat."""
        ref = (await self.ask("join", link=link))["chat"]
        await self.push("chat", lambda push: push["chat"]["chat"] == ref and push["chat"]["state"] == "connected")
        return ref

    def commands(self, item: dict[str, Any]) -> list[str]:
        """What is tappable on an item."""
        return [part["send"] for part in item["parts"] if part["kind"] == "command"]


def shown(item: dict[str, Any]) -> str:
    """An item as a reader sees it."""
    return "".join(part["text"] for part in item["parts"])
