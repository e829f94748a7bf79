"""The autotuner of step 9: `python -m kernels.matmul.autotune` measures every candidate for every shape on the GPU and
writes tiles.json. Without a GPU: exit code 2.

Each candidate's result is compared with cuBLAS's. Shapes that no float4 fits are left out: they get the sizes of the
nearest one that is measured.
"""

from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.matmul import tiles
from kernels.matmul.ladder import launch_tuned, tuned_function, tuned_grid
from kernels.matmul.measurements import SHAPES, cublas, operands
from kernels.matmul.tiles import Tiles
from warpcourse.bench.autotune import Autotuner, compile_all, rank
from warpcourse.bench.timing import Candidate, rounded

MAX_BLOCKS = 20_000  # candidates with more for a shape are too small for it
MEASURED = [shape for shape in SHAPES if shape[1] % 4 == 0]
# (bm, bn, wm, wn, tm, tn, blocks): what a block, a warp and a thread compute.
_LARGE = (
    (128, 128, 32, 64, 8, 8, 2),
    (128, 128, 64, 32, 8, 8, 2),
    (64, 128, 64, 64, 16, 8, 4),
    (128, 256, 64, 64, 16, 8, 1),
    (64, 256, 64, 64, 16, 8, 2),
    (128, 64, 64, 32, 8, 8, 3),
    (64, 128, 32, 64, 8, 8, 3),
    (64, 128, 64, 32, 8, 8, 3),
    (128, 64, 32, 64, 8, 8, 3),
    (64, 64, 32, 64, 8, 8, 6),
)
_SMALL = (
    (64, 64, 32, 32, 8, 4, 4),
    (64, 64, 16, 32, 4, 4, 3),
    (32, 64, 16, 32, 4, 4, 4),
    (64, 32, 32, 16, 4, 4, 4),
    (32, 32, 16, 32, 4, 4, 6),
    (16, 64, 16, 32, 4, 4, 6),
    (16, 32, 16, 32, 4, 4, 8),
    (64, 16, 32, 16, 4, 4, 6),
)


def candidates() -> list[Tiles]:
    """Return all combinations that the kernel can be compiled for."""
    found = []
    depths = [(8, 3, 8), (16, 3, 8), (16, 4, 4), (16, 4, 8), (16, 4, 16), (32, 2, 8), (32, 3, 8)]
    for forms, ways in ((_LARGE, depths), (_SMALL, [(16, 3, 8), (32, 3, 8), (32, 4, 8), (64, 3, 8)])):
        for bm, bn, wm, wn, tm, tn, blocks in forms:
            for bk, stages, group in ways:
                try:
                    found.append(Tiles(bm, bn, bk, wm, wn, tm, tn, stages, blocks, group))
                except ValueError:  # sizes that do not go together
                    continue
    return found


def best(shape: tuple[int, int, int], found: list[Tiles]) -> dict[str, Any]:
    """Return the fastest of the candidates for a shape: a row of tiles.json."""
    import cupy

    a, b, c = operands(*shape)
    expected = cupy.empty_like(c)
    cublas(a, b, expected)

    def wrong(sizes: Tiles) -> str:
        c.fill(np.nan)
        launch_tuned(sizes, True, a, b, c)
        error = float(cupy.abs(c - expected).max())
        return "" if error < 1e-4 * shape[2] ** 0.5 else f"off by {error:.3g} for {shape}"

    fitting = [sizes for sizes in found if tuned_grid(sizes, *shape[:2])[0] <= MAX_BLOCKS]
    timed = lambda sizes: Candidate(launch_tuned, [(sizes, True, a, b, c)])  # noqa: E731
    _, finalists = rank(fitting, timed, wrong, alone=3, rounds=4, runs=3)
    winner, seconds = next(iter(finalists.items()))
    tflops = 2 * np.prod(np.array(shape, float)) / seconds / 1e12
    return {"shape": list(shape), "tiles": list(astuple(winner)), "tflops": float(tflops)}


def _compile(sizes: Tiles) -> None:
    tuned_function(sizes, True)


def best_of_all() -> list[dict[str, Any]]:
    """Return a row for each measured shape."""
    found, rows = candidates(), []
    compile_all(_compile, found)
    print(f"{len(found)} candidates compiled", flush=True)
    for shape in MEASURED:
        rows.append(rounded(best(shape, found)))
        print(rows[-1], flush=True)
    return rows


TUNE = {"candidates": lambda: len(candidates()), "shapes": best_of_all}
AUTOTUNER = Autotuner("matmul", tiles.PATH, TUNE, __doc__)

if __name__ == "__main__":
    AUTOTUNER.main()
