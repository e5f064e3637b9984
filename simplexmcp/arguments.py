"""The options of every command, as typed parsers.

Each command has a parser of its own: `cli` picks the command and imports this module only when it needs one,
since the parser library takes most of the start time.
"""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - the parser library evaluates the annotations
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tap import Positional, Tap

from simplexmcp.errors import UserError
from simplexmcp.folder import check_name, data_folder
from simplexmcp.options import (
    ServeOptions,
    check_core,
    check_display_name,
    check_owners,
    check_relays,
    check_within,
    read_secret,
    with_password,
)

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Sequence

__all__ = ["PARSERS", "Register", "Sandbox", "Serve", "Status", "Unregister", "parse", "serve_options"]

# What the parser library says of a value that is not one of the choices.
_CHOICE = re.compile(r"argument (\S+): Value for variable .* must be one of \[(.*)\]\.")
_QUOTE = "'"

_NAME = "name of the agent, such as my-agent"
_DATA = "data folder (default: the user's data folder of simplexmcp, then NAME)"
_SCOPE = "configuration of Claude Code to write to (default: user)"


class _Command(Tap):
    """A parser that reports what does not fit as UserError, in one line."""

    def __init__(self, prog: str) -> None:
        usage = self.usage_line(prog)
        super().__init__(prog=prog, usage=usage, allow_abbrev=False, underscores_to_dashes=True)

    @classmethod
    def usage_line(cls, prog: str) -> str:
        """The usage in one line, the name first: some options take all words that follow."""
        return f"{prog} NAME [options]" if "name" in cls.__annotations__ else f"{prog} [options]"

    def options(self) -> list[Action]:
        """Its arguments and options, for what is generated from them."""
        return self._actions

    def format_help(self) -> str:
        """The text of `--help`, ending with a line break."""
        return super().format_help().rstrip("\n") + "\n"

    def error(self, message: str) -> NoReturn:
        if "arguments are required: NAME" in message:
            message = "NAME is missing"
            if self.prog.endswith(" serve"):
                message += "; it stands before --owners, --smp-server and --xftp-server"
        if choice := _CHOICE.fullmatch(message):
            message = f"{choice[1]} is one of {choice[2].replace(_QUOTE, '')}"
        raise UserError(f"{message[:1].upper()}{message[1:]}. See {self.prog} --help", 2)


class Serve(_Command):
    """Runs the agent NAME until Ctrl-C: an MCP server on 127.0.0.1 whose actions are approved in SimpleX."""

    name: Positional[str]
    display_name: str | None = None
    data: Path | None = None
    port: int = 5226
    approve: Literal["requests", "host"] = "requests"
    owners: str | None = None
    reset_owners: bool = False
    expire_hours: int = 23
    stop_wait: int = 10
    qr_code: Literal["large", "small", "none"] = "large"
    core: str = "native"
    core_password_file: Path | None = None
    database_key_file: Path | None = None
    smp_server: list[str] = []  # noqa: RUF012 - the parser copies its defaults
    xftp_server: list[str] = []  # noqa: RUF012
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    def configure(self) -> None:
        add = self.add_argument
        add("name", metavar="NAME", help=_NAME)
        add("--display-name", metavar="TEXT", help="name that others see in SimpleX (default: NAME)")
        add("--data", metavar="DIR", help=_DATA)
        add("--port", metavar="N", help="port on 127.0.0.1 (default: 5226; 0 takes a free one)")
        add(
            "--approve",
            help="who approves: an owner in SimpleX, request by request, or the program that hosts the agent, "
            "which asks its user (default: requests)",
        )
        add(
            "--owners",
            nargs="?",
            const="",
            metavar="LIST",
            help="only these members of the control chat approve, as 3:Alice,7:Bob; without LIST, print what "
            "the next person to join is called in it",
        )
        add("--reset-owners", help="delete the control chat for all members and make a new one")
        add(
            "--expire-hours",
            metavar="N",
            help="hours until an unanswered request expires, 1 to 23 (default: 23)",
        )
        add(
            "--stop-wait",
            metavar="SECONDS",
            help="longest wait for last messages when stopping, 0 to 60 (default: 10)",
        )
        add("--qr-code", help="size of the QR code of the owner's link (default: large)")
        add(
            "--core",
            metavar="CORE",
            help="SimpleX core: native (in this process), ws://HOST:PORT or wss://USER:PASSWORD@HOST (a "
            "running simplex-chat), or sandbox (a simulated network) (default: native)",
        )
        add("--core-password-file", metavar="FILE", help="file with the password for --core wss://USER@HOST")
        add("--database-key-file", metavar="FILE", help="file with the key of the native core's databases")
        add(
            "--smp-server",
            nargs="+",
            action="extend",
            metavar="URI",
            help="own message relays, smp://FINGERPRINT@HOST",
        )
        add(
            "--xftp-server",
            nargs="+",
            action="extend",
            metavar="URI",
            help="own file relays, xftp://FINGERPRINT@HOST",
        )
        add("--log-level", help="least severe log lines to write to stderr (default: warning)")


