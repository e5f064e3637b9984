"""Fuzzes the borders of the program for a while: `python -m tests.fuzz --seconds 60 [TARGET …]`.

Each target has as many seconds. A failure ends with its seed and the number of its input: `--seed N --input M TARGET`
gives that input again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback

from tests.fuzz.budget import Budget
from tests.fuzz.targets import TARGETS, run


def main() -> int:
    """Runs the targets; 1 when one of them found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("target", nargs="*", metavar="TARGET", help=f"one of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=10, help="for each target (10)")
    parser.add_argument("--seed", type=int, help="default: a new one, printed")
    parser.add_argument("--input", type=int, help="only the input of this number, with the state of no others")
    given = parser.parse_args()
    if unknown := set(given.target) - TARGETS.keys():
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    logging.disable(logging.CRITICAL)  # what is refused is logged, and most is refused
    seed = int(time.time()) if given.seed is None else given.seed
    good = True
    for name in given.target or TARGETS:
        budget = Budget(seed, seconds=given.seconds, only=given.input)
        try:
            grown = run(name, budget)
        except Exception:  # noqa: BLE001 - each target is tried; what was found is printed
            traceback.print_exc()
            good = False
            grown = 0
        print(f"{name}: {budget.tried:,} inputs, seed {seed}, {grown / 2**20:+.1f} MiB", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
