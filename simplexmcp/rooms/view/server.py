"""The site of the rooms: its page, the interface for programs, and the stream of news."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.rooms.view.api import Api
from simplexmcp.rooms.view.handles import Handles
from simplexmcp.rooms.view.news import News
from simplexmcp.web.answers import Answer, json_answer
from simplexmcp.web.checks import Rules
from simplexmcp.web.site import Site, serve_site
from simplexmcp.web.static import load_assets

if TYPE_CHECKING:
    import socket

__all__ = ["serve_view"]


async def serve_view(
    path: str,
    listener: socket.socket,
    *,
    token: str | None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the rooms in the database at `path`, which may not be there yet, until cancelled; reports the port. With a
    token only who has it may read or write; without, every program of this computer may."""
    handles = Handles(path)
    news = News(handles)
    site = Site(
        name="rooms",
        token=token,
        assets=load_assets("simplexmcp.rooms.view"),
        pages={"/": "index.html", "/index.html": "index.html"},
        routes=Api(handles).routes(),
        sockets={"/stream": news.stream},
        rules=Rules(any_port=True, scripts=True, foreign_host=403),
        refuse=_refuse,
    )
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(news.run)
            port: int = await nursery.start(partial(serve_site, site, listener))
            task_status.started(port)
    finally:
        await handles.close()


def _refuse(status: int, text: str) -> Answer:
    return json_answer({"error": text}, status)
