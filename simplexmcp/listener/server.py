"""The HTTP server: one listening socket on 127.0.0.1, hypercorn's protocol on each connection, and its end.

The nurseries, from the outside in: the SDK's manager, the calls' writers, the connections, the accept loop
(`web/serving`); they end from the inside out.
"""

from __future__ import annotations

import gc
import resource
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from hypercorn.config import Config

from simplexmcp.listener.calls import Calls, Closing
from simplexmcp.listener.connection import Connection
from simplexmcp.listener.endpoint import Endpoint
from simplexmcp.listener.guard import Guard
from simplexmcp.listener.kernel import INSTRUCTIONS, Kernel
from simplexmcp.listener.limits import Limits
from simplexmcp.listener.modern import Modern
from simplexmcp.web.serving import Connections, base_config, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from simplexmcp.tooling import Tools

__all__ = ["check_port", "serve"]

_COLLECT_AFTER = (20_000, 20, 50)


async def serve(
    tools: Tools,
    *,
    port: int,
    token: str,
    ready: Callable[[], bool],
    closing: Closing,
    instructions: str = INSTRUCTIONS,
    limits: Limits | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves the tools on http://127.0.0.1:PORT/mcp until `closing.finish`; port 0 takes a free one.

    Reports the port as soon as connections are accepted. UserError when the port cannot be had. Cancelled, it leaves
    at once.
    """
    limits = limits or Limits()
    kernel = Kernel(tools, instructions)
    calls = Calls(limits)
    modern = Modern(kernel, calls, limits)
    _allow_files(limits.connections)
    listener = listen(port)
    port = listener.getsockname()[1]
    guard = Guard(
        Endpoint(kernel, calls, modern).handle,
        port=port,
        token=token,
        ready=ready,
        closing=closing,
        limits=limits,
    )
    connections = Connections(
        guard,
        base_config(Config(), limits.idle),
        limit=limits.connections,
        grace=limits.grace,
        kind=Connection,
    )
    async with (
        trio.SocketListener(trio.socket.from_stdlib_socket(listener)) as accepting,
        modern.running(),
        trio.open_nursery() as helpers,
    ):
        await helpers.start(calls.run)
        closing.attach(calls)
        with _rare_collections():
            await connections.run(accepting, closing.finished, partial(task_status.started, port))
        helpers.cancel_scope.cancel()


def check_port(port: int) -> None:
    """Look whether `serve` could have this port now, before anything else is begun. UserError when it can't."""
    listen(port).close()


@contextmanager
def _rare_collections() -> Generator[None]:
    """Lets Python look for cyclic garbage less often. With thousands of held calls each search goes through all their
    objects: when 5,000 clients leave at once, two thirds of the time were that."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def _allow_files(wanted: int) -> None:
    """Each held call is an open socket: raises the soft limit of open files as far as the hard one lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        new = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
