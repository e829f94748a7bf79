"""`matmul`: C = A · B by any step of the ladder, with its arguments checked."""

from typing import Any

import numpy as np

from kernels.matmul import split_k
from kernels.matmul.ladder import STEPS, Step
from kernels.matmul.shape_rule import RULE
from warpcourse.bench.device_arguments import check_factors, check_product
from warpcourse.bench.lab_kernels import choose
from warplab import cp

EVERY_SHAPE = "split_k"  # step 10, which chooses by shape
MAX_GRID_Y = 65535
MAX_DEPTH = 2**24  # step 9 holds offsets within a tile in 32 bits


def matmul(a: Any, b: Any, out: Any = None, kernel: str = "tuned") -> Any:
    """Compute A · B on the GPU; return the result at once, before the kernel has finished.

    `a`: device array, float32, C-contiguous, of shape (m, k); `b`: likewise, of shape (k, n). `out`: likewise, of shape
    (m, n), without overlap with `a` or `b`; None allocates it. `kernel`: a name in STEPS, or "split_k", step 10, which
    `shape_rule` chooses the sizes of. Products and sums are float32
    (fused multiply-add), so the error of an element grows with k.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = choose({**STEPS, EVERY_SHAPE: None}, kernel)
    m, n, k = check_factors(a, b)
    if out is None:
        out = cp.empty((m, n), np.float32)
    check_product(out, a, b, (m, n))
    if m == 0 or n == 0:
        return out  # a grid of no blocks is an invalid launch
    if k == 0:
        out.fill(0)
        return out
    if chosen is None:
        _check_depth(EVERY_SHAPE, k)
        split_k.launch(a, b, out, RULE.chosen(m, n, k))
        return out
    _check_sizes(chosen, m, n, k)
    chosen.launch(a, b, out)
    return out


def _check_depth(kernel: str, k: int) -> None:
    if k >= MAX_DEPTH:
        raise ValueError(f"a has {k:,} columns; {kernel} takes fewer than {MAX_DEPTH:,}: take async_copies")


def _check_sizes(chosen: Step, m: int, n: int, k: int) -> None:
    """Raise ValueError for sizes that a kernel's grid or its 32-bit offsets do not reach."""
    if chosen.name == "tuned":
        _check_depth(chosen.name, k)
        return
    grid = chosen.grid(m, n)
    if grid[1] > MAX_GRID_Y:
        raise ValueError(
            f"a has {m:,} rows; {chosen.name} needs a grid of {grid[1]:,} blocks in y, and {MAX_GRID_Y:,} is the most: "
            "take tuned"
        )
