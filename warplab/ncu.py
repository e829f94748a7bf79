"""The simulator's counters held to Nsight Compute's: `python -m warplab.ncu [topic ...]`.

A topic takes part with a file `kernels/TOPIC/launches.py` that holds LAUNCHES, a list of `Launch`. On a
machine with a GPU and `ncu` the launches run there under `ncu`, which gives `kernels/TOPIC/ncu.json`;
elsewhere the committed file is used. Then the same launches run on the simulator, and `docs/counters_TOPIC.md`
gets the comparison. The exit code is 1 when a counter differs.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import warplab
from warplab import backend, benchmark, tables
from warplab.simulator.counters import COUNTERS

ROOT = Path(warplab.__file__).resolve().parent.parent
# Counters that the hardware and the simulator must agree on, exactly.
EQUAL = (
    "global_load_requests",
    "global_load_sectors",
    "global_load_bytes",
    "global_store_requests",
    "global_store_sectors",
    "global_store_bytes",
)
# Read too, because they say how the hardware splits accesses: not counted by the simulator under these names.
ALSO = {
    "global_load_instructions": "smsp__inst_executed_op_global_ld.sum",
    "global_store_instructions": "smsp__inst_executed_op_global_st.sum",
    "sass_warp_instructions": "smsp__inst_executed.sum",
}


@dataclass(frozen=True)
class Launch:
    """One launch to compare.

    `kernel()`: the kernel object (Numba dispatcher or CuPy function). `arguments`: NumPy scalars, and NumPy
    arrays, which are copied to the device for the launch.
    """

    name: str
    kernel: Callable[[], Any]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple
    shared_bytes: int = 0


def topics() -> list[str]:
    """Names of the topics with a table of launches."""
    return sorted(path.parent.name for path in (ROOT / "kernels").glob("*/launches.py"))


def launches(topic: str) -> list[Launch]:
    """The table of a topic; raises ValueError when there is none or two launches share a name."""
    if topic not in topics():
        raise ValueError(f"kernels/{topic}/launches.py does not exist; topics with one: {', '.join(topics())}")
    table = importlib.import_module(f"kernels.{topic}.launches").LAUNCHES
    names = [launch.name for launch in table]
    if len(set(names)) != len(names):
        raise ValueError(f"two launches in kernels/{topic}/launches.py have the same name")
    return table


def simulated(launch: Launch) -> dict[str, int]:
    """The simulator's counters of a launch."""
    from warplab import kernel

    profile = kernel.simulate(
        launch.kernel(), launch.grid, launch.block, launch.arguments, shared_bytes=launch.shared_bytes
    )
    return profile.counts.as_dict()


def run_on_gpu(launch: Launch) -> None:
    """Launches on the GPU, with the profiler on for this launch only."""
    import cupy

    arguments = tuple(cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in launch.arguments)
    compiled = launch.kernel()
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    if hasattr(compiled, "__getitem__"):  # a Numba dispatcher
        compiled[launch.grid, launch.block, 0, launch.shared_bytes](*arguments)
    else:
        compiled(launch.grid, launch.block, arguments, shared_mem=launch.shared_bytes)
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.stop()


def metrics() -> dict[str, str]:
    """Counter name → Nsight Compute metric, of all that is read."""
    return {c.name: c.ncu for c in COUNTERS if c.name in EQUAL} | ALSO


def measured(topic: str) -> dict[str, Any]:
    """Runs a topic's launches under `ncu`; returns what `ncu.json` holds. RuntimeError when ncu fails."""
    table = launches(topic)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [
            "ncu",
            "--clock-control",
            "none",
            "--profile-from-start",
            "off",
            "--target-processes",
            "all",
        ]
        command += ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        command += ["--metrics", ",".join(metrics().values())]
        command += [sys.executable, "-m", "warplab.ncu", "--child", topic]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        output = log.read_text() if log.exists() else ""
        if done.returncode:
            raise RuntimeError(f"ncu ended with code {done.returncode}:\n{output}\n{done.stdout}\n{done.stderr}")
    rows = parse(output)
    if len(rows) != len(table):
        raise RuntimeError(f"ncu saw {len(rows)} launches instead of {len(table)}:\n{output}")
    about = benchmark.machine()
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


def parse(output: str) -> list[dict[str, int]]:
    """Counters of each launch, in order, from ncu's raw metrics as CSV: names, units, then a row a launch."""
    lines = output.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise RuntimeError(f"there is no table in ncu's output:\n{output}")
    rows = list(csv.DictReader(lines[first:]))[1:]
    return [{name: int(row[metric].replace(",", "")) for name, metric in metrics().items()} for row in rows]


