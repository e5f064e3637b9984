"""The command `simplexmcp`: options of every command to one call, errors to one line and an exit code.

Imports nothing heavy: what a command needs is imported when it is chosen.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from typing import TYPE_CHECKING

from simplexmcp import __version__
from simplexmcp.errors import SimplexMcpError, UserError
from simplexmcp.terminal import PrintableFormatter, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["HELP", "main", "run"]

HELP = """\
usage: simplexmcp COMMAND [options]

Gives an AI agent a presence in SimpleX, with the last word on its owner's phone.

commands:
  serve NAME        run the agent server until Ctrl-C
  register NAME     add the agent to Claude Code
  unregister NAME   take it out of Claude Code
  status NAME       is it running, since when, what waits
  sandbox           run a simulated SimpleX network

simplexmcp COMMAND --help shows the options of a command; simplexmcp --version the version.
Exit codes: 0 done, 1 failed, 2 wrong usage or a value that does not fit, 130 interrupted.
"""


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Runs one command; its exit code. Every error becomes one line on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has what it wanted. Nothing may write to the closed pipe again, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except SystemExit as end:  # after --help
        return end.code if isinstance(end.code, int) else 0
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - the one place where errors end
        return _report(error)
    return code


def _run(argv: Sequence[str]) -> int:
    if not argv:
        raise UserError("Give a command: serve, register, unregister, status or sandbox. See simplexmcp --help", 2)
    command, *rest = argv
    if command in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return 0
    if command == "--version":
        print(f"simplexmcp {__version__}")
        return 0
    if command not in _COMMANDS:
        kind = "option" if command.startswith("-") else "command"
        raise UserError(f'There is no {kind} "{command}". See simplexmcp --help', 2)
    return _COMMANDS[command](rest)


def _serve(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse, serve_options

    options = serve_options(parse("serve", rest))
    _start_log(options.log_level.upper())
    from simplexmcp.serve import run as serve

    return serve(options)


def _register(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.folder import check_name, data_folder
    from simplexmcp.register import register

    args = parse("register", rest)
    print(register(check_name(args.name), args.scope, data_folder(args.name, args.data), given=args.data is not None))
    return 0


def _unregister(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.folder import check_name
    from simplexmcp.register import unregister

    print(unregister(check_name(parse("unregister", rest).name)))
    return 0


def _status(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.clock import SystemClock
    from simplexmcp.folder import check_name, data_folder
    from simplexmcp.status import read_status

    args = parse("status", rest)
    name = check_name(args.name)
    status = read_status(name, data_folder(name, args.data), SystemClock().now(), given=args.data is not None)
    print(status.as_json() if args.json else status.as_text())
    return 0 if status.running else 1


def _sandbox(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.options import check_within

    args = parse("sandbox", rest)
    port = check_within("--port", args.port, 0, 65535)
    _start_log("WARNING")
    from simplexmcp.simulation import run as sandbox

    return sandbox(port, args.state)


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "serve": _serve,
    "register": _register,
    "unregister": _unregister,
    "status": _status,
    "sandbox": _sandbox,
}


def _start_log(level: str) -> None:
    """Our log lines go to stderr from `level` on, those of libraries from WARNING on: they may hold secrets
    below."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("simplexmcp").setLevel(level)


def _report(error: BaseException) -> int:
    """Prints what ended the command in one line; the exit code."""
    causes = _causes(error)
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return 130
    cause = next((cause for cause in causes if isinstance(cause, UserError)), causes[0])
    if isinstance(cause, SimplexMcpError):
        line = str(cause)
    else:
        logging.getLogger(__name__).debug("Unexpected error", exc_info=error)
        line = f"Unexpected {type(cause).__name__}: {cause}. Report it, with what --log-level debug prints."
    print(printable(line), file=sys.stderr)
    return cause.code if isinstance(cause, UserError) else 1


def _causes(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in _causes(inner)]
    return [error]
