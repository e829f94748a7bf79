"""The autotuner of steps 4 and 6: `python -m kernels.tensor_core.autotune [step ...]` measures every candidate at
8192³, with float16 results, and writes the fastest into tiles.json. Without a GPU: exit code 2.

Each candidate's result is checked. All run a few times; the best FINALISTS then take turns. What the file says of a
step that is not named stays, if it is from the same GPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.tensor_core import tiles
from kernels.tensor_core.ladder import STEPS
from kernels.tensor_core.measurements import SIDE, checked, names, operands
from kernels.tensor_core.tiles import Persistent, Stages
from warplab.bench import timing
from warplab.bench.timing import Candidate, time_gpu, time_together

FINALISTS = 5
TUNED = ("mma_stages", "wgmma_persistent")


def candidates() -> dict[str, list[Any]]:
    """Sizes to try of each tuned step."""
    forms = (
        (128, 256, 64, 64, 3, 1),
        (128, 256, 64, 64, 4, 1),
        (256, 128, 64, 64, 3, 1),
        (256, 128, 64, 64, 4, 1),
        (128, 128, 64, 64, 3, 2),
        (128, 128, 64, 32, 3, 2),
    )
    stages = [Stages(*form, group) for form in forms for group in (4, 8, 16)]
    persistent = [
        Persistent(stages, cluster, group, most)
        for stages in (3, 4)
        for cluster in (1, 2)
        for group in (4, 8, 16)
        for most in (0, 128)
    ]
    persistent += [Persistent(stages, 2, group, 128) for stages in (3, 4) for group in (6, 12)]
    persistent += [Persistent(stages, 4, group) for stages in (3, 4) for group in (2, 4, 8)]
    return {"mma_stages": stages, "wgmma_persistent": persistent}


def best(name: str, found: Sequence[Any], side: int = SIDE) -> dict[str, Any]:
    """The fastest of the candidates of a step at side³, and what each took. RuntimeError for a wrong result."""
    a, b, c = operands(side, side, side)
    launch = STEPS[name].launch
    seconds = {}
    for sizes in found:
        result = checked(lambda a, b, c, sizes=sizes: launch(a, b, c, sizes), a, b, c)
        if not result["correct"]:
            raise RuntimeError(f"{sizes} computes a wrong product: relative error {result['relative_error']:.3g}")
        seconds[sizes] = time_gpu(launch, [(a, b, c, sizes)], runs=5).seconds
    finalists = sorted(seconds, key=seconds.get)[:FINALISTS]
    timings = time_together(
        {str(i): Candidate(launch, [(a, b, c, sizes)]) for i, sizes in enumerate(finalists)},
        rounds=8,
        runs=3,
        warmup=1,
    )
    winner = min(timings, key=lambda i: timings[i].seconds)

    def tflops(time: float) -> float:
        return 2 * side**3 / time / 1e12

    return {
        "side": side,
        "sizes": list(astuple(finalists[int(winner)])),
        "tflops": tflops(timings[winner].seconds),
        "tried": [[list(astuple(sizes)), tflops(time)] for sizes, time in seconds.items()],
    }


def _compile(sizes: Stages) -> None:
    """Fill CuPy's cache on disk; called in a process of its own."""
    STEPS["mma_stages"].function(np.float16, sizes)


def main() -> None:
    """End with a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m kernels.tensor_core.autotune", description=__doc__)
    parser.add_argument("steps", nargs="*", help=f"of {', '.join(TUNED)} (default: all that the GPU can run)")
    chosen = parser.parse_args().steps or TUNED
    timing.require_gpu("The autotuner")
    found = candidates()
    if unknown := set(chosen) - set(found):
        parser.error(f"there is nothing to tune in {', '.join(unknown)}; choose of {', '.join(found)}")
    if "mma_stages" in chosen:
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
            list(pool.map(_compile, found["mma_stages"]))
    about = timing.machine()
    before = tiles.table() or {}
    rows = {name: before[name] for name in TUNED if name in before and before["device"] == about["device"]}
    for name in chosen:
        if name in names():
            rows[name] = timing.rounded(best(name, found[name]))
            print(name, *rows[name]["tried"], f"best: {rows[name]['sizes']}", sep="\n  ", flush=True)
    head = {"device": about["device"], "date": about["date"]}
    lines = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in {**head, **rows}.items())
    tiles.PATH.write_text(f"{{\n {lines}\n}}\n")
    print(timing.last_line("tensor_core-autotune", rows, about))


if __name__ == "__main__":
    main()
