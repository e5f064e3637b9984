"""Programs of the machine that a command uses: `claude`, `codex`, `systemctl` …; run without a shell, and bounded."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from simplexmcp.errors import UserError
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run_program", "said"]


def run_program(words: Sequence[str], limit: float, advice: str = "Try again.") -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its exit status. Raises UserError: it took more than `limit` seconds, with
    the advice; it cannot be run."""
    try:
        return subprocess.run(  # noqa: S603 - an argument list, no shell
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{shlex.join(words[:3])} did not end within {limit:.0f} s. {advice}") from None
    except OSError as error:
        raise UserError(f"The {words[0]} program can't be run: {error.strerror}. Repair its installation.") from error


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What a program said, on one line; its exit status when it said nothing."""
    lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
    return printable(" ".join(line.strip() for line in lines))
