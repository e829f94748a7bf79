"""Launches of lab 04's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`)."""

import functools

import numpy as np

from kernels.matmul.ladder import STEPS, tuned_function, tuned_grid
from kernels.matmul.split_k import Plan, function_of
from kernels.matmul.tiles import Tiles
from warpcourse.bench.compared_launches import Difference, Launch, with_differences
from warpcourse.bench.copy_differences import DURING_COPIES, NOT_COUNTED, PREDICATED, ZERO_FILL

SHAPES = ((128, 128, 32), (130, 132, 20), (65, 131, 37))  # whole tiles; tails; rows at any address
TUNED = (Tiles(128, 128, 16, 32, 64, 8, 8, 3, 2, 8), Tiles(64, 64, 16, 16, 32, 4, 4, 3, 3, 8))
SPLIT = (Plan(Tiles(64, 64, 16, 32, 32, 8, 4, 3, 4, 8)), Plan(Tiles(64, 64, 16, 32, 64, 8, 8, 3, 6, 8), 2))
_SPILLED = "ptxas spills registers of the copies of single words to keep two blocks on a multiprocessor."
_WORDS = "Neighbouring words count as one store of 16 bytes, which ptxas mostly makes of them; here it does not."
_OLDER = "Recorded of an older kernel; of this one an H100 counted what the simulator does (27 November)."

# By the beginning of the launch's name; the first counts.
_DIFFERENCES = {
    "async_copies, 65": (NOT_COUNTED, Difference("local", 1, _SPILLED)),
    "async_copies": (NOT_COUNTED,),
    "tuned 128": (NOT_COUNTED, *DURING_COPIES),
    "tuned 64 × 64, 65": (NOT_COUNTED,),
    "tuned 64": (NOT_COUNTED, PREDICATED),
    "split_k 64 × 64 in 1, 65": (
        NOT_COUNTED,
        *(Difference(f"shared_store_{what}", most, _WORDS) for what, most in (("wavefronts", 3), ("conflicts", 1))),
    ),
    "split_k 64 × 64 in 2, 130": (NOT_COUNTED, ZERO_FILL, Difference("shared_load_wavefronts", 0.004, _OLDER)),
    "split_k": (NOT_COUNTED, *DURING_COPIES),
}


def _launches(m: int, n: int, k: int) -> list[Launch]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    arguments = (a, b, np.zeros((m, n), np.float32), *map(np.int32, (m, n, k)))
    what, whole = f"{m} × {n} × {k}", {"a": k % 4 == 0, "b": n % 4 == 0, "c": n % 4 == 0}
    found = []
    for step in STEPS.values():
        if step.name != "tuned":
            function = functools.partial(step.function, all(whole[name] for name in step.vectors))
            found.append(Launch(f"{step.name}, {what}", function, step.grid(m, n), step.block, arguments))
    for sizes in TUNED:
        name = f"tuned {sizes.bm} × {sizes.bn}, {what}"
        function = functools.partial(tuned_function, sizes, whole["b"])
        found.append(Launch(name, function, tuned_grid(sizes, m, n), sizes.threads, arguments, sizes.shared_bytes))
    for plan in SPLIT:
        tiles, parts = plan.tiles, plan.parts
        (grid,) = tuned_grid(tiles, m, n)
        sums = np.zeros(grid * parts * tiles.bm * tiles.bn, np.float32), np.zeros(grid, np.uint32)
        numbers = (*arguments[:3], *sums, *arguments[3:], np.int32(n))
        function = functools.partial(function_of, plan, next(w for w in (4, 2, 1) if n % w == 0), whole["c"])
        name = f"split_k {tiles.bm} × {tiles.bn} in {parts}, {what}"
        found.append(Launch(name, function, (grid, 1, parts), tiles.threads, numbers, tiles.shared_bytes))
    return found


LAUNCHES = with_differences((launch for shape in SHAPES for launch in _launches(*shape)), _DIFFERENCES)
