"""The simulator's counters held to Nsight Compute's: `python -m tools.ncu [topic ...]`.

A topic is a lab with launches (`Lab.launches`), or the dotted name of a package whose module `launches` has some. On a
machine with a GPU and `ncu` the launches run there under `ncu`, which gives ncu.json beside the kernels; elsewhere the
committed file is used. Then the same launches run in the simulator, and counters.md is written beside the kernels. The
exit code is 1 when a counter differs by more than is allowed.
"""

import argparse
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpcourse.bench import lab_kernels, nsight_compute, timing
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch, is_array
from warpcourse.bench.lab import find, labs
from warpcourse.paths import COURSE
from warpcourse.processes import isolated_call
from warplab.hardware import backend
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
EFFICIENCY_WITHIN = 0.02  # share of a warp's lanes
# Read too, because they say what the assembler has made of the kernel.
ALSO = {
    "warp_instructions": "smsp__inst_executed.sum",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "threads_not_predicated_off": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
LABELS = {c.name: c.label for c in COUNTERS} | {EFFICIENCY: "warp efficiency"}


def topics() -> list[str]:
    """Return the topics of the labs that have launches."""
    return [lab.topic for lab in labs() if lab.launches]


def folder(topic: str) -> Path:
    """Return where a topic's launches are, and what was recorded and written of them."""
    return COURSE / topic.replace(".", "/") if "." in topic else find(topic).folder


def title(topic: str) -> str:
    """Return what pages call a topic."""
    if "." in topic:
        return "the simulator"
    lab = find(topic)
    return f"lab {lab.number:02}, {lab.title}"


def launches(topic: str) -> list[Launch]:
    """Return the table of a topic; raise ValueError when there is none or two launches share a name."""
    if "." in topic:
        table = importlib.import_module(f"{topic}.launches").LAUNCHES
    elif topic not in topics():
        raise ValueError(f"there are no launches of {topic!r}; topics with some: {', '.join(topics())}")
    else:
        lab = find(topic)
        table = lab.module(str(lab.launches)).LAUNCHES
    names = [launch.name for launch in table]
    if len(set(names)) != len(names):
        raise ValueError(f"two launches of {topic} have the same name; rename one")
    return table


def simulated(launch: Launch) -> dict[str, float]:
    """Return the simulator's counters of a launch, made on it."""
    from warplab.launch import simulate

    # Copies, because results come back into NumPy arrays, and other launches may use them.
    arguments = tuple(x.copy() if is_array(x) else x for x in launch.arguments)
    profile = simulate.simulate(launch.kernel(), launch.grid, launch.block, arguments, shared_bytes=launch.shared_bytes)
    return {**profile.counts.as_dict(), EFFICIENCY: profile.counts.warp_efficiency or 0.0}


def run_on_gpu(launch: Launch) -> None:
    """Launch on the GPU, with the profiler on for this launch only."""
    import cupy

    compiled = launch.kernel()
    for profiled in (False, True) if lab_kernels.is_numba(compiled) else (True,):  # Numba compiles at the first launch
        arguments = tuple(cupy.asarray(x) if is_array(x) else x for x in launch.arguments)
        cupy.cuda.Device().synchronize()
        if profiled:
            cupy.cuda.profiler.start()
        lab_kernels.launch(compiled, launch.grid, launch.block, arguments, launch.shared_bytes)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


def metrics() -> dict[str, str]:
    """Return counter name → Nsight Compute metric (or a sum of several, "a + b"), of all that is read."""
    return {c.name: c.ncu for c in COUNTERS if c.name in COMPARED} | ALSO


def measured(topic: str) -> dict[str, Any]:
    """Run a topic's launches under `ncu`; return what `ncu.json` holds. RuntimeError when ncu fails."""
    table = launches(topic)
    names = metrics()
    command = isolated_call.command("tools.ncu:run_topic_on_gpu", topic)
    found = nsight_compute.profiled(command, dict.fromkeys(" + ".join(names.values()).split(" + ")))
    if len(found) != len(table):
        raise RuntimeError(f"ncu saw {len(found)} launches instead of {len(table)}: {[row.kernel for row in found]}")
    about = timing.machine()
    return {
        "device": about["device"],
        "date": about["date"],
        "ncu": nsight_compute.version(),
        "counters": list(names),
        "launches": {
            launch.name: {"grid": launch.grid, "block": launch.block, "counters": counters(row)}
            for launch, row in zip(table, found, strict=True)
        },
    }


def run_topic_on_gpu(topic: str) -> None:
    """Run every launch of a topic, for ncu."""
    for launch in launches(topic):
        run_on_gpu(launch)


def counters(launch: nsight_compute.ProfiledLaunch) -> dict[str, float]:
    """Return counters that are not 0, by name, from the metrics of a launch under ncu."""

    def value(metric: str) -> float:
        return int(launch.metrics[metric]) if metric.endswith(".sum") else launch.metrics[metric]

    found = {name: sum(value(m) for m in metric.split(" + ")) for name, metric in metrics().items()}
    return {name: number for name, number in found.items() if number}


def as_json(recorded: dict[str, Any]) -> str:
    """Return the text of `ncu.json`: a line per launch."""
    head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items() if key != "launches"]
    rows = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in recorded["launches"].items()]
    return "{\n " + ",\n ".join(head) + ',\n "launches": {\n' + ",\n".join(rows) + "\n }\n}\n"


