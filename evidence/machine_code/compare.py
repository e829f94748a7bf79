"""Counts from machine code held to Nsight Compute's: `python -m evidence.machine_code.compare [topic ...]`.

Needs no GPU. For each launch in a topic's `ncu.json` (`tools.ncu`), the simulator's counts by PTX and those by machine
code (`warplab.estimating.machine_counts`) are set beside what ncu read. The figures go to machine_counts.json;
topics not asked for keep theirs. Prints a row for every launch, and the summary of all. `--kept`: prints what is kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools import ncu
from warpcourse.bench import timing
from warpcourse.bench.compared_launches import Launch, is_array
from warplab.compile.disassembler import program
from warplab.launch import simulate
from warplab.launch.launch_record import LaunchRecord

JSON = Path(__file__).with_name("machine_counts.json")
WITHIN, POINTS = 0.02, 0.01  # of the instructions, and of a warp's lanes


@dataclass(frozen=True)
class Figures:
    """Warp instructions, share of active lanes, branches and divergent branches of a launch."""

    instructions: float
    efficiency: float
    branches: float
    divergent: float


@dataclass(frozen=True)
class CountedLaunch:
    """One launch: what ncu read, what the simulator counts by PTX, and by machine code."""

    topic: str
    launch: str
    ncu: Figures
    ptx: Figures
    machine: Figures

    def off(self, which: str) -> float:
        """Return how far the instructions of `which` ("ptx" or "machine") are off, as a share of ncu's."""
        return getattr(self, which).instructions / self.ncu.instructions - 1

    def points(self, which: str) -> float:
        """Return how far the share of active lanes is off."""
        return getattr(self, which).efficiency - self.ncu.efficiency

    def same_branches(self, which: str) -> bool:
        """Return whether branches and divergent branches are those that ncu read, to the nearest whole number."""
        own = getattr(self, which)
        return round(own.branches) == self.ncu.branches and round(own.divergent) == self.ncu.divergent


def simulated(topic: str, launch: Launch) -> LaunchRecord:
    """Run a launch in the simulator on copies of its arguments."""
    arguments = tuple(x.copy() if is_array(x) else x for x in launch.arguments)
    return simulate.simulate(
        launch.kernel(), launch.grid, launch.block, arguments, shared_bytes=launch.shared_bytes, trace_warps=0
    )


def measured(topic: str, launch: Launch, read: dict[str, float]) -> CountedLaunch:
    """Compare one launch. `read`: what its ncu.json holds, with zeros."""
    from warplab.estimating.machine_counts import machine_counts

    record = simulated(topic, launch)
    counts, machine = record.counts, machine_counts(record)
    return CountedLaunch(
        topic,
        launch.name,
        Figures(
            read["warp_instructions"],
            read["threads_per_instruction"] / 32,
            read.get("branches", 0),
            read.get("divergent_branches", 0),
        ),
        Figures(counts.warp_instructions, counts.warp_efficiency or 0.0, counts.branches, counts.divergent_branches),
        Figures(
            machine.warp_instructions,
            machine.warp_efficiency or 0.0,
            machine.branches,
            machine.divergent_branches,
        ),
    )


def rows_of(topic: str) -> list[CountedLaunch]:
    """Compare every recorded launch of a topic."""
    recorded = ncu.recording(topic)
    return [
        measured(topic, launch, dict.fromkeys(recorded["counters"], 0) | recorded["launches"][launch.name]["counters"])
        for launch in ncu.launches(topic)
        if launch.name in recorded["launches"]
    ]


def recorded_topics() -> list[str]:
    """Return topics with an ncu.json."""
    return [topic for topic in ("evidence.counters", *ncu.topics()) if (ncu.folder(topic) / "ncu.json").exists()]


def load() -> tuple[dict[str, Any], list[CountedLaunch]]:
    """Read machine_counts.json: what is said about it, and its rows."""
    text = json.loads(JSON.read_text(encoding="utf-8"))
    rows = [
        CountedLaunch(topic, launch, *(Figures(*figures) for figures in three))
        for topic, launches in text["launches"].items()
        for launch, three in launches.items()
    ]
    return text, rows


