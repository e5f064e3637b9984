"""What a real core was seen to do: recorded traffic and results, kept compressed in `tests/data/wire`."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

__all__ = ["WIRE", "frames", "oracle"]

WIRE = Path(__file__).parent / "data" / "wire"


def oracle(name: str) -> dict[str, Any]:
    """The table `name`: `markdown`, `json-length`, `valid-names`, `size-limits` or `shapes`."""
    packed = WIRE / f"{name}.json.xz"
    text = lzma.decompress(packed.read_bytes()) if packed.exists() else (WIRE / f"{name}.json").read_bytes()
    return json.loads(text)


def frames(name: str) -> list[dict[str, Any]]:
    """The frames of the recording `name`, such as `04-send`, in the order in which they were logged."""
    text = lzma.decompress((WIRE / f"{name}.jsonl.xz").read_bytes()).decode()
    return [json.loads(line) for line in text.split("\n") if line]