def recording(topic: str) -> dict[str, Any]:
    """Return the committed counters of a topic: those read are listed under `counters`, and a launch holds those that
    are not 0. FileNotFoundError if there are none.
    """
    return json.loads((folder(topic) / "ncu.json").read_text())


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
    """Return every counter in COMPARED and the warp efficiency of every launch, but for what is newer than the
    recording (`unrecorded`). ValueError when ncu.json does not fit the table of launches."""
    result = []
    for launch in launches(topic):
        entry = recorded["launches"].get(launch.name)
        if entry is None and recorded["launches"]:
            continue
        if entry is None or [tuple(entry["grid"]), tuple(entry["block"])] != [launch.grid, launch.block]:
            raise ValueError(
                f"the ncu.json of {topic} does not hold the launch {launch.name!r} as it is now; "
                f"run `python -m tools.ncu {topic}` on a machine with a GPU"
            )
        counts = simulated(launch)
        read = dict.fromkeys(recorded["counters"], 0) | entry["counters"]
        read[EFFICIENCY] = read["threads_per_instruction"] / 32
        result += [
            Comparison(launch.name, name, read[name], counts[name], launch.allowed(name))
            for name in (*COMPARED, EFFICIENCY)
            if name in read
        ]
    return result


def unrecorded(topic: str, recorded: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return launches and counters of today that the recording, being older, lacks: the next `make compare-ncu` on a
    machine with a GPU brings them."""
    missing = [launch.name for launch in launches(topic) if launch.name not in recorded["launches"]]
    return missing, [name for name in COMPARED if name not in recorded["counters"]]


def text(comparisons: Iterable[Comparison]) -> str:
    """Return comparisons as a table."""
    return timing.table(
        ("launch", "counter", "ncu", "simulator", "holds"),
        [(c.launch, LABELS[c.counter], c.ncu, c.simulator, c.holds) for c in comparisons],
    )


def main() -> int:
    """Return the exit code: 0 when all counters hold, 1 when one differs, 2 with nothing to compare."""
    from tools import ncu_page

    parser = argparse.ArgumentParser(prog="python -m tools.ncu", description=__doc__)
    parser.add_argument("topics", nargs="*", help=f"default: all, {', '.join(topics())}")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    recorded: dict[str, Any] = {}
    asked = [name if "." in name else find(name).topic for name in arguments.topics] or topics()
    if backend.name() == "gpu" and shutil.which("ncu"):
        for topic in asked:
            (folder(topic) / "ncu.json").write_text(as_json(measured(topic)))
    if backend.name() == "gpu":  # launches may hold arrays and tensor maps of a device: here of the simulator's
        command = [sys.executable, "-m", "tools.ncu", *asked]
        return subprocess.run(command, env=os.environ | {"WARPLAB_BACKEND": "simulator"}, cwd=COURSE).returncode
    for topic in asked:
        path = folder(topic) / "ncu.json"
        if not path.exists():
            print(f"There is no GPU with ncu here, and {path} does not exist: {topic} is left out.", file=sys.stderr)
            continue
        recorded = recording(topic)
        comparisons = compare(topic, recorded)
        ncu_page.write(topic, recorded, comparisons)
        figures[topic] = {"compared": len(comparisons), "differing": sum(not c.holds for c in comparisons)}
        print(f"{topic}: ncu on {recorded['device']}, {recorded['date']}")
        print(ncu_page.summary(comparisons))
        apart = [c for c in comparisons if not (c.equal or (c.holds and c.difference is None))]
        print(text(apart) if apart else "All counters hold.")
    if not figures:
        return timing.NO_GPU
    print(timing.last_line("compare-ncu", figures, recorded))
    return int(any(f["differing"] for f in figures.values()))


if __name__ == "__main__":
    raise SystemExit(main())
