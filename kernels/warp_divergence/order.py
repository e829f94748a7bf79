"""Launches of order.cu: when one warp runs the sides of `if (threadIdx.x < 4) { A; B; } else { X; Y; } Z`."""

from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import WARP, kernel
from warplab import cp

LETTERS = "ABXYZ"
READERS = 4  # lanes that run B
VALUE = 42  # what X computes


def run(name: str = "cuda_branch", value: int = VALUE) -> tuple[np.ndarray, np.ndarray]:
    """Launch a kernel of order.cu on one warp and wait.

    Returns `when`, int64 of shape (5, 32): when each lane began each of LETTERS, in clocks since the first (on the
    simulator instructions), -1 where it never did; and `read`, int32 of shape (4,): what B's lanes read, -1 if nothing.
    """
    chosen = kernel(name)
    when = cp.asarray(np.full((len(LETTERS), WARP), -1, np.int64))
    read = cp.asarray(np.full(READERS, -1, np.int32))
    chosen.launch(1, WARP, arguments(name, when, read, value))
    return since_the_first(cp.asnumpy(when)), cp.asnumpy(read)


def arguments(name: str, when: Any, read: Any, value: int = VALUE) -> tuple:
    """Return what a kernel of order.cu takes; `when` and `read` as above, on the device or for `warplab.simulate`."""
    return (when,) if name == "cuda_branch" else (when, read, np.int32(value))


def since_the_first(when: np.ndarray) -> np.ndarray:
    """Return `when` with the earliest time as 0 and -1 for what never happened."""
    return np.where(when < 0, -1, when - when[when >= 0].min())


def sequence(when: np.ndarray) -> str:
    """Return the letters by the time at which their first lane began, such as "AXBYZ"."""
    begun = {letter: row[row >= 0].min() for letter, row in zip(LETTERS, when, strict=True) if (row >= 0).any()}
    return "".join(sorted(begun, key=begun.get))
