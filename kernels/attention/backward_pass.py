"""`backward`: gradients of attention by recomputation, with its arguments checked."""

import functools
import math
from typing import Any

import numpy as np

from kernels.attention.forward_pass import HALVES
from kernels.attention.sources import SOURCES, TYPES, Call, Queued, boxes, check_size, checked_call, compiled, queue
from warpcourse.bench import hopper
from warpcourse.bench.device_arguments import check_array
from warplab import cp

FILE, WARPS = "backward.cu", 4
STEPS = "mma", "wgmma"
WGMMA_SIZES, WGMMA_KEYS, WGMMA_THREADS, STAGES = (64, 128), 128, 384, 2  # as backward_wgmma.cu has them


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


def wgmma_queries(size: int) -> int:
    """Return queries of a tile of step "wgmma"."""
    return 8192 // size


def wgmma_bytes(size: int) -> int:
    """Return its dynamic shared memory: k and v, stages of q and dout, two of ds, and room to start at 1024 bytes."""
    queries = wgmma_queries(size)
    return 4 * (WGMMA_KEYS * size + STAGES * queries * size + WGMMA_KEYS * queries) + 1024


def wgmma_options(size: int, dtype: Any) -> tuple[str, ...]:
    """Return its options for the compiler."""
    kind = TYPES[np.dtype(dtype).name]
    return f"-I{SOURCES.folder}", f"-DTYPE={kind}", f"-DHEAD_SIZE={size}", f"-DSTAGES={STAGES}"


def _mma(arrays: tuple, out: Any, dout: Any, lse: Any, gradients: tuple, call: Call) -> None:
    queue(launches(arrays, out, dout, lse, cp.empty(call.heads * call.queries, np.float32), gradients, call))


def _wgmma(*given: Any) -> None:
    hopper.require("wgmma", "mma")
    if given[-1].size in WGMMA_SIZES:
        queue(wgmma(*given))
    else:
        _mma(*given)


def wgmma(arrays: tuple, out: Any, dout: Any, lse: Any, gradients: tuple, call: Call) -> list[Queued]:
    """Return the launches of step "wgmma"."""
    size, (q, k, v), (dq, dk, dv) = call.size, arrays, gradients
    options = wgmma_options(size, out.dtype)
    of_queries, products, of_dq = (
        functools.partial(hopper.kernel, SOURCES.folder / "backward_wgmma.cu", f"attention_{name}", options)
        for name in ("of_queries", "backward_wgmma", "dq")
    )
    queries = wgmma_queries(size)
    tiles = math.ceil(call.queries / queries)
    rows = call.heads * tiles * queries
    lse_and_delta, sums = cp.empty(2 * rows, np.float32), cp.zeros(rows * size, np.float32)
    prepared = out, dout, lse, lse_and_delta, np.int32(call.queries), np.int32(rows)
    maps = boxes(q, queries), boxes(k, WGMMA_KEYS), boxes(v, WGMMA_KEYS), boxes(dout, queries)
    grid = math.ceil(call.keys / WGMMA_KEYS), call.heads // call.shared_by
    arguments = *maps, lse_and_delta, sums, dk, dv, call.of_kernel
    return [
        Queued("lse and delta", of_queries, math.ceil(rows * size / 8 / 256), 256, prepared),
        Queued("gradients by wgmma", products, grid, WGMMA_THREADS, arguments, wgmma_bytes(size)),
        Queued("dq", of_dq, (tiles, call.heads), 512, (sums, dq, call.of_kernel)),
    ]


def backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    dout: Any,
    causal: bool = False,
    scale: float | None = None,
    step: str = "mma",
) -> tuple[Any, Any, Any]:
    """Compute the gradients of q, k and v, given `dout`, that of the output; return them at once.

    `q`, `k`, `v`, `causal`, `scale`: as `forward` was given them, float16 or the bits of bfloat16; `out`, `lse`: what
    it returned; `dout`: like `out`. `step`: of STEPS. With "mma" the result is the same each time; "wgmma", for Hopper,
    adds dq up in float32 in an order that is not, and takes heads of WGMMA_SIZES (others go to "mma"). Raise as
    `forward` does.
    """
    if step not in STEPS:
        raise ValueError(f"there is no step {step!r}; choose one of {', '.join(map(repr, STEPS))}")
    call = checked_call(q, k, v, causal, scale, HALVES)
    check_size(call.size)
    for name, array in (("out", out), ("dout", dout)):
        check_array(name, array, tuple(q.shape), dtype=q.dtype, alignment=16)
    check_array("lse", lse, tuple(q.shape[:3]))
    dq, dk, dv = (cp.empty(x.shape, x.dtype) for x in (q, k, v))
    if not call.heads * call.queries or not call.keys:
        for gradient in (dq, dk, dv):
            gradient.fill(0)
        return dq, dk, dv
    (_mma if step == "mma" else _wgmma)((q, k, v), out, dout, lse, (dq, dk, dv), call)
    return dq, dk, dv