def save(rows: Sequence[CountedLaunch]) -> None:
    """Write machine_counts.json, a line per launch."""
    launches: dict[str, dict[str, list]] = {}
    for row in rows:
        three = [[_short(value) for value in vars(figures).values()] for figures in (row.ncu, row.ptx, row.machine)]
        launches.setdefault(row.topic, {})[row.launch] = three
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "ptxas": _version(),
        "ncu": {
            topic: f"{r['device']}, ncu {r['ncu']}, {r['date']}" for topic in launches for r in [ncu.recording(topic)]
        },
    }
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    topics = []
    for topic, own in launches.items():
        lines = ",\n".join(f"   {json.dumps(name)}: {json.dumps(three)}" for name, three in own.items())
        topics.append(f"  {json.dumps(topic)}: {{\n{lines}\n  }}")
    parts.append(' "launches": {\n' + ",\n".join(topics) + "\n }")
    JSON.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _short(value: float) -> float:
    rounded = round(float(value), 5)
    return int(rounded) if rounded == int(rounded) else rounded


def _version() -> str:
    found = program("ptxas")
    text = subprocess.run([str(found), "--version"], capture_output=True, text=True, check=True).stdout
    return text.strip().splitlines()[-1]


def summary(rows: Sequence[CountedLaunch], which: str) -> tuple:
    """Return cells of a summary: within 2 %, mean and worst error, efficiency within a point, branches equal."""
    off = [row.off(which) for row in rows]
    return (
        f"{sum(abs(x) <= WITHIN for x in off)} of {len(rows)}",
        f"{100 * statistics.mean(map(abs, off)):.2f} %",
        f"{100 * max(off, key=abs):+.1f} %",
        f"{sum(abs(row.points(which)) <= POINTS for row in rows)}",
        f"{sum(row.same_branches(which) for row in rows)}",
    )


HEADER = (
    "launches of",
    "counted by",
    "within 2 %",
    "mean error",
    "worst",
    "efficiency within 1 point",
    "branches equal",
)


def summaries(rows: Sequence[CountedLaunch]) -> list[tuple]:
    """Return rows of the summary: before and after, by topic and in total."""
    topics = list(dict.fromkeys(row.topic for row in rows))
    result = []
    for topic in [*topics, "all"]:
        own = [row for row in rows if topic in (row.topic, "all")]
        result += [
            (topic, "PTX", *summary(own, "ptx")),
            (topic, "machine code", *summary(own, "machine")),
        ]
    return result


def cells(row: CountedLaunch) -> tuple:
    """Return a launch's row in the table of all."""
    return (
        row.launch,
        f"{row.ncu.instructions:,.0f}",
        f"{row.ptx.instructions:,.0f}",
        f"{row.machine.instructions:,.0f}",
        f"{100 * row.off('ptx'):+.1f} %",
        f"{100 * row.off('machine'):+.1f} %",
        f"{100 * row.ncu.efficiency:.1f} %",
        f"{100 * row.machine.efficiency:.1f} %",
        f"{row.ncu.branches:,.0f} / {row.ncu.divergent:,.0f}",
        f"{row.machine.branches:,.0f} / {row.machine.divergent:,.0f}",
    )


CELLS = (
    "launch",
    "ncu",
    "by PTX",
    "by machine code",
    "error by PTX",
    "by machine code",
    "lanes, ncu",
    "by machine code",
    "branches / divergent, ncu",
    "by machine code",
)


def main() -> int:
    """Compare, write machine_counts.json, print every launch."""
    parser = argparse.ArgumentParser(prog="python -m evidence.machine_code.compare", description=__doc__)
    parser.add_argument("topics", nargs="*", help=f"default: all, {', '.join(recorded_topics())}")
    parser.add_argument("--kept", action="store_true", help="print what is kept, and run nothing")
    arguments = parser.parse_args()
    old: dict[str, list[CountedLaunch]] = {}
    for row in load()[1] if JSON.exists() else []:
        old.setdefault(row.topic, []).append(row)
    shown = old
    if not arguments.kept:
        asked = [name if "." in name else ncu.find(name).topic for name in arguments.topics]
        shown = {topic: rows_of(topic) for topic in asked or recorded_topics()}
        old |= shown
        save([row for topic in recorded_topics() for row in old.get(topic, [])])
    for topic, own in shown.items():
        print(topic)
        print(timing.table(CELLS, [cells(row) for row in own]))
    print(timing.table(HEADER, summaries([row for own in old.values() for row in own])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
