"""`simplexmcp rooms register CLIENT`: the MCP server among a client's servers, through its program or in its file.

`install` uses the same steps and adds the hooks. Programs are run with an argument list, never through a shell.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from simplexmcp.errors import UserError
from simplexmcp.programs import run_program, said
from simplexmcp.rooms import edits
from simplexmcp.rooms.clients import client_named, named, registered, server_command, server_edit, server_name
from simplexmcp.rooms.program import UsageError, parse
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.rooms.clients import Client

__all__ = ["HELP", "Order", "order_of", "register", "run", "show", "unregister"]

HELP = """\
Usage: simplexmcp rooms register claude|codex|gemini|agy [options]

Adds the rooms server to the servers of an agent's client, for all projects of this user.

  --undo       takes it out again
  --dry-run    only shows what would be done
  --force      replaces an entry of another program
  --help       this text

Exit codes: 0 done, 1 failed, 2 wrong usage.
"""
_LIMIT = 60.0  # seconds for one run of a client's program


class Order(NamedTuple):
    """What was asked for."""

    client: Client
    undo: bool
    dry_run: bool
    force: bool


def run(argv: Sequence[str]) -> int:
    """The program; its exit code. Raises UserError."""
    order = order_of(argv, HELP)
    if order is not None:
        (unregister if order.undo else register)(order)
    return 0


def order_of(argv: Sequence[str], help_text: str) -> Order | None:
    """What was asked for; None when it was help, which is shown. Raises UserError."""
    try:
        options = parse(
            [word for word in argv if word.startswith("-")], (), ("--undo", "--dry-run", "--force", "--help", "-h")
        )
    except UsageError as error:
        raise UserError(f"{error} See --help.", 2) from None
    names = [word for word in argv if not word.startswith("-")]
    if options.flag("--help"):
        sys.stdout.write(help_text)
        return None
    if len(names) != 1:
        raise UserError("name one client: claude, codex, gemini or agy.", 2)
    client = client_named(names[0])
    force = options.flag("--force") or os.environ.get("AGENT_CHAT_FORCE_REREGISTER") == "1"
    return Order(client, options.flag("--undo"), options.flag("--dry-run"), force)


def register(order: Order) -> None:
    """Adds the server, and prints what was done. Raises UserError: the client has another entry of this name, or its
    program or settings refuse."""
    client, command = order.client, server_command()
    found = registered(client)
    if found == command:
        print(f"{client.title} has the server {server_name()} already.")
        return
    if found is not None and not order.force:
        raise UserError(
            f"{client.title} has a server {server_name()} that runs: {printable(shlex.join(found))}. "
            "Nothing was changed; --force puts this program in its place."
        )
    if _has_program(client):
        if found is not None:
            _client_program(order, named(client.remove))
        _client_program(order, (*named(client.add), *command))
    else:
        show(order, server_edit(client, command))
    if not order.dry_run:
        print(f"Added to {client.title}: server {server_name()}. Restart its sessions.")


def unregister(order: Order) -> None:
    """Takes the server out, and prints what was done. Raises UserError."""
    client = order.client
    if registered(client) is None:
        print(f"{client.title} has no server {server_name()}.")
        return
    if _has_program(client):
        _client_program(order, named(client.remove))
    else:
        show(order, server_edit(client, None))
    if not order.dry_run:
        print(f"Removed from {client.title}: server {server_name()}.")


def show(order: Order, edit: edits.Edit) -> None:
    """Makes the edit, or (dry run) shows it. Raises UserError."""
    if order.dry_run:
        sys.stdout.write(edits.difference(edit))
    else:
        edits.apply(edit)


def _has_program(client: Client) -> bool:
    return bool(client.program) and shutil.which(client.program) is not None


def _client_program(order: Order, words: Sequence[str]) -> None:
    command = [order.client.program, *words]
    if order.dry_run:
        print(f"would run: {shlex.join(command)}")
        return
    done = run_program(command, _LIMIT)
    if done.returncode != 0:
        raise UserError(f"{shlex.join(command[:3])} failed: {said(done)}")
