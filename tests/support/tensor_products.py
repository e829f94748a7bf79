"""Operands for matrix products on tensor cores, and how near to the exact result theirs must be."""

import functools

import numpy as np

from tests.support import matrix_products

# For each 16 of k tensor cores cut 17 addends off 25 bits below the largest and the sum off to float32 (see
# warplab/simulator/numerics/tensor_cores.py): at most (17 / 4 + 1) · 2^-23 of the sum of sizes.
STEP_ERROR = 2.0**-20

operands = functools.partial(matrix_products.operands, dtype=np.float16)


def within(a, b, found):
    """Which elements are as near to the exact ones as float32 sums make them, rounded once if they are float16."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = -(-a.shape[1] // 16) * STEP_ERROR * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    if found.dtype == np.float16:
        bound += 2.0**-11 * np.abs(exact) + 2.0**-24
    return np.abs(found - exact) <= bound
