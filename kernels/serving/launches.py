"""Launches of lab 11's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`).

Whole warps and blocks, and sizes at which the last ones are not full. (NVVM unrolls the loop of the copy in Numba:
where some lanes of a warp have an iteration more, they run ahead, and a request touches a sector more.) The chain of
`chase` lies on one element per sector, so that threads of a warp share none.
"""

import numpy as np

from kernels.serving import small_network
from kernels.serving.overlap.streams import preprocess
from kernels.serving.utilisation import busy_kernels
from kernels.serving.utilisation.busy_kernels import BLOCK, KERNELS, blocks
from warpcourse.bench.compared_launches import Difference, Launch

ROUNDS, STEPS = 20, 16
_SHORTER_LOOP = (
    "ptxas makes ten instructions less of the loop in Numba than its PTX has, and one lane alone runs it: the other "
    "instructions, of whole warps, weigh more."
)
_DIFFERENCES = {"numba_spin, n = 1": (Difference("warp_efficiency", 0.05, _SHORTER_LOOP),)}


def _spin(name: str, n: int) -> Launch:
    kernel, c = KERNELS[name], busy_kernels.constants(n, np.random.default_rng(n))
    arguments = busy_kernels.spin_arguments(kernel, c, ROUNDS, np.full(n, np.nan, np.float32))
    full_name = f"{name}, n = {n}"
    differences = _DIFFERENCES.get(full_name, ())
    return Launch(full_name, kernel.function, blocks(n), BLOCK, arguments, differences=differences)


def _copy(name: str, n: int, grid: int) -> Launch:
    kernel, x = KERNELS[name], np.random.default_rng(n).random(n, dtype=np.float32)
    arguments = busy_kernels.copy_arguments(kernel, x, np.full(n, np.nan, np.float32))
    return Launch(f"{name}, n = {n}, {grid} blocks", kernel.function, grid, BLOCK, arguments)


def _scatter(n: int, columns: int) -> Launch:
    x = np.random.default_rng(n).random(n, dtype=np.float32)
    arguments = (x, np.full(n, np.nan, np.float32), np.uint32(n // columns), np.uint32(columns))
    name = f"cuda_scatter, n = {n}, {columns} columns"
    return Launch(name, KERNELS["cuda_scatter"].function, blocks(n), BLOCK, arguments)


def _chase(n: int) -> Launch:
    places = busy_kernels.chain(2**14, np.random.default_rng(n), stride=8)
    arguments = (places, np.uint32(STEPS), np.zeros(n, np.uint32), np.uint64(n))
    return Launch(f"cuda_chase, n = {n}", KERNELS["cuda_chase"].function, blocks(n, 32), 32, arguments)


LAUNCHES = [
    *(_spin(name, n) for name in ("cuda_spin", "numba_spin") for n in (1, 1000)),
    *(_copy("cuda_copy", n, grid) for n, grid in ((4100, 1), (4100, 5))),
    *(_copy("numba_copy", n, grid) for n, grid in ((4096, 1), (1000, 5))),
    *(_scatter(4000, columns) for columns in (1, 8, 40)),
    *(_chase(n) for n in (1, 100)),
    *preprocess.launches(),
    *small_network.launches(),
]