@dataclass(frozen=True)
class Comparison:
    """One counter of one launch on the hardware and on the simulator."""

    launch: str
    counter: str
    ncu: int
    simulator: int

    @property
    def equal(self) -> bool:
        return self.ncu == self.simulator


def compare(topic: str, recorded: dict[str, Any]) -> list[Comparison]:
    """Every counter in EQUAL of every launch; ValueError when ncu.json does not fit the table of launches."""
    result = []
    for launch in launches(topic):
        entry = recorded["launches"].get(launch.name)
        if entry is None or [tuple(entry["grid"]), tuple(entry["block"])] != [launch.grid, launch.block]:
            raise ValueError(
                f"kernels/{topic}/ncu.json does not hold the launch {launch.name!r} as it is now; "
                "run `make compare-ncu` on a machine with a GPU"
            )
        counts = simulated(launch)
        result += [Comparison(launch.name, name, entry["counters"][name], counts[name]) for name in EQUAL]
    return result


def text(comparisons: Iterable[Comparison]) -> str:
    """The comparison as a table."""
    labels = {c.name: c.label for c in COUNTERS}
    return benchmark.table(
        ("launch", "counter", "ncu", "simulator", "equal"),
        [(c.launch, labels[c.counter], c.ncu, c.simulator, c.equal) for c in comparisons],
    )


def document(topic: str, recorded: dict[str, Any], comparisons: list[Comparison]) -> str:
    """The comparison as Markdown: one row a launch, each cell the common value, or both where they differ."""
    labels = {c.name: c.label for c in COUNTERS}
    head = [labels[name] for name in EQUAL]
    lines = [
        f"# Counters of `kernels/{topic}`: Nsight Compute and simulator",
        "",
        f"Written by `make compare-ncu`. Hardware: {recorded['device']}, ncu {recorded['ncu']}, {recorded['date']}.",
        "One number in a cell: ncu and the simulator agree. Two: ncu / **simulator**.",
        "The last two columns are load and store instructions by warp, which only ncu counts here.",
        "",
        f"| launch | grid | block | {' | '.join(head)} | load instructions | store instructions |",
        "| --- | ---: | ---: |" + " ---: |" * (len(EQUAL) + 2),
    ]
    for name, entry in recorded["launches"].items():
        cells = [f"{c.ncu}" if c.equal else f"{c.ncu} / **{c.simulator}**" for c in comparisons if c.launch == name]
        extra = [str(entry["counters"][f"global_{kind}_instructions"]) for kind in ("load", "store")]
        shape = [f" {tables.TIMES} ".join(str(k) for k in entry[what] if k > 1) or "1" for what in ("grid", "block")]
        lines.append(f"| {' | '.join([name, *shape, *cells, *extra])} |")
    differing = sum(not c.equal for c in comparisons)
    lines += ["", f"{len(comparisons)} counters compared, {differing} differ."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Returns the exit code: 0 when all counters are equal, 1 when one differs, 2 with nothing to compare."""
    parser = argparse.ArgumentParser(prog="python -m warplab.ncu", description=__doc__)
    parser.add_argument("topics", nargs="*", help="folders under kernels/ (default: all that have a launches.py)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        for launch in launches(arguments.topics[0]):
            run_on_gpu(launch)
        return 0
    figures, about = {}, {}
    for topic in arguments.topics or topics():
        path = ROOT / "kernels" / topic / "ncu.json"
        if backend.name() == "gpu" and shutil.which("ncu"):
            path.write_text(json.dumps(measured(topic), indent=1) + "\n")
        elif not path.exists():
            print(f"There is no GPU with ncu here, and {path} does not exist.", file=sys.stderr)
            return benchmark.NO_GPU
        about = json.loads(path.read_text())
        comparisons = compare(topic, about)
        (ROOT / "docs").mkdir(exist_ok=True)
        (ROOT / "docs" / f"counters_{topic}.md").write_text(document(topic, about, comparisons))
        print(f"{topic}: ncu on {about['device']}, {about['date']}")
        print(text(comparisons))
        figures[topic] = {"compared": len(comparisons), "differing": sum(not c.equal for c in comparisons)}
    print(benchmark.last_line("compare-ncu", figures, about))
    return int(any(f["differing"] for f in figures.values()))


if __name__ == "__main__":
    raise SystemExit(main())
