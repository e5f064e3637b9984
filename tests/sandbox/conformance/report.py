"""Print where the simulated core differs from the recordings: `python -m tests.sandbox.conformance.report [NAME…]`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.recorded import WIRE
from tests.sandbox.conformance.replayed import replayed

if TYPE_CHECKING:
    from tests.sandbox.conformance.replay import Outcome


def _shown(value: Any, width: int) -> str:
    text = (
        value
        if isinstance(value, str) and value in ("missing", "no such key")
        else json.dumps(value, ensure_ascii=False)
    )
    return text if len(text) <= width else text[: width - 1] + "…"


def _print(outcome: Outcome, limit: int, width: int) -> None:
    steps = Counter(f.step for f in outcome.findings)
    print(
        f"== {outcome.recording.name}: {outcome.answers} answers and {outcome.events} events compared, "
        f"{len(outcome.findings)} differences, {len(outcome.refused)} refused"
    )
    for step, count in steps.items():
        print(f" -- {step or '(before the first step)'}: {count}")
        for f in [f for f in outcome.findings if f.step == step][:limit]:
            print(f"    {outcome.recording.name}:{f.line} {f.core} {f.what}")
            print(f"        {f.path}: expected {_shown(f.recorded, width)}, got {_shown(f.simulated, width)}")
    for act, reason in outcome.refused:
        print(f"    refused :{act.line} {act.core} {(act.command or '')[:60]!r}: {reason}")


def main() -> None:
    """Replay the named recordings (all without names) and print the differences by step."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=int, default=8, help="differences shown of each step")
    parser.add_argument("--width", type=int, default=240, help="characters shown of each value")
    options = parser.parse_args()
    known = sorted(path.name.removesuffix(".jsonl.xz") for path in WIRE.glob("*.jsonl.xz"))
    for name in known:
        if not options.names or any(name.startswith(n) for n in options.names):
            _print(replayed(name), options.limit, options.width)


if __name__ == "__main__":
    main()
