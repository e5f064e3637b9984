"""Writes docs/reliability.md: the load that is held, the faults that are survived, the inputs that were tried.

`python -m benchmarks.reliability` writes the page from the files in docs/reliability; `--check` only says whether it is
out of date (exit code 1). `--measure [load] [faults] [inputs]` first measures these parts (default: all) and keeps what
was found in docs/reliability/measured.json; exit code 1 when a bar is missed or a test fails.

docs/reliability/faults.json and inputs.json are lists of `{"what": …, "shown": …, "tests": […]}`: a row of the page and
the tests behind it, as pytest takes them. For the rows of inputs hypothesis tells how many were tried; where a test
counts by itself, it reports a property `inputs` (`record_property("inputs", 5000)`). With `"seconds": N` its tests are
told to go on for so long (`FUZZ_SECONDS`). Each is run in hypothesis' profile `thorough`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from benchmarks.__main__ import BENCHMARKS
from benchmarks.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DATA", "PAGE", "PARTS", "main", "named_tests", "page", "read"]

Row = dict[str, Any]

PAGE = ROOT / "docs" / "reliability.md"
DATA = ROOT / "docs" / "reliability"
PARTS = ("load", "faults", "inputs")

_HEAD = """# Reliability in figures

Written by `make reliability`, which measures everything again; do not edit. The rows come from `docs/reliability`.
"""
_TITLES = {
    "load": "Load that is held",
    "faults": "Faults that are survived",
    "inputs": "Inputs that were tried",
}
_TRIED = re.compile(r"- (\d+) passing")


def main() -> int:
    """Measures what was asked for, writes or checks the page; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--measure", nargs="*", choices=PARTS, help="measure these parts first (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when the page is out of date")
    options = parser.parse_args()
    good = True
    if options.measure is not None:
        for part in options.measure or PARTS:
            found, fine = _MEASURES[part]()
            good = good and fine
            measured = read("measured") | {part: found}
            (DATA / "measured.json").write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    text = page()
    if options.check:
        stale = not PAGE.exists() or PAGE.read_text() != text
        if stale:
            print("docs/reliability.md is out of date: python -m benchmarks.reliability", file=sys.stderr)
        return int(stale)
    PAGE.write_text(text)
    return 0 if good else 1


def read(name: str) -> Any:
    """The data file `name` of docs/reliability."""
    path = DATA / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def page() -> str:
    """The page, from the data files."""
    measured = read("measured")
    parts = [_HEAD, *(_section(part, measured.get(part, {})) for part in PARTS)]
    return "\n".join(parts)


def _section(part: str, measured: Row) -> str:
    rows = _load_rows(measured) if part == "load" else _test_rows(part, measured)
    when = f"Measured {measured['at']} on {measured['machine']}.\n" if measured else "Not measured yet.\n"
    return "\n".join([f"## {_TITLES[part]}\n", when, *rows, ""])


def _load_rows(measured: Row) -> list[str]:
    lines = ["| What | Median | p99 | Bar |", "|---|---|---|---|"]
    for figure in measured.get("figures", ()):
        unit, bar = figure["unit"], figure["bar"]
        limit = ""
        if bar:
            sign, of = "≥" if bar["at_least"] else "≤", bar["of"]
            limit = f"{of} {_short(bar['value'])} {sign} {bar['limit']:g} {bar['unit']}".strip()
        name = figure["name"] + (f" ({figure['note']})" if figure["note"] else "")
        lines.append(f"| {name} | {_short(figure['median'])} {unit} | {_short(figure['p99'])} {unit} | {limit} |")
    return lines


def _test_rows(part: str, measured: Row) -> list[str]:
    count = "Tests passed" if part == "faults" else "Inputs"
    lines = [f"| What | What is shown | {count} |", "|---|---|---|"]
    found = measured.get("counts", {})
    total = sum(found.get(row["what"], 0) for row in read(part))
    lines += [f"| {row['what']} | {row['shown']} | {found.get(row['what'], 0):,} |" for row in read(part)]
    return [*lines, f"| All | | {total:,} |"]


def _measure_load() -> tuple[Row, bool]:
    figures = [figure for benchmark in BENCHMARKS for figure in benchmark(quick=False)]
    for figure in figures:
        print(figure, flush=True)
    return _stamped(figures=[figure.as_json() for figure in figures]), all(f.bar is None or f.bar.met for f in figures)


def _measure_faults() -> tuple[Row, bool]:
    return _run_tests("faults", _passed)


def _measure_inputs() -> tuple[Row, bool]:
    return _run_tests("inputs", _tried, "--hypothesis-show-statistics", "--hypothesis-profile=thorough")


def _run_tests(part: str, count: Callable[[str, ET.Element], int], *options: str) -> tuple[Row, bool]:
    counts: dict[str, int] = {}
    good = True
    for row in read(part):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                f"--junitxml={report}",
                "-o",
                "junit_family=xunit1",
                *options,
            ]
            env = {**os.environ, "FUZZ_SECONDS": str(row.get("seconds", 0))}
            done = subprocess.run(
                [*command, *row["tests"]], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False
            )
            counts[row["what"]] = count(done.stdout, ET.parse(report).getroot()) if report.exists() else 0
        good = good and done.returncode == 0
        if done.returncode:
            print(done.stdout, file=sys.stderr)
        print(f"{row['what']}: {counts[row['what']]}" + ("" if done.returncode == 0 else " FAILED"), flush=True)
    return _stamped(counts=counts), good


def _passed(_printed: str, report: ET.Element) -> int:
    return sum(not any(True for _ in case) or _properties_only(case) for case in report.iter("testcase"))


def _properties_only(case: ET.Element) -> bool:
    return all(part.tag in ("properties", "system-out", "system-err") for part in case)


def _tried(printed: str, report: ET.Element) -> int:
    told = (p.get("value", "0") for p in report.iter("property") if p.get("name") == "inputs")
    return sum(map(int, _TRIED.findall(printed))) + sum(map(int, told))


def _stamped(**found: Any) -> Row:
    cores = os.cpu_count()
    machine = f"{platform.system()} {platform.machine()}, {cores} processors, Python {platform.python_version()}"
    return {"at": datetime.now(UTC).date().isoformat(), "machine": machine, **found}


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


_MEASURES: dict[str, Callable[[], tuple[Row, bool]]] = {
    "load": _measure_load,
    "faults": _measure_faults,
    "inputs": _measure_inputs,
}


def named_tests() -> list[str]:
    """Every test that a row names."""
    return [test for part in ("faults", "inputs") for row in read(part) for test in row["tests"]]


if __name__ == "__main__":
    sys.exit(main())
