"""The page's server on a database of a test, and a client that sends exactly what a test says."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import trio

from simplexmcp.rooms.view.server import serve_view
from simplexmcp.web.serving import listen
from tests.web.site import Reply, Running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass
class View(Running):
    """A served page."""

    async def get(self, path: str, **query: Any) -> tuple[int, Any]:
        """Status and JSON of `GET /api/PATH`."""
        return self._json(await self.ask("GET", f"/api/{path}?{urlencode(query)}"))

    async def post(self, path: str, /, **fields: Any) -> tuple[int, Any]:
        """Status and JSON of `POST /api/PATH` as a program on this computer sends it, without an origin."""
        return await self.post_raw(path, json.dumps(fields).encode())

    async def post_raw(self, path: str, body: bytes, **headers: str | None) -> tuple[int, Any]:
        """The same with any bytes and headers."""
        return self._json(await self.ask("POST", f"/api/{path}", body, **{"origin": None, **headers}))

    async def rows(self, room: int, **query: Any) -> list[dict[str, Any]]:
        """The messages of a room."""
        status, answer = await self.get("messages", room=room, **query)
        assert status == 200, answer
        return answer["messages"]

    @staticmethod
    def _json(reply: Reply) -> tuple[int, Any]:
        assert reply.one("content-type") == "application/json", reply
        return reply.status, json.loads(reply.body)


@asynccontextmanager
async def viewing(path: Path | str, *, token: str | None = None) -> AsyncIterator[View]:
    """The page on this database."""
    scope = trio.CancelScope()

    async def serve(*, task_status: trio.TaskStatus[int]) -> None:
        with scope:
            await serve_view(str(path), listen(0), token=token, task_status=task_status)

    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve)
        yield View(port, scope, [])
        scope.cancel()


async def frame(stream: Any, wanted: Any = lambda _frame: True) -> dict[str, Any]:
    """The next frame of a stream that fits."""
    with trio.fail_after(10):
        while True:
            got = json.loads(await stream.get_message())
            if wanted(got):
                return got
