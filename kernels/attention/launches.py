"""Launches of lab 13's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`).

Step 4, which needs tensor maps, is not among them.
"""

import numpy as np

from kernels.attention import backward_pass, decoding, forward_pass
from kernels.attention.sources import Call
from warpcourse.bench.compared_launches import Launch

# heads, query heads for a head of keys, queries, keys, size, causal
CASES = ((1, 1, 128, 128, 64, False), (2, 2, 100, 150, 64, True))
SPLITS = 4


def _empty(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def _of_case(heads: int, shared_by: int, queries: int, keys: int, size: int, causal: bool) -> list[Launch]:
    random = np.random.default_rng(queries + keys)
    call = Call(1, heads, shared_by, queries, keys, size, causal, size**-0.5)
    shapes = (heads, queries, size), *[(heads // shared_by, keys, size)] * 2
    arrays = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
    out, lse, s = _empty(*shapes[0]), _empty(heads, queries), random.random((heads, queries, keys), np.float32)
    found = [*forward_pass.naive(*arrays, out, lse, call, s), *forward_pass.fused(*arrays, out, lse, call)]
    q, k, v, out = (x.astype(np.float16) for x in (*arrays, out))
    found += forward_pass.mma(q, k, v, out, lse, call)
    gradients = tuple(np.full_like(x, np.nan) for x in (q, k, v))
    ones = np.ones_like(lse)
    found += backward_pass.launches((q, k, v), q, q, 5 * ones, ones.reshape(-1), gradients, call)
    cache = np.array([(heads, shared_by, keys, 1, SPLITS, call.scale)], decoding.CACHE)
    one = q[None, :, 0].copy(), k, v, np.zeros((1, 1), np.int32), np.full(1, keys, np.int32)
    parts = random.random((heads, SPLITS, size), np.float32), random.random((heads, SPLITS), np.float32)
    found += decoding.launches(one, parts, (np.full_like(one[0], np.nan), _empty(1, heads)), cache)
    what = f"{heads} × {queries} × {keys} × {size}" + ", causal" * causal
    return [Launch(f"{x.name}, {what}", x.kernel, x.grid, x.block, x.arguments, x.shared_bytes) for x in found]


LAUNCHES = [launch for case in CASES for launch in _of_case(*case)]
