"""The errors of the program: whose fault it is decides the class, one place each turns it into text.

`UserError` ends a command: `cli.main` prints its one line and exits. `CoreError` is the SimpleX core's no, with the
core's own tag. `Refused` is a tool's no: the agent reads its sentence as the result of the call.
"""

from __future__ import annotations

from typing import Any, final

__all__ = ["CoreError", "LinkLost", "Refused", "SimplexMcpError", "UserError", "core_error"]


class SimplexMcpError(Exception):
    """Base of all errors that the program raises on purpose."""


@final
class UserError(SimplexMcpError):
    """What happened and what to do next, in one line; `code` is the exit code (1 failed, 2 wrong usage or value)."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@final
class Refused(SimplexMcpError):  # noqa: N818 - a no is no error of the program
    """A tool's no: one sentence that tells the agent what to do instead."""


class CoreError(SimplexMcpError):
    """The core refused a command. `tag` is its path of type names, such as `errorStore/groupLinkNotFound`,
    `error/commandError` or `errorAgent/SMP/AUTH`; `error` is the core's object as it came: it may hold secrets."""

    def __init__(self, tag: str, text: str, error: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.tag = tag
        self.error = error or {}


@final
class LinkLost(CoreError):  # noqa: N818 - named after what happened
    """The link to the core was lost (`link/lost`: the command was in flight, nobody knows whether it was done) or is
    down (`link/down`: it was not sent)."""


def core_error(error: dict[str, Any]) -> CoreError:
    """The error for a CHATERROR object of the core; its text is the tag and the core's message, if it has one."""
    path: list[str] = []
    message = ""
    node: Any = error
    while isinstance(node, dict) and isinstance(node.get("type"), str):
        path.append(node["type"])
        if isinstance(text := node.get("message") or node.get("errorMessage"), str):
            message = text
        node = next(
            (v for k, v in node.items() if isinstance(v, dict) and isinstance(v.get("type"), str) and _is_cause(k)),
            None,
        )
    tag = "/".join(path) or "unknown"
    return CoreError(tag, f"{tag}: {message}" if message else tag, error)


def _is_cause(key: str) -> bool:
    return key.endswith(("Error", "Err", "errorType")) or key == "errorType"
