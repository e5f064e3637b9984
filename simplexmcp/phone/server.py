"""The server of the phone: its pages, the tabs and the people that they play.

async with trio.open_nursery() as nursery:
    phone = await nursery.start(partial(serve_phone, network, held="agent", port=None))
    phone.url(link)                     # the page, with its token; with the join form filled in
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, final
from urllib.parse import urlencode

import trio

from simplexmcp.core.api import around
from simplexmcp.errors import CoreError, Refused, UserError
from simplexmcp.phone.acts import ACTS
from simplexmcp.phone.files import LARGEST, Files, open_regular
from simplexmcp.phone.people import People
from simplexmcp.phone.player import encoded
from simplexmcp.phone.requests import TEXT, BadFrame, read_request
from simplexmcp.phone.texts import obj, text_of
from simplexmcp.phone.trouble import sentence
from simplexmcp.sandbox.names import LONGEST
from simplexmcp.web.answers import Answer, HttpRefusal, download, json_answer
from simplexmcp.web.checks import new_token
from simplexmcp.web.serving import listen
from simplexmcp.web.site import Site, serve_site
from simplexmcp.web.socket import POLICY
from simplexmcp.web.static import load_assets

if TYPE_CHECKING:
    import socket

    from simplexmcp.phone import protocol
    from simplexmcp.phone.player import Player
    from simplexmcp.phone.protocol import Hello, Limits, Upload
    from simplexmcp.phone.requests import Fields
    from simplexmcp.sandbox.network import Network
    from simplexmcp.web.site import Request
    from simplexmcp.web.socket import Socket

__all__ = ["PORT", "Phone", "serve_phone"]

log = logging.getLogger(__name__)

PORT = 5231
"""Where the page is when no port was given, and this one is free."""

_DEFECT = "The phone has a defect; the log of the program says more."


@final
class Phone:
    """A page that is served. `moved`: nobody said where, and the usual port was taken."""

    def __init__(self, port: int, token: str, *, moved: bool = False) -> None:
        self.port, self.moved = port, moved
        self._token = token

    def url(self, link: str | None = None) -> str:
        """The address of the page for a terminal; with a link, that of its form for joining, filled in. It holds the
        token: not for logs."""
        query = {"token": self._token} if link is None else {"link": link, "token": self._token}
        return f"http://127.0.0.1:{self.port}/{'' if link is None else 'join'}?{urlencode(query)}"

    def line(self, link: str | None = None) -> str:
        """The line of the terminal that shows it."""
        moved = f", on a free port, as {PORT} is taken" if self.moved else ""
        return f"Phone (a simulation{moved}): {self.url(link)}"


async def serve_phone(
    network: Network,
    *,
    held: str,
    port: int | None,
    owner: str = "owner",
    task_status: trio.TaskStatus[Phone] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the page until cancelled. `held`: the core that the process itself uses; `owner`: the core of who is
    offered first. `port` None: 5231, or a free one when that is taken; 0 a free one. UserError: it cannot be had."""
    listener = _listen(port)
    token = new_token()
    files = Files(network)
    async with trio.open_nursery() as nursery:
        desk = _Desk(People(network, files, nursery, held=held, owner=owner), files)
        site = Site(
            name="phone",
            token=token,
            assets=load_assets("simplexmcp.phone"),
            pages={"/": "index.html", "/join": "index.html"},
            routes={("POST", "/upload"): desk.upload, ("GET", "/file"): desk.file},
            sockets={"/stream": desk.stream},
        )
        bound: int = await nursery.start(partial(serve_site, site, listener))
        task_status.started(Phone(bound, token, moved=port is None and bound != PORT))


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(port, "--phone-port")
    try:
        return listen(PORT, "--phone-port")
    except UserError:
        return listen(0, "--phone-port")


