"""Getting the core ready at start and after a lost link (flow 1): version, user, network, folders, start, relays."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.errors import CoreError, LinkLost, UserError
from simplexmcp.options import read_secret, shown_core
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from simplexmcp.core.api import ChatApi, Wire
    from simplexmcp.core.link import Link
    from simplexmcp.options import ServeOptions

__all__ = ["CoreSetup", "Known", "OpenedCore", "open_core", "prepare_core"]

_OLDEST = (7, 0)
_AGENTS = (7, 1)
_BOTS = ("bot", "agent")


@dataclass(frozen=True)
class CoreSetup:
    """What is said to the core at every start."""

    display_name: str
    temp_folder: Path | None
    """None for a core on another machine: its folders are its own."""
    smp_servers: tuple[str, ...] = ()
    xftp_servers: tuple[str, ...] = ()
    own_database: bool = True
    """Whether the database is the agent's by its place; another's user is looked at."""


@dataclass(frozen=True)
class Known:
    """By what a core that comes back is known: its user, and the agent's membership in the control chat."""

    user_id: int
    group_id: int
    member_id: str


@dataclass(frozen=True)
class OpenedCore:
    """The link to a core, and with a simulated network the line that shows its phone: for a link to join by."""

    link: Link
    phone: Callable[[str | None], str] | None = None


@asynccontextmanager
async def open_core(options: ServeOptions, out: Callable[[str], None]) -> AsyncGenerator[OpenedCore]:
    """The link that `--core` names. Raises UserError."""
    if options.core == "native":
        from simplexmcp.core.native import open_native

        key = read_secret(options.database_key_file) if options.database_key_file else ""
        async with open_native(options.data / "simplex", key) as link:
            yield OpenedCore(link)
    elif options.core == "sandbox":
        async with _open_simulation(options, out) as opened:
            yield opened
    else:
        from simplexmcp.core.websocket import open_websocket

        out(
            f"Warning: the port of the core at {shown_core(options.core)} has no approval: "
            "whoever reaches it can send as the agent."
        )
        async with open_websocket(options.core) as link:
            yield OpenedCore(link)


@asynccontextmanager
async def _open_simulation(options: ServeOptions, out: Callable[[str], None]) -> AsyncGenerator[OpenedCore]:
    """A simulated network in the process, and the page on which a person plays the others of it."""
    from simplexmcp.phone.server import serve_phone
    from simplexmcp.sandbox.link import open_sandbox

    out("This is a simulation: the sandbox's network has no phones, no internet and no real people.")
    profile = "agent"
    async with open_sandbox(options.data / "sandbox.json", profile, port=0) as link, trio.open_nursery() as nursery:
        out(f"Others in it: ws://127.0.0.1:{link.port}/PROFILE, in the protocol of simplex-chat -p.")
        phone = await nursery.start(partial(serve_phone, link.network, held=profile, port=options.phone_port))
        yield OpenedCore(link, phone.line)
        nursery.cancel_scope.cancel()


async def prepare_core(api: ChatApi, setup: CoreSetup, known: Known | None = None) -> Wire:
    """Bring the core to where chats can be read and messages sent; its user. With `known`, after a lost link, it must
    be the same core, and nothing is made in it. Raises UserError, CoreError."""
    version = await api.version()
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _OLDEST:
        raise UserError(f"The core is version {printable(version)}; simplexmcp needs 7.0 or later: update it.")
    user = await api.active_user()
    if known is not None and (user is None or api.user_id != known.user_id):
        raise _another_core()
    if user is None:
        user = await _create_user(api, setup.display_name, numbers)
    profile = user.get("profile") or {}
    if not setup.own_database and profile.get("peerType") not in _BOTS:
        name = printable(str(profile.get("displayName", "")))
        raise UserError(
            f'The core\'s user "{name}" is a person; give the agent a database of its own: '
            "simplex-chat -d … --create-bot-display-name …"
        )
    await api.set_network()
    if setup.temp_folder is not None:
        await api.set_temp_folder(str(setup.temp_folder))
    await api.start()
    if known is not None:
        await _check_known(api, known)
    await _set_relays(api, setup)
    return user


async def _create_user(api: ChatApi, display_name: str, version: tuple[int, ...]) -> Wire:
    """A new user that says what it is: an agent where the core knows that word (7.1), else a bot."""
    try:
        if version >= _AGENTS:
            try:
                return await api.create_user(display_name, "agent")
            except CoreError as error:
                if error.tag != "error/commandError":
                    raise
        return await api.create_user(display_name)
    except CoreError as error:
        if error.tag == "error/invalidDisplayName":
            valid = (error.error.get("errorType") or {}).get("validName") or "Agent"
            raise UserError(f'SimpleX takes no such name; --display-name "{printable(valid)}" would do.', 2) from error
        raise


async def _check_known(api: ChatApi, known: Known) -> None:
    try:
        group, _ = await api.list_members(known.group_id)
    except CoreError as error:
        if error.tag == "errorStore/groupNotFound":
            raise _another_core() from error
        raise
    if (group.get("membership") or {}).get("memberId") != known.member_id:
        raise _another_core()


def _another_core() -> UserError:
    return UserError(
        "The SimpleX core has another database since the link to it was lost: the agent control chat is not in it. "
        "Start the core with the agent's database, then this server."
    )


async def _set_relays(api: ChatApi, setup: CoreSetup) -> None:
    if not (setup.smp_servers or setup.xftp_servers):
        return
    known = await api.user_servers()
    if setup.smp_servers and _same(setup.smp_servers) != _enabled(known, "smpServers"):
        await _set(api.set_smp_servers, setup.smp_servers, "--smp-server")
    if setup.xftp_servers and _same(setup.xftp_servers) != _enabled(known, "xftpServers"):
        await _set(api.set_xftp_servers, setup.xftp_servers, "--xftp-server")


async def _set(set_servers: Callable[[Sequence[str]], Awaitable[None]], relays: Sequence[str], option: str) -> None:
    try:
        await set_servers(relays)
    except LinkLost:
        raise
    except CoreError as error:
        hosts = ", ".join(printable(relay.rpartition("@")[2]) for relay in relays)
        text = f"The core does not take the relays of {option} ({hosts}): {printable(str(error))}. Check them."
        raise UserError(text, 2) from error


def _same(relays: Sequence[str]) -> set[str]:
    """Addresses of relays as they are compared: the core pads a fingerprint, a person may not."""
    return {re.sub(r"=+(?=[:@])", "", relay, count=1) for relay in relays}


def _enabled(operators: Sequence[Wire], key: str) -> set[str]:
    servers = [server for operator in operators for server in operator.get(key) or [] if isinstance(server, dict)]
    return _same([str(each.get("server")) for each in servers if each.get("enabled") and not each.get("deleted")])
