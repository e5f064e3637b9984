"""Which relays hold a file: from what the core offers, best first.

The description of the file tells it, and whether it leads to others: from the event that it is complete, or from the
core's database after a restart. A core of 7.1 says it with the item too, but not where a redirect leads. Where neither
is to be had, the core is asked to receive the file without approval, and its refusal names the unknown ones. Only
server addresses are kept: a description holds the file's key.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, final

import trio

from simplexmcp import messages
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.files.descriptions import Description, read_description
from simplexmcp.files.items import ended_by, event_entry, event_file_id, read_file
from simplexmcp.files.relays import Relays, known_relays, sorted_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.chats import Chat
    from simplexmcp.core.api import ChatApi
    from simplexmcp.core.link import Event
    from simplexmcp.messages import ChatFile

__all__ = ["CHECK", "Describing"]

_log = logging.getLogger(__name__)

CHECK = 60.0
"""Seconds between two looks at the item of a file that is waited for."""

_REMEMBERED = 1000  # files; older ones are looked up in the core's database


@final
class Describing:
    """What is known of the descriptions of offered files. A file is known by its number and its item: the core gives
    file numbers again."""

    def __init__(self, api: ChatApi) -> None:
        self._api = api
        self._known: OrderedDict[tuple[int, int], Description] = OrderedDict()
        self._refusals: OrderedDict[tuple[int, int], tuple[str, ...]] = OrderedDict()
        self._sign = trio.Event()

    def on_ready(self, event: Event) -> None:
        """The core has the whole description of a file."""
        number, item = event_file_id(event), messages.item_id(event_entry(event).get("chatItem"))
        part = event.get("rcvFileDescr")
        text = part.get("fileDescrText") if isinstance(part, dict) else None
        if number is not None and item is not None and isinstance(text, str):
            _remember(self._known, (number, item), read_description(text))
        self.touch()

    def refused(self, file: ChatFile, servers: list[str]) -> None:
        """The core refused to receive a file from these servers without approval."""
        _remember(self._refusals, (file.file_id, file.item), tuple(servers))

    def touch(self) -> None:
        """Something changed: who waits for a description looks again."""
        event, self._sign = self._sign, trio.Event()
        event.set()

    async def relays(self, chat: Chat, file: ChatFile, waiting: Callable[[], None] | None = None) -> Relays:
        """The unknown relays of a file, when its sender has uploaded it; `waiting` is called when that takes time.
        Raises Refused when the file cannot come any more, or when its description could hide relays; CoreError."""
        first = True
        while True:
            sign = self._sign
            try:
                now = await read_file(self._api, chat, file)
                if error := ended_by(now):
                    raise error
                if now.status == "rcvComplete":
                    return Relays()  # it is here already: forwarded to the owner, or received without a request
                if (found := await self.look(chat, now)) is not None:
                    return found
            except CoreError as error:
                if first:
                    raise
                _log.info("File %d: reading its item failed, trying again: %s", file.file_id, error.tag)
            if first and waiting is not None:
                waiting()
            first = False
            with trio.move_on_after(CHECK):
                await sign.wait()

    async def look(self, chat: Chat, file: ChatFile) -> Relays | None:
        """The unknown relays of a file as far as they are known now; None while its sender uploads."""
        described = await self._described(chat, file)
        if described is None:
            # What the core has accepted or received itself comes without a description that is waited for.
            return None if file.status in ("rcvInvitation", "rcvAborted") else Relays(certain=False)
        refused = self._refusals.get((file.file_id, file.item), ())
        # The core names every unknown server of a description, but not of a second one to which it leads.
        certain = not described.redirects and (described.readable or (not described.given and bool(refused)))
        known = known_relays(await self._api.user_servers())
        found = sorted_out((*described.servers, *refused), known, certain)
        if found.unknown and not found.certain:
            raise Refused("The file is described in a way that hides file servers; it is not received.")
        return found

    async def _described(self, chat: Chat, file: ChatFile) -> Description | None:
        """What the description says; None while the sender uploads. `given` is False when the core shows none."""
        told = _servers(await self._api.item_info(chat.ref, file.item))
        written = await self._written(file)
        if not told or written is None:
            return written
        # What the core tells are the servers of this description only, not of a second one to which it leads.
        servers = tuple(dict.fromkeys((*told, *written.servers)))
        return replace(written, servers=servers, readable=written.readable and written.given, given=True)

    async def _written(self, file: ChatFile) -> Description | None:
        """The description itself, from its event or from the core's database."""
        if known := self._known.get((file.file_id, file.item)):
            return known
        try:
            text = await self._api.file_description(file.file_id)
        except LinkLost:
            raise
        except CoreError as error:
            _log.info("File %d: the core does not show its description (%s)", file.file_id, error.tag)
            return Description((), readable=False, given=False)
        return None if text is None else read_description(text)


_Value = TypeVar("_Value")


def _remember(memory: OrderedDict[tuple[int, int], _Value], key: tuple[int, int], value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _servers(response: Event) -> list[str]:
    """`fileXftpServers` of an item, from a core that has it."""
    info: Any = response.get("chatItemInfo")
    servers = info.get("fileXftpServers") if isinstance(info, dict) else None
    return [server for server in servers if isinstance(server, str)] if isinstance(servers, list) else []
