"""What `--core` may say, and the link that it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from simplexmcp.core.address import WebSocketAddress, websocket_address
from simplexmcp.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from simplexmcp.core.link import Link

__all__ = ["CoreSpec", "core_kind", "open_link"]


@final
@dataclass(frozen=True)
class CoreSpec:
    """A valid `--core`. `str()` of it is fit for logs and errors: it holds no password."""

    kind: Literal["native", "sandbox", "websocket"]
    address: WebSocketAddress | None = None

    def __str__(self) -> str:
        return str(self.address) if self.address else self.kind


def core_kind(spec: str) -> CoreSpec:
    """What `--core` means; UserError (code 2) when it means nothing. Opens and imports nothing."""
    if spec == "native":
        return CoreSpec("native")
    if spec == "sandbox":
        return CoreSpec("sandbox")
    if spec.startswith(("ws://", "wss://")):
        return CoreSpec("websocket", websocket_address(spec))
    shown = f'"{spec}"' if spec.isascii() and spec.isprintable() and "@" not in spec and len(spec) < 60 else "that"
    raise UserError(
        f"--core: {shown} is not a core; write native, sandbox, ws://127.0.0.1:PORT or wss://USER:PASSWORD@HOST.",
        code=2,
    )


def open_link(
    core: CoreSpec,
    *,
    prefix: Path,
    key: str = "",
    sandbox: Callable[[], AbstractAsyncContextManager[Link]],
) -> AbstractAsyncContextManager[Link]:
    """The link to a core. `prefix` and `key` are of the databases that `native` keeps; `sandbox` opens the
    simulation, which is built on top of this package."""
    if core.address is not None:
        from simplexmcp.core.websocket import open_websocket

        return open_websocket(core.address)
    if core.kind == "sandbox":
        return sandbox()
    from simplexmcp.core.native import open_native

    return open_native(prefix, key)