@final
class _Desk:
    """Where requests of all tabs arrive."""

    def __init__(self, people: People, files: Files) -> None:
        self._people, self._files = people, files
        self._tabs: set[_Tab] = set()

    async def stream(self, socket: Socket, request: Request) -> None:
        """One tab, from its first frame to its end."""
        del request
        tab = _Tab(socket, self._people)
        self._tabs.add(tab)
        try:
            socket.send(encoded({"push": "hello", **tab.hello()}))
            async for frame in socket:
                try:
                    number, do, fields = read_request(frame)
                except BadFrame:
                    socket.close(POLICY, "This is no request of the phone's page.")
                    return
                socket.send(encoded(await self._answer(tab, number, do, fields)))
        finally:
            self._tabs.discard(tab)
            tab.leave()
            self._tell_people()

    async def _answer(self, tab: _Tab, number: int, do: str, fields: Fields) -> protocol.Answer:
        try:
            return {"re": number, "ok": await self._act(tab, do, fields)}
        except Refused as refused:
            return {"re": number, "error": str(refused)}
        except CoreError as error:
            return {"re": number, "error": sentence(error)}
        except Exception:
            # One request of one tab has a defect: it is logged and answered, the tab goes on.
            log.exception("A request of the phone failed")
            return {"re": number, "error": _DEFECT}

    async def _act(self, tab: _Tab, do: str, fields: Fields) -> object:
        if do == "people":
            return tab.hello()
        if do == "become":
            became = await tab.become(fields.word("name"))
            self._tell_people()
            return became
        if do not in ACTS:
            raise Refused("The page asks for something that this version does not know. Load it again.")
        return await ACTS[do](tab.player(), fields)

    def _tell_people(self) -> None:
        push = encoded({"push": "people", "people": self._people.all()})
        for tab in self._tabs:
            tab.socket.send(push)

    async def upload(self, request: Request) -> Answer:
        """`POST /upload?name=NAME`."""
        name = request.query.get("name", "")[:1000]
        try:
            uploaded = await self._files.upload(name, request.chunks(LARGEST))
        except Refused as refused:
            raise HttpRefusal(409, str(refused)) from refused
        except OSError as error:
            raise HttpRefusal(507, f"There is no place for the file here ({error.strerror}).") from error
        answer: Upload = {"upload": uploaded.key, "name": uploaded.path.name, "size": uploaded.size}
        if uploaded.image is not None:
            answer["image"] = uploaded.image
        return json_answer(answer)

    async def file(self, request: Request) -> Answer:
        """`GET /file?person=…&chat=…&item=…`: the bytes of an item's file."""
        gone = HttpRefusal(404, "This file is not here.")
        player = self._people.known(request.query.get("person", ""))
        item = request.query.get("item", "")
        if player is None or not item.isascii() or not item.isdigit():
            raise gone
        try:
            chat = await player.api.get_chat(request.query.get("chat", ""), around(int(item[:18]), 0))
            file = obj(chat["chatItems"][0], "file")
            path = self._files.path(file)
            if path is None:
                raise gone
            opened, size = open_regular(path)
        except (CoreError, Refused, OSError) as error:
            raise gone from error
        return download(opened, size, text_of(file, "fileName"))


@final
class _Tab:
    """One tab and the person that it plays."""

    def __init__(self, socket: Socket, people: People) -> None:
        self.socket = socket
        self._people = people
        self._player: Player | None = None

    def hello(self) -> Hello:
        """What it can choose from."""
        limits: Limits = {"name": LONGEST, "text": TEXT, "file": LARGEST}
        return {"people": self._people.all(), "places": self._people.places(), "limits": limits}

    async def become(self, name: str) -> object:
        """Play this person. Raises Refused."""
        player = await self._people.player(name)
        self.leave()
        self._player = player
        player.enter(self.socket)
        return {"person": self._people.person(player), "chats": await player.chats()}

    def player(self) -> Player:
        """Who it plays. Refused: nobody yet."""
        if self._player is None:
            raise Refused("Choose first who you are.")
        return self._player

    def leave(self) -> None:
        """Play nobody."""
        if self._player is not None:
            self._player.leave(self.socket)
            self._player = None
