"""Steps 1 and 2 of lab 13, float32: attention in three kernels, and in one.

Arrays: q and out (heads, length, size), k and v (heads of k, length of k, size), the batch counted with the heads. A
query sees the keys up to its own place and `further`: length of k - length where attention is causal, else the length
of k.
"""

import functools
import math
from typing import Any

import numpy as np

from warplab import cuda

TILE = 16  # rows and columns of scores, or of the output, that a block of step 1 computes
ROWS = 4  # of scores in a block of `softmax`, a warp each
WARPS, KEYS = 8, 32  # of a block of step 2, and of its tile: a lane of each warp for each key
ALL = 0xFFFFFFFF
NOTHING = np.float32(-np.inf)


# -- step 1: three kernels, the scores and the weights in memory -----------------------------------------------------


@cuda.jit
def scores(q, k, s, scale, further):
    """Compute s = scale * q kᵀ, -inf for keys that a query does not see: a thread per score."""
    key, query = cuda.grid(2)
    head = cuda.blockIdx.z
    if query < s.shape[1] and key < s.shape[2]:
        total = np.float32(0)
        shared_by = q.shape[0] // k.shape[0]
        for i in range(q.shape[2]):
            total += q[head, query, i] * k[head // shared_by, key, i]
        s[head, query, key] = scale * total if key <= query + further else NOTHING


@cuda.jit
def softmax(s, lse):
    """Replace each row of s by its softmax, and keep the logarithm of its sum: a warp per row, lanes along it."""
    lane, row = cuda.threadIdx.x, cuda.blockIdx.x * ROWS + cuda.threadIdx.y
    head = cuda.blockIdx.y
    if row >= s.shape[1]:
        return
    largest, total = NOTHING, np.float32(0)
    for key in range(lane, s.shape[2], 32):
        largest = max(largest, s[head, row, key])
    for step in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(ALL, largest, step))
    shift = largest if largest > NOTHING else np.float32(0)
    for key in range(lane, s.shape[2], 32):
        total += math.exp(s[head, row, key] - shift)
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(ALL, total, step)
    inverse = np.float32(0) if total == 0 else np.float32(1) / total
    for key in range(lane, s.shape[2], 32):
        s[head, row, key] = math.exp(s[head, row, key] - shift) * inverse
    if lane == 0:
        lse[head, row] = NOTHING if total == 0 else shift + math.log(total)


@cuda.jit
def weigh(p, v, out):
    """Compute out = p v: a thread per element."""
    column, query = cuda.grid(2)
    head = cuda.blockIdx.z
    if query < out.shape[1] and column < out.shape[2]:
        total = np.float32(0)
        shared_by = out.shape[0] // v.shape[0]
        for key in range(p.shape[2]):
            total += p[head, query, key] * v[head // shared_by, key, column]
        out[head, query, column] = total


# -- step 2: one kernel, online softmax ------------------------------------------------------------------------------


def rows_of(size: int) -> int:
    """Return queries of a block of step 2, which fit 48 KiB of shared memory beside a tile of keys."""
    return WARPS * (4 if size <= 128 else 1)


@functools.cache
def fused(size: int) -> Any:
    """Return step 2's kernel for heads of `size`, at most 256.

    A warp has some queries, its lanes have the keys of a tile: a score each. Of the output a lane has columns 32 apart.
    The largest score so far and the sum so far stay in registers; whenever a larger score comes, sum and output are
    scaled down (online softmax: Milakov and Gimelshein, 2018). One buffer holds the tile of keys, then that of values.
    """
    rows = rows_of(size)
    each, columns, pitch = rows // WARPS, -(-size // 32), size + 1 - size % 2  # an odd pitch: a column is in all banks

    @cuda.jit
    def attention_fused(q, k, v, out, lse, scale, further):
        tile = cuda.shared.array((KEYS, pitch), np.float32)
        queries = cuda.shared.array((rows, size), np.float32)
        result = cuda.local.array((each, columns), np.float32)
        largest = cuda.local.array(each, np.float32)
        total = cuda.local.array(each, np.float32)
        p = cuda.local.array(each, np.float32)
        lane, warp, head = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.y
        of_keys = head // (q.shape[0] // k.shape[0])
        first_query = cuda.blockIdx.x * rows
        for i in range(warp, rows, WARPS):
            query = min(first_query + i, q.shape[1] - 1)
            for column in range(lane, size, 32):
                queries[i, column] = q[head, query, column]
        for r in range(each):
            largest[r], total[r] = NOTHING, 0
            for c in range(columns):
                result[r, c] = 0

        # Tiles that the block's last query does not see are skipped.
        end = min(k.shape[1], first_query + rows + further)
        for first in range(0, end, KEYS):
            cuda.syncthreads()  # all have used the values before
            for i in range(warp, KEYS, WARPS):
                for column in range(lane, size, 32):
                    tile[i, column] = k[of_keys, min(first + i, k.shape[1] - 1), column]
            cuda.syncthreads()
            for r in range(each):
                p[r] = 0
            for i in range(size):
                of_key = tile[lane, i]
                for r in range(each):
                    p[r] += queries[warp * each + r, i] * of_key
            for r in range(each):
                query = first_query + warp * each + r
                score = NOTHING
                if first + lane < k.shape[1] and first + lane <= query + further:
                    score = scale * p[r]
                top = score
                for step in (16, 8, 4, 2, 1):
                    top = max(top, cuda.shfl_xor_sync(ALL, top, step))
                top = max(top, largest[r])
                shift = top if top > NOTHING else np.float32(0)
                less = math.exp(largest[r] - shift)
                p[r] = math.exp(score - shift)
                largest[r] = top
                total[r] = total[r] * less + p[r]  # the lane's share of the sum
                for c in range(columns):
                    result[r, c] *= less
            cuda.syncthreads()  # all have used the keys
            for i in range(warp, KEYS, WARPS):
                for column in range(lane, size, 32):
                    tile[i, column] = v[of_keys, min(first + i, k.shape[1] - 1), column]
            cuda.syncthreads()
            for key in range(KEYS):
                for r in range(each):
                    weight = cuda.shfl_sync(ALL, p[r], key)
                    for c in range(columns):
                        if lane + 32 * c < size:
                            result[r, c] += weight * tile[key, lane + 32 * c]

        for r in range(each):
            for step in (16, 8, 4, 2, 1):
                total[r] += cuda.shfl_xor_sync(ALL, total[r], step)
            query = first_query + warp * each + r
            if query < q.shape[1]:
                inverse = np.float32(0) if total[r] == 0 else np.float32(1) / total[r]
                for c in range(columns):
                    if lane + 32 * c < size:
                        out[head, query, lane + 32 * c] = result[r, c] * inverse
                if lane == 0:
                    lse[head, query] = NOTHING if total[r] == 0 else largest[r] + math.log(total[r])

    return attention_fused
