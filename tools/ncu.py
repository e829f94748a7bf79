"""The simulator's counters held to Nsight Compute's: `python -m tools.ncu [topic ...]`.

A topic takes part with a file `kernels/TOPIC/launches.py` that holds LAUNCHES, a list of `Launch`. On a
machine with a GPU and `ncu` the launches run there under `ncu`, which gives `kernels/TOPIC/ncu.json`;
elsewhere the committed file is used. Then the same launches run on the simulator. Without topics all are compared,
and `docs/counters.md` gets the tables. The exit code is 1 when a counter differs by more than is allowed.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplab.bench import timing
from warplab.bench.compared_launches import Difference, Launch
from warplab.hardware import backend
from warplab.paths import COURSE
from warplab.simulator.count.counters import COUNTERS

# Counters that the hardware and the simulator must agree on, exactly unless a launch says why not.
EQUAL = (
    *(f"global_{op}_{what}" for op in ("load", "store") for what in ("requests", "sectors", "bytes")),
    *(f"shared_{op}_{what}" for op in ("load", "store", "atomic") for what in ("wavefronts", "conflicts")),
    *(f"shared_copy_{what}" for what in ("requests", "wavefronts")),
    *(f"global_atomic_{what}" for what in ("requests", "sectors")),
    *(f"local_{op}_requests" for op in ("load", "store")),
)
# Held to the hardware where a launch says how far; ptxas may unroll a loop once more, which leaves fewer of them.
BRANCHES = ("branches", "divergent_branches")
COMPARED = (*EQUAL, *BRANCHES)
EFFICIENCY = "warp_efficiency"
EFFICIENCY_WITHIN = 0.02  # share of a warp's lanes
# Read too, because they say what the assembler has made of the kernel.
ALSO = {
    "warp_instructions": "smsp__inst_executed.sum",
    "threads_an_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "threads_not_predicated_off": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
LABELS = {c.name: c.label for c in COUNTERS} | {EFFICIENCY: "warp efficiency"}


def topics() -> list[str]:
    """Names of the topics with a table of launches."""
    return sorted(path.parent.name for path in (COURSE / "kernels").glob("*/launches.py"))


def launches(topic: str) -> list[Launch]:
    """The table of a topic; raises ValueError when there is none or two launches share a name."""
    if topic not in topics():
        raise ValueError(f"kernels/{topic}/launches.py does not exist; topics with one: {', '.join(topics())}")
    table = importlib.import_module(f"kernels.{topic}.launches").LAUNCHES
    names = [launch.name for launch in table]
    if len(set(names)) != len(names):
        raise ValueError(f"two launches in kernels/{topic}/launches.py have the same name")
    return table


def simulated(launch: Launch) -> dict[str, float]:
    """The simulator's counters of a launch."""
    from warplab.launch import simulate

    # Copies, because results come back into NumPy arrays, and other launches may use them.
    arguments = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments)
    profile = simulate.simulate(launch.kernel(), launch.grid, launch.block, arguments, shared_bytes=launch.shared_bytes)
    return {**profile.counts.as_dict(), EFFICIENCY: profile.counts.warp_efficiency}


def run_on_gpu(launch: Launch) -> None:
    """Launches on the GPU, with the profiler on for this launch only."""
    import cupy

    compiled = launch.kernel()
    numba = hasattr(compiled, "__getitem__")
    for profiled in (False, True) if numba else (True,):  # Numba compiles at the first launch
        arguments = tuple(cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in launch.arguments)
        cupy.cuda.Device().synchronize()
        if profiled:
            cupy.cuda.profiler.start()
        if numba:
            compiled[launch.grid, launch.block, 0, launch.shared_bytes](*arguments)
        else:
            compiled(launch.grid, launch.block, arguments, shared_mem=launch.shared_bytes)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


def metrics() -> dict[str, str]:
    """Counter name → Nsight Compute metric (or a sum of several, "a + b"), of all that is read."""
    return {c.name: c.ncu for c in COUNTERS if c.name in COMPARED} | ALSO


def measured(topic: str) -> dict[str, Any]:
    """Runs a topic's launches under `ncu`; returns what `ncu.json` holds. RuntimeError when ncu fails."""
    table = launches(topic)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"]
        command += ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        command += ["--metrics", ",".join(dict.fromkeys(" + ".join(metrics().values()).split(" + ")))]
        command += [sys.executable, "-m", "tools.ncu", "--child", topic]
        done = subprocess.run(command, capture_output=True, text=True, cwd=COURSE)
        output = log.read_text() if log.exists() else ""
        if done.returncode:
            raise RuntimeError(
                f"ncu ended with code {done.returncode}:\n{output[-4000:]}\n{done.stdout}\n{done.stderr}"
            )
    rows = parse(output)
    if len(rows) != len(table):
        raise RuntimeError(f"ncu saw {len(rows)} launches instead of {len(table)}:\n{output[-4000:]}")
    about = timing.machine()
    version = (
        subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.split("Version ")[-1].split()[0]
    )
    return {
        "device": about["device"],
        "date": about["date"],
        "ncu": version,
        "launches": {
            launch.name: {"grid": launch.grid, "block": launch.block, "counters": row}
            for launch, row in zip(table, rows, strict=True)
        },
    }


