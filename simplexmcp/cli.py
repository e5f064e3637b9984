"""The command `simplexmcp`: options of every command to one call, errors to one line and an exit code.

Imports nothing heavy: what a command needs is imported when it is chosen.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from simplexmcp import __version__
from simplexmcp.errors import SimplexMcpError, UserError
from simplexmcp.terminal import has_colours, nearest, painted, plain, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from simplexmcp.terminal import Paint

__all__ = ["HELP", "main", "run"]

HELP = """\
usage: simplexmcp COMMAND [options]

Gives an AI agent a presence in SimpleX, with the last word on its owner's phone.

run an agent:
  serve NAME            run the agent server until Ctrl-C
  install-service NAME  keep it running, as a service of this user
  status [NAME]         is it running, since when, what waits
  log NAME              what was asked, by whom decided, what happened
  doctor [NAME]         check this computer and the agent, with what to do

connect a client to it:
  register NAME         add the agent to Claude Code
  unregister NAME       take it out of Claude Code
  config CLIENT NAME    print the configuration of another MCP client
  bridge NAME           connect a client that has no HTTP to the running agent

chat rooms for agents and people on this computer:
  rooms COMMAND         mcp, watch, check and hook for agents; view, register, install,
                        doctor, export and retention for people

more:
  sandbox               run a simulated SimpleX network
  completion SHELL      print the completion script of bash, zsh or fish

