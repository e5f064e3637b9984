"""The options of every command, as typed parsers.

Each command has a parser of its own: `cli` picks the command and imports this module only when it needs one,
since the parser library takes most of the start time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import urlsplit

from tap import Positional, Tap

from simplexmcp.agents import check_name, data_folder
from simplexmcp.errors import UserError
from simplexmcp.options import (
    ServeOptions,
    check_core,
    check_display_name,
    check_owners,
    check_phone_port,
    check_relays,
    check_within,
    read_secret,
    with_password,
)
from simplexmcp.terminal import nearest

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Sequence

__all__ = ["PARSERS", "Register", "Sandbox", "Serve", "parse", "serve_options", "serve_words"]

# What the parser library says of a value that is not one of the choices.
_CHOICE = re.compile(r"argument (\S+): Value for variable .* must be one of \[(.*)\]\.")
_UNKNOWN = re.compile(r"unrecognized arguments: (--?[^ =]+)(.*)", re.DOTALL)
_MISSING = re.compile(r"the following arguments are required: (.+)")
_QUOTE = "'"

_NAME = "name of the agent, such as my-agent"
_DATA = "data folder (default: the user's data folder of simplexmcp, then NAME)"
_PHONE = "port on 127.0.0.1 of the phone, the page on which you play the people of the simulated network"
_SCOPE = "configuration of Claude Code to write to (default: user)"


class _Command(Tap):
    """A parser that reports what does not fit as UserError, in one line."""

    def __init__(self, prog: str) -> None:
        usage = self.usage_line(prog)
        super().__init__(prog=prog, usage=usage, allow_abbrev=False, underscores_to_dashes=True)

    @classmethod
    def usage_line(cls, prog: str) -> str:
        """The usage in one line, the names first: some options take all words that follow."""
        known = {"client": "CLIENT", "shell": "SHELL", "name": "NAME"}
        annotated = {key for part in cls.__mro__ for key in getattr(part, "__annotations__", {})}
        wanted = {key: word for key, word in known.items() if key in annotated}
        words = [f"[{word}]" if hasattr(cls, key) else word for key, word in wanted.items()]
        return " ".join([prog, *words, "[options]"])

    def options(self) -> list[Action]:
        """Its arguments and options, for what is generated from them."""
        return self._actions

    def format_help(self) -> str:
        """The text of `--help`, ending with a line break."""
        return super().format_help().rstrip("\n") + "\n"

    def error(self, message: str) -> NoReturn:
        if missing := _MISSING.fullmatch(message):
            message = f"{missing[1].replace(', ', ' and ')} {'are' if ',' in missing[1] else 'is'} missing"
            if self.prog.endswith(" serve"):
                message += "; it stands before --owners, --smp-server and --xftp-server"
        if unknown := _UNKNOWN.fullmatch(message):
            known = [option for action in self.options() for option in action.option_strings]
            raise UserError(f'There is no option "{unknown[1]}".{nearest(unknown[1], known)} See {self.prog} --help', 2)
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
    phone_port: int | None = None
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
        add("--phone-port", metavar="N", help=f"{_PHONE}; with --core sandbox (default: 5231)")
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


class InstallService(Serve):
    """Keeps the agent NAME running for this user: as a unit of systemd, or with launchd on a Mac. The options of serve
    go into it."""

    print: bool = False
    uninstall: bool = False

    def configure(self) -> None:
        super().configure()
        self.add_argument("--print", help="only print the file that would be installed")
        self.add_argument("--uninstall", help="stop the service and take it out again; the agent's data stays")


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


class Config(_Command):
    """Prints the configuration of another MCP client for the agent NAME, and says where to put it."""

    client: Positional[Literal["claude-desktop", "codex", "gemini", "cursor", "vscode", "opencode", "zed"]]
    name: Positional[str]
    data: Path | None = None

    def configure(self) -> None:
        clients = "claude-desktop, codex, gemini, cursor, vscode, opencode or zed"
        self.add_argument("client", metavar="CLIENT", help=clients)
        self.add_argument("name", metavar="NAME", help=_NAME)
        self.add_argument("--data", metavar="DIR", help=_DATA)


class Bridge(_Command):
    """Connects a client that has no HTTP to the running agent NAME: MCP over stdin and stdout."""

    name: Positional[str]
    data: Path | None = None

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", help=_NAME)
        self.add_argument("--data", metavar="DIR", help=_DATA)


class Status(_Command):
    """Says whether the agent NAME runs, since when, and what waits; without NAME, of every agent. Exit code 0 when it
    runs, without NAME when one runs; else 1."""

    name: Positional[str | None] = None
    data: Path | None = None
    json: bool = False

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", nargs="?", help=f"{_NAME} (default: every agent)")
        self.add_argument("--data", metavar="DIR", help=_DATA)
        self.add_argument("--json", help="one JSON object instead of text")


class Log(_Command):
    """Shows the audit log of the agent NAME: what was asked, by whom it was decided, what happened. With -f, Ctrl-C
    ends it with exit code 130."""

    name: Positional[str]
    follow: bool = False
    lines: int | None = None
    since: str | None = None
    data: Path | None = None
    json: bool = False

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", help=_NAME)
        self.add_argument("-f", "--follow", help="go on with what is added, until Ctrl-C")
        self.add_argument("-n", "--lines", metavar="N", help="only the last N entries (default: all)")
        self.add_argument(
            "--since",
            metavar="TIME",
            help="only entries from then on: 30m, 2h, 7d ago, or a time such as 2026-12-01T08:00",
        )
        self.add_argument("--data", metavar="DIR", help=_DATA)
        self.add_argument("--json", help="the entries as they are, one JSON object a line")


class Doctor(_Command):
    """Checks this computer, and the agent NAME if given: a line for each check, with what to do. Exit code 0 when
    nothing failed, else 1."""

    name: Positional[str | None] = None
    data: Path | None = None
    core: str | None = None
    port: int | None = None
    json: bool = False

    def configure(self) -> None:
        self.add_argument("name", metavar="NAME", nargs="?", help=f"{_NAME} (default: no agent)")
        self.add_argument("--data", metavar="DIR", help=_DATA)
        self.add_argument("--core", metavar="CORE", help="SimpleX core to check, as for serve (default: native)")
        self.add_argument("--port", metavar="N", help="port to check (default: the one that NAME used last, else 5226)")
        self.add_argument("--json", help="one JSON object instead of text")


class Sandbox(_Command):
    """Serves a simulated SimpleX network on 127.0.0.1 until Ctrl-C, for trying and for tests."""

    port: int = 5225
    phone_port: int | None = None
    state: Path | None = None

    def configure(self) -> None:
        self.add_argument("--port", metavar="N", help="port on 127.0.0.1 (default: 5225; 0 takes a free one)")
        self.add_argument("--phone-port", metavar="N", help=f"{_PHONE} (default: 5231; 0 takes a free one)")
        self.add_argument("--state", metavar="FILE", help="file that keeps the network (default: none)")


class Completion(_Command):
    """Prints the script that completes commands, options and names of agents in a shell. For ~/.bashrc:
    eval "$(simplexmcp completion bash)"; for ~/.zshrc, after compinit: eval "$(simplexmcp completion zsh)"; for
    ~/.config/fish/config.fish: simplexmcp completion fish | source"""

    shell: Positional[Literal["bash", "zsh", "fish"]]

    def configure(self) -> None:
        self.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


PARSERS: dict[str, type[_Command]] = {
    "serve": Serve,
    "install-service": InstallService,
    "register": Register,
    "unregister": Unregister,
    "config": Config,
    "bridge": Bridge,
    "status": Status,
    "log": Log,
    "doctor": Doctor,
    "sandbox": Sandbox,
    "completion": Completion,
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
        phone_port=check_phone_port(args.phone_port, core),
    )


def serve_words(args: Serve) -> list[str]:
    """The words of the `serve` command that means these arguments wherever it is started: absolute paths, no defaults.
    Raises UserError for what no unattended start can do."""
    if args.reset_owners:
        raise UserError("--reset-owners is for one start: run simplexmcp serve with it yourself.", 2)
    if args.owners == "":
        raise UserError("--owners without a list is for one start: run simplexmcp serve with it yourself.", 2)
    if urlsplit(args.core).password:
        raise UserError("A service would show the password in --core to every user: use --core-password-file.", 2)
    words = ["serve", args.name]
    for action in args.options():
        value: Any = getattr(args, action.dest, None)
        if not action.option_strings or not hasattr(Serve, action.dest) or value == getattr(Serve, action.dest):
            continue
        values = value if isinstance(value, list) else [Path.cwd() / value if isinstance(value, Path) else value]
        words += [f"{action.option_strings[0]}={each}" for each in values]
    return words