def parse(output: str) -> list[dict[str, float]]:
    """Counters of each launch, in order, from ncu's raw metrics as CSV: names, units, then a row a launch."""
    lines = output.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise RuntimeError(f"there is no table in ncu's output:\n{output}")

    def number(row: dict[str, str], metric: str) -> float:
        value = float(row[metric].replace(",", ""))
        return int(value) if metric.endswith(".sum") else value

    rows = list(csv.DictReader(lines[first:]))[1:]
    return [
        {name: sum(number(row, m) for m in metric.split(" + ")) for name, metric in metrics().items()} for row in rows
    ]


def as_json(recorded: dict[str, Any]) -> str:
    """Text of `ncu.json`: a line a launch."""
    head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items() if key != "launches"]
    rows = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in recorded["launches"].items()]
    return "{\n " + ",\n ".join(head) + ',\n "launches": {\n' + ",\n".join(rows) + "\n }\n}\n"


def recording(topic: str) -> dict[str, Any]:
    """The committed counters of a topic; FileNotFoundError if there are none."""
    return json.loads((COURSE / "kernels" / topic / "ncu.json").read_text())


@dataclass(frozen=True)
class Comparison:
    """One counter of one launch on the hardware and on the simulator. `difference`: what the launch says about it."""

    launch: str
    counter: str
    ncu: float
    simulator: float
    difference: Difference | None = None

    @property
    def equal(self) -> bool:
        return self.ncu == self.simulator

    @property
    def apart(self) -> float:
        """The difference as a share of ncu's number; for the warp efficiency, itself a share, as it is."""
        if self.equal:
            return 0.0
        size = 1 if self.counter == EFFICIENCY else self.ncu
        return abs(self.simulator - self.ncu) / size if size else float("inf")

    @property
    def holds(self) -> bool:
        """Within what is allowed."""
        usual = {EFFICIENCY: EFFICIENCY_WITHIN, **dict.fromkeys(BRANCHES, math.inf)}.get(self.counter, 0)
        return self.apart <= (usual if self.difference is None else self.difference.within)


def compare(topic: str, recorded: dict[str, Any]) -> list[Comparison]:
    """Every counter in COMPARED and the warp efficiency of every launch, but for what is newer than the recording
    (`unrecorded`). ValueError when ncu.json does not fit the table of launches.
    """
    result = []
    for launch in launches(topic):
        entry = recorded["launches"].get(launch.name)
        if entry is None and recorded["launches"]:
            continue
        if entry is None or [tuple(entry["grid"]), tuple(entry["block"])] != [launch.grid, launch.block]:
            raise ValueError(
                f"kernels/{topic}/ncu.json does not hold the launch {launch.name!r} as it is now; "
                "run `make compare-ncu` on a machine with a GPU"
            )
        counts = simulated(launch)
        read = {**entry["counters"], EFFICIENCY: entry["counters"]["threads_an_instruction"] / 32}
        result += [
            Comparison(launch.name, name, read[name], counts[name], launch.allowed(name))
            for name in (*COMPARED, EFFICIENCY)
            if name in read
        ]
    return result


def unrecorded(topic: str, recorded: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Launches and counters of today that the recording, being older, lacks: the next `make compare-ncu` on a machine
    with a GPU brings them."""
    held = recorded["launches"]
    counters = next(iter(held.values()))["counters"] if held else {}
    return [launch.name for launch in launches(topic) if launch.name not in held], [
        name for name in COMPARED if name not in counters
    ]


def text(comparisons: Iterable[Comparison]) -> str:
    """Comparisons as a table."""
    return timing.table(
        ("launch", "counter", "ncu", "simulator", "holds"),
        [(c.launch, LABELS[c.counter], c.ncu, c.simulator, c.holds) for c in comparisons],
    )


def main() -> int:
    """Returns the exit code: 0 when all counters hold, 1 when one differs, 2 with nothing to compare."""
    from tools import ncu_page

    parser = argparse.ArgumentParser(prog="python -m tools.ncu", description=__doc__)
    parser.add_argument("topics", nargs="*", help="folders under kernels/ (default: all that have a launches.py)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        for launch in launches(arguments.topics[0]):
            run_on_gpu(launch)
        return 0
    results: dict[str, tuple[dict[str, Any], list[Comparison]]] = {}
    for topic in arguments.topics or topics():
        path = COURSE / "kernels" / topic / "ncu.json"
        if backend.name() == "gpu" and shutil.which("ncu"):
            path.write_text(as_json(measured(topic)))
        elif not path.exists():
            print(f"There is no GPU with ncu here, and {path} does not exist.", file=sys.stderr)
            return timing.NO_GPU
        recorded = recording(topic)
        comparisons = compare(topic, recorded)
        results[topic] = recorded, comparisons
        print(f"{topic}: ncu on {recorded['device']}, {recorded['date']}")
        print(ncu_page.summary(comparisons))
        apart = [c for c in comparisons if not (c.equal or (c.holds and c.difference is None))]
        print(text(apart) if apart else "All counters hold.")
    if not arguments.topics:
        ncu_page.write(results)
    figures = {
        topic: {"compared": len(comparisons), "differing": sum(not c.holds for c in comparisons)}
        for topic, (_, comparisons) in results.items()
    }
    print(timing.last_line("compare-ncu", figures, next(iter(results.values()))[0]))
    return int(any(f["differing"] for f in figures.values()))


if __name__ == "__main__":
    raise SystemExit(main())
