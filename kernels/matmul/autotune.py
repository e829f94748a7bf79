"""The autotuner of step 9: `python -m kernels.matmul.autotune` measures every candidate for every shape on the GPU and
writes tiles.json. Without a GPU: exit code 2.

Each candidate's result is compared with cuBLAS's. All run a few times; the best FINALISTS then take turns. Shapes that
no float4 fits are left out: they get the sizes of the nearest one that is measured.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.matmul import tiles
from kernels.matmul.ladder import launch_tuned, tuned_function, tuned_grid
from kernels.matmul.measurements import SHAPES, cublas, operands
from kernels.matmul.tiles import Tiles
from warplab.bench import timing
from warplab.bench.timing import Candidate, time_gpu, time_together

FINALISTS = 5
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
    """All combinations that the kernel can be compiled for."""
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
    """The fastest of the candidates for a shape: a row of tiles.json. RuntimeError when one computes something else."""
    import cupy

    a, b, c = operands(*shape)
    expected = cupy.empty_like(c)
    cublas(a, b, expected)
    seconds = {}
    for sizes in found:
        if tuned_grid(sizes, *shape[:2])[0] > MAX_BLOCKS:
            continue
        c.fill(np.nan)
        launch_tuned(sizes, True, a, b, c)
        if not float(cupy.abs(c - expected).max()) < 1e-4 * shape[2] ** 0.5:
            raise RuntimeError(f"{sizes} computes a wrong product for {shape}")
        seconds[sizes] = time_gpu(launch_tuned, [(sizes, True, a, b, c)], runs=3).seconds
    finalists = sorted(seconds, key=seconds.get)[:FINALISTS]
    timings = time_together(
        {str(k): Candidate(launch_tuned, [(sizes, True, a, b, c)]) for k, sizes in enumerate(finalists)},
        rounds=4,
        runs=3,
        warmup=1,
    )
    winner = min(timings, key=lambda k: timings[k].seconds)
    return {
        "shape": list(shape),
        "tiles": list(astuple(finalists[int(winner)])),
        "tflops": 2 * np.prod(np.array(shape, float)) / timings[winner].seconds / 1e12,
    }


def _compile(sizes: Tiles) -> None:
    """Fill CuPy's cache on disk; called in a process of its own."""
    tuned_function(sizes, True)


def main() -> None:
    """End with a line of JSON."""
    timing.require_gpu("The autotuner")
    found = candidates()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_compile, found))
    print(f"{len(found)} candidates compiled", flush=True)
    rows = []
    for shape in MEASURED:
        rows.append(timing.rounded(best(shape, found)))
        print(rows[-1], flush=True)
    about = timing.machine()
    head = {"device": about["device"], "date": about["date"], "candidates": len(found)}
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    tiles.PATH.write_text(f'{json.dumps(head)[:-1]}, "shapes": [\n  {lines}\n]}}\n')
    print(timing.last_line("matmul-autotune", {"shapes": rows}, about))


if __name__ == "__main__":
    main()
