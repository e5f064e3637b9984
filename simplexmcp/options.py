"""The options of `serve`, checked: what is in a `ServeOptions` fits, whoever made it from the command
line."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final
from urllib.parse import quote, urlsplit, urlunsplit

from simplexmcp.errors import UserError
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from simplexmcp.qr import QrSize

__all__ = [
    "Approve",
    "LogLevel",
    "ServeOptions",
    "check_core",
    "check_display_name",
    "check_owners",
    "check_phone_port",
    "check_relays",
    "check_within",
    "read_secret",
    "shown_core",
    "with_password",
]

Approve: TypeAlias = Literal["requests", "host"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

# smp://FINGERPRINT[:PASSWORD]@HOST[,HOST][:PORT]: the core takes several in one command, parted by blanks.
_RELAY = re.compile(r"(smp|xftp)://[A-Za-z0-9_-]{43}=?(:[A-Za-z0-9_.~-]+)?@[A-Za-z0-9.\[\]:,_-]+", re.ASCII)
_SECRET_LIMIT = 1 << 16  # bytes
_OWNER = re.compile(r"[1-9][0-9]{0,8}:\S(.*\S)?")
_NEXT_OWNER = re.compile(r",(?=\s*[0-9]+:)", re.ASCII)  # a name may hold a comma


@final
@dataclass(frozen=True)
class ServeOptions:
    """What `simplexmcp serve` was asked for."""

    name: str
    display_name: str
    data: Path
    """Absolute."""
    data_given: bool
    """Whether `--data` was given: then the hints name it too."""
    port: int
    """0 takes a free one."""
    approve: Approve
    owners: str | None
    """None without `--owners`, "" for a bare one, else entries `ID:NAME` parted by commas."""
    reset_owners: bool
    expire_hours: int
    """1 to 23."""
    stop_wait: int
    """Seconds, 0 to 60."""
    qr_code: QrSize
    core: str
    """`native`, `sandbox`, or a `ws://` or `wss://` URL; its password is a secret: show
    `shown_core(core)`."""
    smp_servers: tuple[str, ...]
    xftp_servers: tuple[str, ...]
    log_level: LogLevel
    database_key_file: Path | None
    core_password_file: Path | None = None
    """Where the password in `core` was read; it is not sent, either."""
    phone_port: int | None = None
    """Of the page of a simulated network; None: the usual one, or a free one when that is taken."""


def check_core(core: str) -> str:
    """`core`, when `--core` takes it. Raises UserError (code 2), which never shows a password."""
    if core in ("native", "sandbox"):
        return core
    try:
        url = urlsplit(core)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in ("ws", "wss") or not url.hostname or url.query or url.fragment or _odd(core):
        raise UserError("--core is native, sandbox, ws://HOST:PORT or wss://USER:PASSWORD@HOST.", 2)
    if url.scheme == "ws":
        if port is None:
            raise UserError(f"--core {shown_core(core)} has no port: ws://127.0.0.1:5225 is the usual one.", 2)
        if not _is_loopback(url.hostname):
            raise UserError(
                f"--core {shown_core(core)} is not on this computer: everybody on the way could act as the "
                "agent. Use wss:// behind a TLS proxy.",
                2,
            )
    return core


def check_phone_port(port: int | None, core: str = "sandbox") -> int | None:
    """`port` for the phone of a simulated network; None was not given. Raises UserError (code 2)."""
    if port is not None and core != "sandbox":
        raise UserError("--phone-port goes with --core sandbox: in other networks people have the SimpleX app.", 2)
    return None if port is None else check_within("--phone-port", port, 0, 65535)


def with_password(core: str, password: str) -> str:
    """`wss://USER@HOST` with the password that a file gave, so that no command line holds it. Raises
    UserError."""
    url = urlsplit(core)
    if url.scheme != "wss" or not url.username or url.password is not None:
        raise UserError("--core-password-file goes with --core wss://USER@HOST.", 2)
    host = url.netloc.rpartition("@")[2]
    return urlunsplit(url._replace(netloc=f"{url.username}:{quote(password, safe='')}@{host}"))


def read_secret(path: Path) -> str:
    """The first line of a file that only its owner may read, for a password or key; a symlink is followed, since
    secrets are often mounted so. Raises UserError (code 2)."""
    shown = printable(str(path))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.getuid()):
                raise UserError(f"{shown} is not a regular file of yours. Give another.", 2)
            if found.st_mode & 0o077:
                raise UserError(f"Others may read {shown}: chmod 600 it, and change the secret.", 2)
            secret = file.read(_SECRET_LIMIT).decode().split("\n", 1)[0].rstrip("\r")
    except OSError as error:
        raise UserError(f"{shown}: {error.strerror}. Give another.", 2) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{shown} is not UTF-8 text. Give another.", 2) from error
    if not secret:
        raise UserError(f"{shown} has no secret in its first line. Give another.", 2)
    return secret


def shown_core(core: str) -> str:
    """`core` for people and logs: without user and password."""
    head, at, host = core.rpartition("@")
    return printable(f"{head.partition('://')[0]}://{host}" if at else core)


def check_relays(scheme: Literal["smp", "xftp"], relays: list[str]) -> tuple[str, ...]:
    """The relays, when each is an address of that kind. Raises UserError (code 2), which shows no
    password."""
    for relay in relays:
        found = _RELAY.fullmatch(relay)
        if found is None or found[1] != scheme:
            shown = printable(relay.rpartition("@")[2])[:100]
            raise UserError(
                f'--{scheme}-server "{shown}" is not {scheme}://FINGERPRINT@HOST[:PORT], the address of a relay.',
                2,
            )
    return tuple(dict.fromkeys(relays))


def check_owners(owners: str | None, *, reset: bool) -> str | None:
    """The list of `--owners`, when each entry is `ID:NAME`. Raises UserError (code 2)."""
    if not owners:
        return owners
    if reset:
        raise UserError("--reset-owners makes a new control chat: give --owners without a list, then restart.", 2)
    for entry in _NEXT_OWNER.split(owners):
        if not _OWNER.fullmatch(entry.strip(" ")):
            raise UserError(f'Owner "{printable(entry)}" is not ID:NAME. Give a list such as --owners 3:Alice', 2)
    return owners


def check_display_name(display: str, name: str) -> str:
    """`display`, when SimpleX takes it as a name. Raises UserError (code 2) with the nearest that fits."""
    from simplexmcp.sandbox.names import valid_name

    nearest = valid_name(display)
    if display and nearest == display:
        return display
    advice = f'--display-name "{nearest}" does' if nearest else "give another"
    if display == name:
        raise UserError(f'Agent name "{printable(name)}" doesn\'t fit as a name in SimpleX; {advice}.', 2)
    raise UserError(f'--display-name "{printable(display)}" doesn\'t fit as a name in SimpleX; {advice}.', 2)


def check_within(option: str, value: int, low: int, high: int) -> int:
    """`value`, when it is from `low` to `high`. Raises UserError (code 2)."""
    if not low <= value <= high:
        raise UserError(f"{option} is {low} to {high}, not {value}.", 2)
    return value


def _odd(text: str) -> bool:
    return not text.isascii() or not text.isprintable() or " " in text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
