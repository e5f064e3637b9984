"""`python -m benchmarks [--quick] [--json] [NAME…]`: each figure with its bar; exit code 1 when a bar is missed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Protocol

from benchmarks.agent import approve_to_send, event_to_result, start_to_listening
from benchmarks.crowd import crowded_server
from benchmarks.listener import held_calls, list_per_second
from benchmarks.rooms import (
    rooms_large,
    rooms_memory,
    rooms_posting,
    rooms_reading,
    rooms_start,
    rooms_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Figure


class Benchmark(Protocol):
    """Measures and yields figures; `quick` means less exact, in a few seconds."""

    __name__: str

    def __call__(self, *, quick: bool) -> Iterator[Figure]: ...


BENCHMARKS: list[Benchmark] = [
    list_per_second,
    held_calls,
    approve_to_send,
    event_to_result,
    start_to_listening,
    crowded_server,
    rooms_start,
    rooms_posting,
    rooms_reading,
    rooms_large,
    rooms_waiting,
    rooms_memory,
]


def main() -> int:
    """Runs the benchmarks that were asked for, or all."""
    names = {benchmark.__name__: benchmark for benchmark in BENCHMARKS}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures what the project promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    bars: dict[str, bool] = {}
    for name in options.names or names:
        if not options.json:
            print(f"\n# {name}: {names[name].__doc__}", flush=True)
        for figure in names[name](quick=options.quick):
            print(json.dumps(figure.as_json(), ensure_ascii=False) if options.json else figure, flush=True)
            if figure.bar is not None:
                bars[figure.name] = figure.bar.met
    missed = [name for name, met in bars.items() if not met]
    if not options.json:
        print("\n".join(["", f"{len(bars) - len(missed)} of {len(bars)} bars met.", *(f"MISSED: {m}" for m in missed)]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
