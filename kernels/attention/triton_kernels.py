"""Step 3 once more, in Triton, where its extra is installed: `pip install "warplab[triton]"`. Float16 alone.

What step 3 says of fragments, copies and tiles of shared memory, Triton chooses itself; what is left is the algorithm.
"""

import importlib
from typing import Any

import numpy as np
import triton
import triton.language as tl

from kernels.attention.sources import check_size, checked_call
from warplab import cp
from warplab.hardware import backend

ROWS, KEYS = 64, 32  # of a block, and of its tile


@triton.jit
def attention_triton(
    q,
    k,
    v,
    out,
    lse,
    queries,
    keys,
    shared_by,
    further,
    scale,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Compute a block of queries of a head. COLUMNS: SIZE or the next power of two."""
    first, head = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS, tl.program_id(1).to(tl.int64)
    rows, columns = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = (rows < queries)[:, None] & (columns < SIZE)[None, :]
    at = (head * queries + rows)[:, None] * SIZE + columns[None, :]
    of_q = tl.load(q + at, mask=inside, other=0.0)
    k += head // shared_by * keys * SIZE
    v += head // shared_by * keys * SIZE
    largest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, COLUMNS), tl.float32)
    to_log2 = scale * 1.4426950408889634
    for start in range(0, tl.minimum(keys, first + ROWS + further), KEYS):
        key = start + tl.arange(0, KEYS)
        here = (key < keys)[:, None] & (columns < SIZE)[None, :]
        of_k = tl.load(k + key[:, None] * SIZE + columns[None, :], mask=here, other=0.0)
        s = tl.dot(of_q, tl.trans(of_k))
        s = tl.where((key < keys)[None, :] & (key[None, :] <= rows[:, None] + further), s, float("-inf"))
        top = tl.maximum(largest, tl.max(s, 1))
        shift = tl.where(top == float("-inf"), 0.0, top * to_log2)
        less = tl.exp2(largest * to_log2 - shift)
        p = tl.exp2(s * to_log2 - shift[:, None])
        total = total * less + tl.sum(p, 1)
        of_v = tl.load(v + key[:, None] * SIZE + columns[None, :], mask=here, other=0.0)
        result = tl.dot(p.to(of_v.dtype), of_v, result * less[:, None])
        largest = top
    any_key = total != 0
    result = tl.where(any_key[:, None], result / tl.where(any_key, total, 1.0)[:, None], 0.0)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)
    sums = tl.where(any_key, largest * scale + tl.log(tl.where(any_key, total, 1.0)), float("-inf"))
    tl.store(lse + head * queries + rows, sums, mask=rows < queries)


def forward_triton(q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None) -> tuple[Any, Any]:
    """Compute what `forward` does, of float16, with the same arguments and errors."""
    call = checked_call(q, k, v, causal, scale, (np.dtype(np.float16),))
    check_size(call.size)
    out, lse = cp.zeros(q.shape, q.dtype), cp.full(q.shape[:3], -np.inf, np.float32)
    if call.heads and call.queries and call.keys:
        arrays = [q, k, v, out, lse]
        if backend.name() == "gpu":  # Triton takes PyTorch's tensors there
            torch = importlib.import_module("torch")
            arrays = [torch.as_tensor(x, device="cuda") for x in arrays]
        else:
            importlib.import_module("warplab.dropin.triton").install()
        numbers = call.queries, call.keys, call.shared_by, call.further, call.scale
        columns = triton.next_power_of_2(call.size)
        grid = triton.cdiv(call.queries, ROWS), call.heads
        attention_triton[grid](*arrays, *numbers, SIZE=call.size, COLUMNS=columns, ROWS=ROWS, KEYS=KEYS)
    return out, lse
