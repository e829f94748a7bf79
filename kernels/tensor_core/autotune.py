"""The autotuner of steps 4 and 6: `python -m kernels.tensor_core.autotune [step ...]` measures every candidate at
8192³, with float16 results, and writes the fastest into tiles.json. Without a GPU: exit code 2.
"""

import functools
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.tensor_core import tiles
from kernels.tensor_core.ladder import STEPS
from kernels.tensor_core.measurements import SIDE, checked, names, operands
from kernels.tensor_core.tiles import Persistent, Stages
from warpcourse.bench.autotune import Autotuner, compile_all, rank
from warpcourse.bench.timing import Candidate

TUNED = ("mma_stages", "wgmma_persistent")


def candidates() -> dict[str, list[Any]]:
    """Return sizes to try of each tuned step."""
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
    """Return the fastest of the candidates of a step at side³, and what each took."""
    a, b, c = operands(side, side, side)
    launch = STEPS[name].launch

    def wrong(sizes: Any) -> str:
        result = checked(lambda a, b, c: launch(a, b, c, sizes), a, b, c)
        return "" if result["correct"] else f"relative error {result['relative_error']:.3g}"

    def tflops(seconds: float) -> float:
        return 2 * side**3 / seconds / 1e12

    candidate = lambda sizes: Candidate(launch, [(a, b, c, sizes)])  # noqa: E731
    alone, finalists = rank(found, candidate, wrong, alone=5, rounds=8, runs=3)
    winner, seconds = next(iter(finalists.items()))
    tried = [[list(astuple(sizes)), tflops(time)] for sizes, time in alone.items()]
    return {"side": side, "sizes": list(astuple(winner)), "tflops": tflops(seconds), "tried": tried}


def _compile(sizes: Stages) -> None:
    STEPS["mma_stages"].function(np.float16, sizes)


def tuned(name: str) -> dict[str, Any] | None:
    """Return the row of a step; None where the GPU has not its instructions."""
    if name not in names():
        return None
    found = candidates()[name]
    if name == "mma_stages":
        compile_all(_compile, found)
    row = best(name, found)
    print(name, *row["tried"], f"best: {row['sizes']}", sep="\n  ", flush=True)
    return row


TUNE = {name: functools.partial(tuned, name) for name in TUNED}
AUTOTUNER = Autotuner("tensor_core", tiles.PATH, TUNE, __doc__)

if __name__ == "__main__":
    AUTOTUNER.main()
