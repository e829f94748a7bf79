"""`backward`: gradients of attention by recomputation, with its arguments checked."""

import math
from typing import Any

import numpy as np

from kernels.attention.forward_pass import HALVES
from kernels.attention.sources import TYPES, Call, Queued, check_size, checked_call, compiled, queue
from warpcourse.bench.device_arguments import check_array
from warplab import cp

FILE, WARPS = "backward.cu", 4


def launches(arrays: tuple, out: Any, dout: Any, lse: Any, delta: Any, gradients: tuple, call: Call) -> list[Queued]:
    """Return the launches that compute `delta` and then the gradients of `arrays`, q, k and v. Sizes of tiles are by
    arithmetic, not tuned."""
    kind, rows, size = TYPES[out.dtype.name], call.heads * call.queries, call.size
    tile, block = 64 if size <= 128 else 32, 16 * WARPS
    of_delta = compiled(FILE, f"attention_delta<{kind}, {size}>")
    found = [Queued("delta", of_delta, math.ceil(rows / WARPS), 32 * WARPS, (out, dout, delta, np.int32(rows)))]
    arguments = *arrays, dout, lse, delta, *gradients, call.of_kernel
    for of_keys, length, heads in ((False, call.queries, call.heads), (True, call.keys, call.heads // call.shared_by)):
        kernel = compiled(FILE, f"attention_backward<{kind}, {size}, {tile}, {WARPS}, {str(of_keys).lower()}>")
        name, grid = f"backward, rows are {'keys' if of_keys else 'queries'}", (math.ceil(length / block), heads)
        found.append(Queued(name, kernel, grid, 32 * WARPS, arguments, 2 * (block + tile) * (size + 8) * 2))
    return found


def backward(
    q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    """Compute the gradients of q, k and v, given `dout`, that of the output; return them at once.

    `q`, `k`, `v`, `causal`, `scale`: as `forward` was given them, float16 or the bits of bfloat16; `out`, `lse`: what
    it returned; `dout`: like `out`. The result is the same each time. Raise as `forward` does.
    """
    call = checked_call(q, k, v, causal, scale, HALVES)
    check_size(call.size)
    for name, array in (("out", out), ("dout", dout)):
        check_array(name, array, tuple(q.shape), dtype=q.dtype, alignment=16)
    check_array("lse", lse, tuple(q.shape[:3]))
    dq, dk, dv = (cp.empty(x.shape, x.dtype) for x in (q, k, v))
    rows = call.heads * call.queries
    if not rows or not call.keys:
        for gradient in (dq, dk, dv):
            gradient.fill(0)
        return dq, dk, dv
    queue(launches((q, k, v), out, dout, lse, cp.empty(rows, np.float32), (dq, dk, dv), call))
    return dq, dk, dv
