"""`forward`: attention by any step of the ladder, with its arguments checked."""

import functools
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.attention import numba_kernels
from kernels.attention.sources import (
    SOURCES,
    TYPES,
    Call,
    Queued,
    boxes,
    check_output,
    check_size,
    checked_call,
    compiled,
    queue,
)
from warpcourse.bench import hopper
from warpcourse.bench.lab_kernels import by_name
from warplab import cp

FLOAT32, HALVES = (np.dtype(np.float32),), (np.dtype(np.float16), np.dtype(np.uint16))
MOST_SIZE = 256  # of a head
ENOUGH = 0.9  # of the multiprocessors' time, where all their work is given out in advance


@dataclass(frozen=True)
class Step:
    """One way to compute attention. `run` queues it, given q, k, v, out and lse without the batch, and the call."""

    number: int
    name: str
    dtypes: tuple[Any, ...]
    run: Callable[..., None]


def naive(q: Any, k: Any, v: Any, out: Any, lse: Any, call: Call, s: Any) -> list[Queued]:
    """Return step 1's launches. `s`: float32, (heads, length, length of k), for scores and weights."""
    tile, rows = numba_kernels.TILE, numba_kernels.ROWS
    across, down, columns = (math.ceil(n / tile) for n in (call.keys, call.queries, call.size))
    scale, further, kernels, square = np.float32(call.scale), np.int32(call.further), numba_kernels, (tile, tile)
    lines = math.ceil(call.queries / rows), call.heads
    return [
        Queued("scores", lambda: kernels.scores, (across, down, call.heads), square, (q, k, s, scale, further)),
        Queued("softmax", lambda: kernels.softmax, lines, (32, rows), (s, lse)),
        Queued("weigh", lambda: kernels.weigh, (columns, down, call.heads), square, (s, v, out)),
    ]


def fused(q: Any, k: Any, v: Any, out: Any, lse: Any, call: Call) -> list[Queued]:
    """Return step 2's launch."""
    kernel = functools.partial(numba_kernels.fused, call.size)
    grid = math.ceil(call.queries / numba_kernels.rows_of(call.size)), call.heads
    arguments = q, k, v, out, lse, np.float32(call.scale), np.int32(call.further)
    return [Queued("fused", kernel, grid, (32, numba_kernels.WARPS), arguments)]


def mma(q: Any, k: Any, v: Any, out: Any, lse: Any, call: Call) -> list[Queued]:
    """Return step 3's launch."""
    warps, keys, rows = 4, *((128, 2) if call.size <= 64 else (64, 2) if call.size <= 128 else (32, 1))
    kernel = compiled("3_mma.cu", f"attention_mma<{TYPES[q.dtype.name]}, {call.size}, {keys}, {warps}, {rows}>")
    queries = 16 * rows * warps
    grid = math.ceil(call.queries / queries), call.heads
    arguments = q, k, v, out, lse, call.of_kernel
    return [Queued("mma", kernel, grid, 32 * warps, arguments, (queries + 2 * keys) * (call.size + 8) * 2)]


@dataclass(frozen=True)
class WgmmaSizes:
    """What step 4 is compiled for, by the size of a head."""

    size: int
    keys: int  # of a tile
    stages: int  # tiles of keys, and of values, in shared memory
    consumers: int  # warpgroups that multiply, 64 queries each

    @property
    def queries(self) -> int:
        """Return queries of a tile."""
        return 64 * self.consumers

    @property
    def threads(self) -> int:
        """Return threads of a block."""
        return 128 * (1 + self.consumers)

    @property
    def shared_bytes(self) -> int:
        """Return shared memory of a block, with room to start at a multiple of 1024."""
        lines = math.ceil(self.size / hopper.LINE) * (self.queries + 2 * self.stages * self.keys)
        return lines * hopper.LINE_BYTES + 1024

    def options(self, dtype: Any) -> tuple[str, ...]:
        """Return options for the compiler."""
        names = "HEAD_SIZE", "KEYS", "STAGES", "CONSUMERS"
        sizes = (f"-D{name}={value}" for name, value in zip(names, astuple(self), strict=True))
        return f"-I{SOURCES.folder}", f"-DTYPE={TYPES[np.dtype(dtype).name]}", *sizes


def wgmma_sizes(size: int, causal: bool) -> WgmmaSizes:
    """Return them: measured on an H200 for heads of 64 and 128. Larger tiles of queries skip less of a causal mask."""
    if size > 64:
        return WgmmaSizes(size, 64 if size > 128 else 128, 2, 2)
    return WgmmaSizes(size, 128, 3, 2 if causal else 3)


