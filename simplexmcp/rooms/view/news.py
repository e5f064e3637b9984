"""What changed in the rooms, told to every tab at once, whoever wrote it.

A tab hears `{"push": "hello", "rooms": […], "trouble": TEXT | null}` first, and
`{"push": "news", "rooms": [changed ones], "gone": [IDs], "trouble": …}` after every write to the database. The latter
may name nothing: what changed is not in the list of rooms, such as who is there. Rows are those of
`reading.list_rooms`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.view import reading
from simplexmcp.rooms.wake import POLL, Wake
from simplexmcp.web.socket import POLICY

if TYPE_CHECKING:
    from simplexmcp.rooms.view.handles import Handles
    from simplexmcp.web.site import Request
    from simplexmcp.web.socket import Socket

__all__ = ["News"]

_PAUSE = 0.03  # seconds between two looks, at least: many writes are one piece of news
_REST = 4.0  # times the duration of a look
_TICK = 5.0  # seconds until a look without a sign: the file may be another one


@final
class News:
    """`stream` serves one tab, `run` watches the database for all."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._tabs: set[Socket] = set()
        self._came = trio.Event()
        self._looking = trio.Lock()
        self._rooms: dict[int, dict[str, Any]] = {}
        self._trouble: str | None = None
        self._version: int | None = None

    async def stream(self, tab: Socket, request: Request) -> None:
        """One tab, until it leaves."""
        del request
        await self._look()
        tab.send(dumps({"push": "hello", "rooms": list(self._rooms.values()), "trouble": self._trouble}))
        self._tabs.add(tab)
        self._came.set()
        try:
            async for _ in tab:
                tab.close(POLICY, "Nothing is asked on this stream.")
        finally:
            self._tabs.discard(tab)

    async def run(self) -> None:
        """Tell, until cancelled."""
        while True:
            if not self._tabs:
                self._came = trio.Event()
                await self._came.wait()
            wake = Wake(self._handles.path)
            try:
                await self._look()  # what was written before this watch
                while self._tabs and await self._sign(wake):
                    started = time.monotonic()
                    await self._look()
                    await trio.sleep(max(_PAUSE, _REST * (time.monotonic() - started)))
            finally:
                wake.close()

    async def _sign(self, wake: Wake) -> bool:
        """Wait for a write. False after a while without one: it is time to watch anew what is there now."""
        ends = time.monotonic() + _TICK
        if (readable := wake.fileno()) is None:
            return await self._sign_by_asking(ends)
        while (now := time.monotonic()) < ends:
            again = wake.again()
            with trio.move_on_after(max(0.0, min(ends, again or ends) - now)):
                await trio.lowlevel.wait_readable(readable)
            if wake.drain():
                return True
        return False

    async def _sign_by_asking(self, ends: float) -> bool:
        while time.monotonic() < ends:
            await trio.sleep(POLL)
            try:
                version = await self._handles.read(lambda db: db.data_version())
            except RoomsError:
                version = None
            if version != self._version:
                return True
        return False

    async def _look(self) -> None:
        """See what is there now, and tell the tabs what changed."""
        async with self._looking:
            trouble: str | None = None
            version, rooms = None, self._rooms
            try:
                version, listed = await self._handles.read(lambda db: (db.data_version(), reading.list_rooms(db)))
                rooms = {room["id"]: room for room in listed}
            except RoomsError as error:
                trouble = str(error)
            changed = [room for key, room in rooms.items() if self._rooms.get(key) != room]
            gone = [key for key in self._rooms if key not in rooms]
            if not changed and not gone and (version, trouble) == (self._version, self._trouble):
                return
            self._rooms, self._version, self._trouble = rooms, version, trouble
            frame = dumps({"push": "news", "rooms": changed, "gone": gone, "trouble": trouble})
            for tab in self._tabs:
                tab.send(frame)
