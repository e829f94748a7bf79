"""Launches of lab 13's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`)."""

import numpy as np

from kernels.attention import backward_pass, decoding, forward_pass
from kernels.attention.sources import Call
from warpcourse.bench import hopper
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch, with_differences
from warpcourse.bench.copy_differences import BESIDE_TMA, DURING_COPIES, NOT_COUNTED, WAITING
from warplab import cp

# heads, query heads for a head of keys, queries, keys, size, causal
CASES = ((1, 1, 128, 128, 64, False), (2, 2, 100, 150, 64, True))
SPLITS = 4
_PAST_THE_END = Difference(
    "shared_copy_wavefronts",
    0.25,
    "Only where rows lie past the end: the GPU takes another number of passes for copies of zeros.",
)
_SPILLED = Difference("local", 1, "ptxas keeps a few words of each thread in local memory.")
_STORES = "Not the same in every run: taken to be stores that meet writes of cp.async under way."
DIFFERENCES = {
    "mma": (NOT_COUNTED, _PAST_THE_END, _SPILLED),
    "backward": (
        NOT_COUNTED,
        _PAST_THE_END,
        Difference("shared_store_wavefronts", 0.5, _STORES),
        Difference("shared_store_conflicts", 1, _STORES),
    ),
    "wgmma": (WAITING,),
    "gradients by wgmma": (
        WAITING,
        Difference("shared_load_wavefronts", 0.6, BESIDE_TMA),
        Difference("shared_store_wavefronts", 0.2, BESIDE_TMA),
    ),
    "decode": (
        NOT_COUNTED,
        _PAST_THE_END,
        *DURING_COPIES,
        Difference(EFFICIENCY, 0.03, "ptxas makes some branches predicates."),
    ),
}


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
    outputs = np.full_like(one[0], np.nan), _empty(1, heads), np.zeros(heads // shared_by, np.uint32)
    found += decoding.launches(one, parts, outputs, cache)
    if not hopper.missing("wgmma", "mma"):
        *arrays, out, lse, ones = map(cp.asarray, (q, k, v, out, lse, 5 * ones))
        found += forward_pass.wgmma(*arrays, out, lse, call)
        found += backward_pass.wgmma(tuple(arrays), arrays[0], arrays[0], ones, tuple(map(cp.empty_like, arrays)), call)
    what = f"{heads} × {queries} × {keys} × {size}" + ", causal" * causal
    return [
        Launch(f"{x.name}, {what}", x.kernel, x.grid, x.block, x.arguments, x.shared_bytes, held=arrays) for x in found
    ]


LAUNCHES = with_differences((launch for case in CASES for launch in _of_case(*case)), DIFFERENCES)
