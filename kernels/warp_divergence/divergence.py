"""Launches of paths.cu and predication.cu: branches by lane and by warp, and short and long conditions."""

from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import BLOCK, STEPS, WAYS, blocks, kernel
from warpcourse.bench.device_arguments import check_array

SHIFTS = {"lane": 0, "warp": 5}


def paths(x: Any, out: Any, ways: int, by: str, steps: int = 256) -> Any:
    """Compute out[i] = x[i], `steps` times halved with 1 + way(i) added; return `out` at once.

    `x`, `out`: device arrays, float32, of one axis and one length. `ways`: one of 1, 2, 4, ... 32. `by`: "lane", where
    neighbouring threads go different ways, or "warp", where neighbouring warps do. ValueError for anything else.
    """
    if ways not in WAYS:
        raise ValueError(f"ways is {ways}; the kernel is compiled for {', '.join(map(str, WAYS))}")
    chosen = kernel(f"cuda_paths<{ways}>")
    arguments = paths_arguments(x, out, by, steps)
    check_array("x", x, (None,))
    check_array("out", out, tuple(x.shape))
    if x.size:
        chosen.launch(blocks(x.size), BLOCK, arguments)
    return out


def paths_arguments(x: Any, out: Any, by: str, steps: int) -> tuple:
    """Return what paths<K> takes."""
    if by not in SHIFTS:
        raise ValueError(f"by is {by!r}; threads take ways by {' or by '.join(SHIFTS)}")
    return x, out, np.int32(x.size), np.int32(steps), np.int32(SHIFTS[by])


def condition(x: Any, out: Any, steps: int) -> Any:
    """Compute out[i] = x[i], if positive after `steps` times y = y / 2 + k, k = 1, 2, ...; return `out` at once.

    `x`, `out`: device arrays, float32, of one axis and one length. `steps`: 1 to 16; else ValueError.
    """
    if steps not in STEPS:
        raise ValueError(f"steps is {steps}; the kernel is compiled for {STEPS[0]} to {STEPS[-1]}")
    check_array("x", x, (None,))
    check_array("out", out, tuple(x.shape))
    if x.size:
        kernel(f"cuda_condition<{steps}>").launch(blocks(x.size), BLOCK, (x, out, np.int32(x.size)))
    return out
