"""Launches of lab 01's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`).

Two shapes: blocks of 256, where warps start on a sector, with three elements left over for the tail; and
blocks of 100, where a block's last warp has four threads and most warps start inside a sector. The grid-stride
kernels get few blocks, so that they loop.
"""

import numpy as np

from kernels.vector_multiply.product import KERNELS, ProductKernel
from warpcourse.bench.compared_launches import Launch


def _launch(kernel: ProductKernel, n: int, block: int, few_blocks: int) -> Launch:
    rng = np.random.default_rng(n)
    a, b = (rng.random(n, dtype=np.float32) for _ in range(2))
    arguments = kernel.arguments(a, b, np.full(n, np.nan, np.float32))
    blocks = few_blocks if "grid_stride" in kernel.name else kernel.blocks(n, block)
    name = f"{kernel.name}, n = {n}, block {block}"
    return Launch(name, kernel.function, blocks, block, arguments)


LAUNCHES = [
    _launch(kernel, n, block, few_blocks)
    for n, block, few_blocks in ((2**20 + 3, 256, 512), (10007, 100, 7))
    for kernel in KERNELS.values()
]
