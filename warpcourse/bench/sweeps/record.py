"""Record the microbenchmarks from which estimates take their rates, on a GPU.

    python -m warpcourse.bench.sweeps.record [--only KEY ...] [--to FILE]

Writes warplab/estimating/sweeps.json, of another card than the H100 sweeps_CARD.json beside it, sweep by sweep, each
with its GPU and date; `--only KEY` measures some and keeps the others, `--to FILE` writes elsewhere. Some 90 seconds.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warpcourse.bench import timing
from warpcourse.bench.lab import find
from warpcourse.bench.sweeps import atomics, blocks, caches, instructions
from warpcourse.paths import COURSE
from warplab.hardware.cards import card_of

RECORDED = COURSE / "warplab" / "estimating" / "sweeps.json"  # an H100's
OF_THE_LAB = ("working_sets", "bytes_in_flight", "latencies", "bank_conflicts")  # lab 02's; an H100's are its own


def of_the_lab(name: str, *sizes: int) -> Iterator[dict[str, Any]]:
    """Measure a sweep of lab 02."""
    found = find("memory_access").module("measurements").MEASUREMENTS[name](*sizes)
    yield from found["rows"] if isinstance(found, dict) else found


SWEEPS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "global_atomics": atomics.global_atomics,
    "atomic_places": atomics.places,
    "shared_atomics": atomics.shared_atomics,
    "l1_hits": caches.l1_hits,
    "conflicts": caches.conflicts,
    "scattered": caches.scattered,
    "chains": instructions.chains,
    "latencies": instructions.latencies,
    "loops": instructions.loops,
    "tiles": instructions.tiles,
    "barriers": blocks.barriers,
    "uneven": blocks.uneven,
    "starts": blocks.starts,
    "gaps": blocks.gaps,
    "local_memory": caches.local_memory,
    "clocks": blocks.clocks,
    "bulk_copies": caches.bulk_copies,
    "in_order": caches.in_order,
    "spread": caches.spread,
    "streams": caches.streams,
    "walks": caches.walks,
    "chase": functools.partial(of_the_lab, "latencies", 2**23, 2**33),
    **{f"lab 02, {name}": functools.partial(of_the_lab, name) for name in OF_THE_LAB},
}


def file_of(device: str) -> Path:
    """Name the file of a GPU's sweeps, by the name that its driver gives it."""
    known = card_of(device)
    name = device.split()[-1] if known is None else known.name
    return RECORDED if name == "H100" else RECORDED.with_name(f"sweeps_{name.lower()}.json")


def write(path: Path, key: str, rows: list[dict[str, Any]], machine: Mapping[str, Any]) -> None:
    """Put one sweep into the file, a row on each line; all others stay."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known[key] = {"machine": dict(machine), "rows": timing.rounded(rows)}
    parts = []
    for name, entry in known.items():
        lines = ",\n".join(f"   {json.dumps(row)}" for row in entry["rows"])
        parts.append(
            f' {json.dumps(name)}: {{\n  "machine": {json.dumps(entry["machine"])},\n  "rows": [\n{lines}\n  ]\n }}'
        )
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    os.replace(unfinished, path)


def main() -> int:
    """Measure, and say how long each sweep took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", choices=SWEEPS, default=list(SWEEPS), metavar="KEY", help="of these sweeps"
    )
    parser.add_argument("--to", type=Path, help="the file to write, if not the card's")
    arguments = parser.parse_args()
    timing.require_gpu("This sweep")
    machine, failed = timing.machine(), []
    path = arguments.to or file_of(machine["device"])
    for key in arguments.only:
        began, rows = time.perf_counter(), []
        try:
            for row in SWEEPS[key]():
                rows.append(row)
        except Exception as error:  # the sweeps after it are still worth having
            failed.append(key)
            print(f"{key} ended after {len(rows)} rows: {type(error).__name__}: {error}", flush=True)
        if rows:
            write(path, key, rows, machine)
        print(f"{key}: {len(rows)} rows in {time.perf_counter() - began:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
