"""How long to go on: a number of inputs, or seconds; and what is needed to see one input again."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["Budget", "memory", "replayable"]

_PAGE = 4096


class Budget:
    """Iterating gives a `Random` for each input, until the inputs or the seconds are used up. `tried` counts them;
    `only` gives just the input of this number."""

    def __init__(
        self, seed: int, *, inputs: int | None = None, seconds: float | None = None, only: int | None = None
    ) -> None:
        self.seed, self.tried = seed, 0
        self._inputs, self._seconds, self._only = inputs, seconds, only

    def __iter__(self) -> Iterator[Random]:
        end = None if self._seconds is None else time.monotonic() + self._seconds
        while self._inputs is None or self.tried < self._inputs:
            if end is not None and time.monotonic() >= end:
                return
            self.tried += 1
            if self._only in (None, self.tried):
                yield Random(f"{self.seed}-{self.tried}")
            elif self._only is not None and self.tried > self._only:
                return


@contextmanager
def replayable(target: str, budget: Budget) -> Generator[None]:
    """A failure says which input it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"{target}: seed {budget.seed}, input {budget.tried}")
        raise


def memory() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
