"""Run the evidence, all that this machine can or the parts that are named: `make evidence PARTS="numba-tests"`.

    python -m evidence [PART ...] [-- ARGUMENT ...]     the arguments go to the part's own command

Without a PART: every part that needs neither a GPU nor a download and does not measure this machine. The
others are named with what they need. The exit code is 1 if a part failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from warpcourse.paths import COURSE
from warplab.hardware import backend

INDEX = "a package index, and 5 GB of disk"
GPU, CLONES, TIMES = "an NVIDIA GPU", "clones of public repositories", "to be named: it measures this machine"


@dataclass(frozen=True)
class Part:
    """One comparison: what it holds to what, and the arguments that Python runs it with. `needs`: "" if nothing."""

    shows: str
    command: str
    needs: str = ""


PARTS = {
    "tests": Part("all that is quick, and the records below", "-m pytest evidence/tests -q"),
    "counters": Part("the simulator's counters and Nsight Compute's", "-m tools.ncu evidence.counters"),
    "machine-code": Part("counts of machine code and Nsight Compute's", "-m evidence.machine_code.compare"),
    "differential": Part("2,400 random kernels and an H100's results", "-m tests.warplab.differential.compare"),
    "estimates": Part("estimated and recorded times", "-m evidence.estimates.error"),
    "instructions": Part("which PTX instructions the simulator knows", "-m evidence.simulator.instructions"),
    "numba-tests": Part("numba-cuda's own tests and the stand-in", "-m evidence.numba_tests.run"),
    "public-programs": Part("published programs in the simulator", "-m evidence.public_programs.run", CLONES),
    "foreign-scripts": Part("scripts of others under `run`", "-m evidence.foreign_scripts.run", CLONES),
    "cupy-names": Part("CuPy's names in public programs and the stand-in's", "-m evidence.cupy_names.count", CLONES),
    "front-ends": Part(
        "other compilers' kernels in the simulator", "-m evidence.front_ends.run", f"{CLONES}; packages"
    ),
    "cuda-programs": Part("whole CUDA C++ programs of others", "-m evidence.cuda_programs.run", CLONES),
    "cuda-barriers": Part("public kernels with a barrier less", "-m evidence.cuda_programs.barriers", CLONES),
    "cuda-suites": Part("programs of other suites", "-m evidence.cuda_programs.suites", CLONES),
    "kernelbench": Part("the judge on right and wrong answers to KernelBench's tasks", "-m evidence.kernelbench.run"),
    "onnx-nodes": Part("onnx's own tests of operators and lab 09's engine", "-m evidence.onnx_nodes.run"),
    "wheel": Part("the engine's wheel: sizes with each extra, times of imports", "-m evidence.wheel", INDEX),
    "attacks": Part("what hostile submissions get", "-m evidence.attacks_page --try", "bubblewrap and a browser"),
    "fuzz": Part("random PTX, descriptions and notebooks, and how the grading ends", "-m evidence.fuzz"),
    "odd-class": Part("twelve odd submissions from an archive to grades", "-m evidence.odd_class"),
    "hub": Part(
        "a class of thirty on a hub: times, memory, who reaches what", "-m evidence.hub", f"root, npm; {INDEX}"
    ),
    "mutations": Part("which random faults of the course's code its tests find", "-m evidence.mutations", TIMES),
    "simulator-speed": Part("the simulator's speed and Numba's own", "-m evidence.simulator.speed", TIMES),
    "grading-speed": Part("the grading's speed and nbgrader's", "-m evidence.grading_speed", TIMES),
    "record-instructions": Part("results of PTX on a GPU", "-m evidence.simulator.record_instructions", GPU),
    "record-matrix": Part("results of mma and wgmma on a GPU", "-m evidence.simulator.record_matrix", GPU),
    "record-sweeps": Part("the rates of a GPU", "-m warpcourse.bench.sweeps.record", GPU),
    "record-unseen": Part("times of kernels that no lab has", "-m evidence.unseen_launches.record", GPU),
}


def main(arguments: list[str]) -> int:
    """Run parts one after the other; return the exit code."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    names, rest = arguments[:at], arguments[at + 1 :]
    if {"-h", "--help"} & {*names}:
        print(__doc__, *(f"{name:20} {part.shows}" for name, part in PARTS.items()), sep="\n")
        return 0
    if unknown := [name for name in names if name not in PARTS]:
        print(f"error: there is no part {', '.join(unknown)}; choose among {', '.join(PARTS)}", file=sys.stderr)
        return 2
    failed = [name for name in names or PARTS if (names or not PARTS[name].needs) and not _run(name, rest)]
    for name in () if names else PARTS:
        if PARTS[name].needs:
            print(f"left out: {name} ({PARTS[name].shows}); needs {PARTS[name].needs}")
    print(f"failed: {', '.join(failed)}" if failed else "nothing failed")
    return int(bool(failed))


def _run(name: str, rest: list[str]) -> bool:
    part = PARTS[name]
    if part.needs == GPU and (problem := backend.gpu_problem()[0]):
        print(f"{name} needs {GPU}: {problem}", file=sys.stderr)
        return False
    # Where there is a GPU, some read it anew; all else is the simulator's.
    own = {} if name in ("tests", "counters") or part.needs == GPU else {"WARPLAB_BACKEND": "simulator"}
    print(f"== {name}: {part.shows}", flush=True)
    start = time.monotonic()
    command = [sys.executable, *part.command.split(), *rest]
    code = subprocess.run(command, cwd=COURSE, env={**os.environ, **own}).returncode
    print(f"== {name}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
