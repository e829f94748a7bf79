"""Launches of primitives.cu: sums and scans of each 32 neighbouring elements by shuffles."""

from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import BLOCK, WARP, blocks, check_block, kernel
from warpcourse.bench.device_arguments import check_array


def warp_sums(x: Any, out: Any, name: str = "cuda_warp_sums", *, block: int = BLOCK) -> Any:
    """Compute out[w] = x[32 w] + ... + x[32 w + 31], of what there is; return `out` at once.

    `x`: device array, int32, of one axis and length n. `out`: the same of length n / 32, rounded up. `name`: of the
    kernel, "cuda_warp_sums" or "numba_warp_sums". `block`: a multiple of 32. TypeError, ValueError if not.
    """
    return _launch(name, x, out, blocks(x.size, WARP), block)


def warp_scans(x: Any, out: Any, name: str = "cuda_warp_scans", *, block: int = BLOCK) -> Any:
    """Compute out[i] = x[32 w] + ... + x[i] with w = i / 32; return `out` at once. Arguments as for `warp_sums`.

    `out`: int32 of length n.
    """
    return _launch(name, x, out, x.size, block)


def _launch(name: str, x: Any, out: Any, length: int, block: int) -> Any:
    chosen = kernel(name)
    check_block(block)
    check_array("x", x, (None,), dtype=np.int32)
    check_array("out", out, (length,), dtype=np.int32)
    if x.size:
        arguments = (x, out, np.int32(x.size)) if chosen.language != "Numba" else (x, out)
        chosen.launch(blocks(x.size, block), block, arguments)
    return out