def busy(work: int, at_a_time: int) -> float:
    """Return the share of the time that is used to do so much work in rounds."""
    return work / at_a_time / math.ceil(work / at_a_time)


def wgmma(q: Any, k: Any, v: Any, out: Any, lse: Any, call: Call) -> list[Queued]:
    """Return step 4's launch."""
    hopper.require("wgmma", "mma")
    sizes = wgmma_sizes(call.size, call.causal)
    kernel = functools.partial(hopper.kernel, SOURCES.folder / "4_wgmma.cu", "attention_wgmma", sizes.options(q.dtype))
    maps = boxes(q, hopper.GROUP_ROWS), boxes(k, sizes.keys), boxes(v, sizes.keys)
    tiles, multiprocessors = math.ceil(call.queries / sizes.queries) * call.heads, hopper.multiprocessors()
    grid = multiprocessors if busy(tiles, 2 * multiprocessors) >= ENOUGH else tiles
    arguments = *maps, out, lse, call.of_kernel, np.int32(call.heads)
    return [Queued("wgmma", kernel, grid, sizes.threads, arguments, sizes.shared_bytes)]


def _naive(*arguments: Any) -> None:
    call, most = arguments[-1], 65535 * numba_kernels.TILE  # blocks in y
    if call.queries > most:
        raise ValueError(f"q has {call.queries:,} queries; naive takes at most {most:,}")
    queue(naive(*arguments, cp.empty((call.heads, call.queries, call.keys), np.float32)))


STEPS: dict[str, Step] = by_name(
    Step(1, "naive", FLOAT32, _naive),
    Step(2, "fused", FLOAT32, lambda *arguments: queue(fused(*arguments))),
    Step(3, "mma", HALVES, lambda *arguments: queue(mma(*arguments))),
    Step(4, "wgmma", HALVES, lambda *arguments: queue(wgmma(*arguments))),
)


def step(name: str | int) -> Step:
    """Return the step of that name or number; ValueError names the others."""
    for known in STEPS.values():
        if name in (known.name, known.number):
            return known
    choices = ", ".join(f"{known.number} or {known.name!r}" for known in STEPS.values())
    raise ValueError(f"there is no step {name!r}; choose one of {choices}")


def forward(
    q: Any,
    k: Any,
    v: Any,
    causal: bool = False,
    scale: float | None = None,
    step: str | int = "mma",
    out: Any = None,
    lse: Any = None,
) -> tuple[Any, Any]:
    """Compute softmax(scale * q kᵀ) v; return the output and the logarithms of the sums at once, before kernels finish.

    `q`: device array, C-contiguous, of shape (batch, heads, length, size); `k`, `v`: likewise, (batch, heads of k,
    length of k, size), where heads is a multiple of heads of k. `step`: a name or number in STEPS. 1 and 2 take float32
    and any size up to 256; the others float16, or uint16 that holds the bits of bfloat16, and `sources.SIZES`.
    `causal`, and queries that see no key: as in `reference`. `scale`: more than 0; None for 1 / sqrt(size).
    `out`: of q's shape and dtype, `lse`: float32, (batch, heads, length), both without overlap with the inputs; None
    allocates them.
    Raise TypeError for arrays in host memory, RuntimeError where the GPU lacks a step's instructions, ValueError for
    every other argument that does not fit.
    """
    chosen = _step(step)
    call = checked_call(q, k, v, causal, scale, chosen.dtypes)
    if chosen.dtypes is HALVES:
        check_size(call.size)
    elif not 0 < call.size <= MOST_SIZE:
        raise ValueError(f"heads have a size of {call.size}; {chosen.name} takes 1 to {MOST_SIZE}")
    out = cp.empty(q.shape, q.dtype) if out is None else out
    lse = cp.empty(q.shape[:3], np.float32) if lse is None else lse
    check_output("out", out, tuple(q.shape), q.dtype, q, k, v)
    check_output("lse", lse, tuple(q.shape[:3]), np.float32, q, k, v, out)
    if call.heads and call.queries:  # a grid of no blocks is an invalid launch
        if call.keys:
            flat = (x.reshape(call.heads if x is out or x is q else -1, *x.shape[2:]) for x in (q, k, v, out))
            chosen.run(*flat, lse.reshape(call.heads, call.queries), call)
        else:
            out.fill(0)
            lse.fill(-np.inf)
    return out, lse


_step = step
