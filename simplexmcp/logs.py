"""The program's log: lines on stderr that nothing foreign in them can steer."""

from __future__ import annotations

import logging
from typing import final

from simplexmcp.terminal import printable

__all__ = ["PrintableFormatter", "start_log"]


@final
class PrintableFormatter(logging.Formatter):
    """Log lines whose foreign parts are inert; a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of `record`, and its traceback when it has one."""
        return "\n".join(printable(line) for line in super().format(record).split("\n"))


def start_log(level: str) -> None:
    """Our log lines go to stderr from `level` on, those of libraries from WARNING on: they may hold secrets
    below."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("simplexmcp").setLevel(level)