class Register(_Command):
    """Adds the agent NAME to Claude Code."""

    name: Positional[str]
    scope: Literal["user", "local", "project"] = "user"
    data: Path | None = None

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", help=_NAME)
        self.add_argument("--scope", help=_SCOPE)
        self.add_argument("--data", metavar="DIR", help=_DATA)


class Unregister(_Command):
    """Takes the agent NAME out of Claude Code, in every scope."""

    name: Positional[str]

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", help=_NAME)


class Status(_Command):
    """Says whether the agent NAME runs, since when, and what waits. Exit code 1 when it does not run."""

    name: Positional[str]
    data: Path | None = None
    json: bool = False

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", help=_NAME)
        self.add_argument("--data", metavar="DIR", help=_DATA)
        self.add_argument("--json", help="one JSON object instead of text")


class Sandbox(_Command):
    """Serves a simulated SimpleX network on 127.0.0.1 until Ctrl-C, for trying and for tests."""

    port: int = 5225
    state: Path | None = None

    def configure(self) -> None:
        self.add_argument("--port", metavar="N", help="port on 127.0.0.1 (default: 5225; 0 takes a free one)")
        self.add_argument("--state", metavar="FILE", help="file that keeps the network (default: none)")


PARSERS: dict[str, type[_Command]] = {
    "serve": Serve,
    "register": Register,
    "unregister": Unregister,
    "status": Status,
    "sandbox": Sandbox,
}


def parse(command: str, rest: Sequence[str]) -> Any:
    """The parsed arguments of one of PARSERS. Raises UserError (code 2), SystemExit after `--help`."""
    return PARSERS[command](prog=f"simplexmcp {command}").parse_args(list(rest))


def serve_options(args: Serve) -> ServeOptions:
    """The checked options. Reads the password file. Raises UserError."""
    name = check_name(args.name)
    core = check_core(args.core)
    if args.core_password_file is not None:
        core = with_password(core, read_secret(args.core_password_file))
    if args.database_key_file is not None and core != "native":
        raise UserError("--database-key-file goes with --core native: a running simplex-chat has its key already.", 2)
    return ServeOptions(
        name=name,
        display_name=check_display_name(name if args.display_name is None else args.display_name, name),
        data=data_folder(name, args.data),
        data_given=args.data is not None,
        port=check_within("--port", args.port, 0, 65535),
        approve=args.approve,
        owners=check_owners(args.owners, reset=args.reset_owners),
        reset_owners=args.reset_owners,
        expire_hours=check_within("--expire-hours", args.expire_hours, 1, 23),
        stop_wait=check_within("--stop-wait", args.stop_wait, 0, 60),
        qr_code=args.qr_code,
        core=core,
        smp_servers=check_relays("smp", args.smp_server),
        xftp_servers=check_relays("xftp", args.xftp_server),
        log_level=args.log_level,
        database_key_file=args.database_key_file,
        core_password_file=args.core_password_file,
    )
