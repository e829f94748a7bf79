"""Operands of matrix products, and results computed into guarded memory."""

import numpy as np

from tests.support.random_inputs import generator
from warplab import cp

GUARD = 64  # elements before and after the result


def operands(m, n, k, dtype=np.float32):
    """Random matrices (m, k) and (k, n), from -1 to 1."""
    random = generator()
    return (random.uniform(-1, 1, shape).astype(dtype) for shape in ((m, k), (k, n)))


def guarded(multiply, a, b, dtype=np.float32, offset=0):
    """What multiply(a, b, out) computes into poisoned memory, `offset` elements past a multiple of 256 bytes.

    Fails if it returns anything but `out`, or writes to the guard bands around it.
    """
    m, n = a.shape[0], b.shape[1]
    first = GUARD + offset
    whole = cp.asarray(np.full(first + m * n + GUARD, np.nan, dtype))
    out = whole[first : first + m * n].reshape(m, n)
    assert multiply(cp.asarray(a), cp.asarray(b), out) is out
    found = cp.asnumpy(whole)
    assert np.isnan(found[:first]).all(), "written before the result"
    assert np.isnan(found[first + m * n :]).all(), "written past the result"
    return found[first : first + m * n].reshape(m, n)
