"""The one trio task that makes a simulated network live: it delivers what is due and sleeps until the next."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.sandbox.network import Network

__all__ = ["drive", "trio_clock"]


def trio_clock() -> Callable[[], float]:
    """Seconds since the epoch that follow trio's clock, so that a test's mock clock moves the network too."""
    began, at = time.time(), trio.current_time()
    return lambda: began + trio.current_time() - at


async def drive(network: Network) -> None:
    """Deliver for ever. Cancellation ends it; the queue stays as it is."""
    woken = trio.Event()

    def wake() -> None:
        woken.set()

    network.changed = wake
    while True:
        woken = trio.Event()
        delay = network.deliver()
        with trio.move_on_after(math.inf if delay is None else delay):
            await woken.wait()