simplexmcp COMMAND --help shows the options of a command; simplexmcp --version the version.
Exit codes: 0 done, 1 failed, 2 wrong usage or a value that does not fit, 130 interrupted.
"""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """The console script."""
    _open_closed_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Runs one command; its exit code. Every error becomes one line on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            code = _run(argv)
        except SystemExit as end:  # after --help
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()  # the reader has what it wanted
        return 1
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _report(error)
        _drop_output()
        return _report(UserError(f"Writing failed: {error.strerror}. Make room, or send the output somewhere else."))
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - the one place where errors end
        return _report(error)
    return code


def _open_closed_streams() -> None:
    """Puts /dev/null where the caller closed a standard stream: else the next file that is opened would be one."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _drop_output() -> None:
    """Nothing may write to a stdout that failed again, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(argv: Sequence[str]) -> int:
    if not argv:
        raise UserError("Give a command, such as serve, register or status. See simplexmcp --help", 2)
    command, *rest = argv
    if command == "help" and rest:
        return _run([*rest, "--help"])
    if command in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return 0
    if command == "--version":
        print(f"simplexmcp {__version__}")
        return 0
    if command == "_names":
        return _names()
    if command == "rooms":
        return _rooms(rest)
    if command not in _COMMANDS:
        kind, known = ("option", ("--help", "--version")) if command.startswith("-") else ("command", _WORDS)
        raise UserError(f'There is no {kind} "{command}".{nearest(command, known)} See simplexmcp --help', 2)
    return _COMMANDS[command](rest)


def _names() -> int:
    """For the completion scripts: the agents, one a line."""
    from simplexmcp.agents import agent_names

    for name in agent_names():
        print(name)
    return 0


def _rooms(rest: Sequence[str]) -> int:
    from simplexmcp.rooms.cli import run as rooms

    return rooms(rest)


def _serve(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse, serve_options
    from simplexmcp.logs import start_log

    options = serve_options(parse("serve", rest))
    start_log(options.log_level.upper())
    from simplexmcp.serve import run as serve

    return serve(options)


def _install_service(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse, serve_options, serve_words
    from simplexmcp.service import Service, install, service_text, this_system, uninstall

    args = parse("install-service", rest)
    options = serve_options(args)
    service = Service(options.name, options.data, tuple(serve_words(args)), options.stop_wait)
    if args.print:
        sys.stdout.write(service_text(service, this_system()))
        return 0
    for line in (uninstall if args.uninstall else install)(service, this_system()):
        print(line)
    return 0


def _register(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.register import register

    args = parse("register", rest)
    name, data, given = _agent(args)
    print(register(name, args.scope, data, given=given))
    return 0


def _unregister(rest: Sequence[str]) -> int:
    from simplexmcp.agents import check_name
    from simplexmcp.arguments import parse
    from simplexmcp.register import unregister

    print(unregister(check_name(parse("unregister", rest).name)))
    return 0


def _config(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.clients import client_config

    args = parse("config", rest)
    name, data, given = _agent(args)
    snippet = client_config(args.client, name, data, given=given)
    sys.stdout.write(snippet.text)
    sys.stdout.flush()
    for step in snippet.steps:
        _tell(step)
    return 0


def _bridge(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse

    name, data, given = _agent(parse("bridge", rest))
    from simplexmcp.bridge.running import run as bridge

    return bridge(name, data, given=given)


def _status(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.clock import SystemClock
    from simplexmcp.status import read_all, read_status

    args = parse("status", rest)
    now = SystemClock().now()
    if args.name is None:
        _check_no_data(args)
        found = read_all(now)
        print(found.as_json() if args.json else found.as_text(_paint()))
        return 0 if found.running else 1
    name, data, given = _agent(args)
    status = read_status(name, data, now, given=given)
    print(status.as_json() if args.json else status.as_text(_paint()))
    return 0 if status.running else 1


def _log(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.auditlog import LogOptions, parse_since, show_log
    from simplexmcp.clock import SystemClock
    from simplexmcp.options import check_within
    from simplexmcp.register import started_server

    args = parse("log", rest)
    name, data, given = _agent(args)
    options = LogOptions(
        json=args.json,
        follow=args.follow,
        last=None if args.lines is None else check_within("--lines", args.lines, 0, 10**9),
        since=None if args.since is None else parse_since(args.since, SystemClock().now()),
        paint=_paint(),
    )
    started_server(name, data, given=given)
    show_log(data / "audit.jsonl", options, _print_now if args.follow else print, _tell)
    return 0


def _doctor(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.clock import SystemClock
    from simplexmcp.doctor import Agent, as_json, as_text, examine, failed
    from simplexmcp.options import check_core, check_within

    args = parse("doctor", rest)
    agent = None
    if args.name is None:
        _check_no_data(args)
    else:
        name, data, given = _agent(args)
        agent = Agent(name, data, given)
    port = None if args.port is None else check_within("--port", args.port, 1, 65535)
    core = None if args.core is None else check_core(args.core)
    checks = examine(agent, core, port, SystemClock().now())
    print(as_json(checks) if args.json else as_text(checks, _paint()))
    return 1 if failed(checks) else 0


def _sandbox(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.logs import start_log
    from simplexmcp.options import check_phone_port, check_within

    args = parse("sandbox", rest)
    port = check_within("--port", args.port, 0, 65535)
    phone_port = check_phone_port(args.phone_port)
    start_log("WARNING")
    from simplexmcp.simulation import run as sandbox

    return sandbox(port, args.state, phone_port)


def _completion(rest: Sequence[str]) -> int:
    from simplexmcp.arguments import parse
    from simplexmcp.completion import completion_script

    sys.stdout.write(completion_script(parse("completion", rest).shell))
    return 0


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "serve": _serve,
    "install-service": _install_service,
    "register": _register,
    "unregister": _unregister,
    "config": _config,
    "bridge": _bridge,
    "status": _status,
    "log": _log,
    "doctor": _doctor,
    "sandbox": _sandbox,
    "completion": _completion,
}
_WORDS = (*_COMMANDS, "rooms", "help")


def _agent(args: Any) -> tuple[str, Path, bool]:
    """The agent of a command: its name, its data folder, and whether `--data` gave that. Raises UserError."""
    from simplexmcp.agents import check_name, data_folder

    name = check_name(args.name)
    return name, data_folder(name, args.data), args.data is not None


def _check_no_data(args: Any) -> None:
    if args.data is not None:
        raise UserError("--data is the folder of one agent: give its NAME, too.", 2)


def _paint() -> Paint:
    """How lines on stdout are coloured."""
    return painted if has_colours(sys.stdout) else plain


def _print_now(line: str) -> None:
    print(line, flush=True)


def _tell(line: str) -> None:
    print(printable(line), file=sys.stderr)


def _report(error: BaseException) -> int:
    """Prints what ended the command in one line; the exit code."""
    causes = _causes(error)
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return 130
    cause = next((cause for cause in causes if isinstance(cause, UserError)), causes[0])
    if isinstance(cause, SimplexMcpError):
        line = str(cause)
    else:
        import logging

        logging.getLogger(__name__).debug("Unexpected error", exc_info=error)
        line = f"Unexpected {type(cause).__name__}: {cause}. Report it, with what --log-level debug prints."
    _tell(line)
    return cause.code if isinstance(cause, UserError) else 1


def _causes(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in _causes(inner)]
    return [error]
