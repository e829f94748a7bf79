"""Step 10, `10_split_k.cu`: what a launch of it is made of, and products of any shape by it."""

import functools
import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.matmul.ladder import SOURCES, tuned_grid
from kernels.matmul.tiles import Tiles
from warpcourse.bench.lab_kernels import launch as launch_kernel
from warpcourse.bench.lab_kernels import zeroed_counters
from warplab import cp

MAX_PARTS = 1024
PAD_BLOCKS, PAD_THREADS = 1056, 256  # of the copy with wider rows


@dataclass(frozen=True)
class Plan:
    """How a product is computed: sizes, blocks that share the depth of a tile (`parts`), and whether b is first copied
    to rows of whole 16 bytes (`pad`), where it has others."""

    tiles: Tiles
    parts: int = 1
    pad: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for parts that a grid does not take."""
        if not 1 <= self.parts <= MAX_PARTS:
            raise ValueError(f"{self}: parts must be 1 to {MAX_PARTS}")

    def refuses(self, k: int) -> str:
        """Return why the plan is not for a product of this depth, "" if it is."""
        steps = math.ceil(k / self.tiles.bk)
        return f"a depth of {k} has {steps} tiles for {self.parts} blocks" if self.parts > steps else ""

    def entry(self, b_words: int, c_aligned: bool) -> str:
        """Return the instance's name for the compiler."""
        if self.tiles.few_rows:
            return f"matmul_few_rows<{self.tiles.bm}, {self.tiles.blocks}, {b_words}, {str(self.parts > 1).lower()}>"
        sizes = ", ".join(map(str, astuple(self.tiles)))
        flags = ", ".join(str(flag).lower() for flag in (c_aligned, self.parts > 1))
        return f"matmul_split_k<{sizes}, {b_words}, {flags}>"


def words(x: Any) -> int:
    """Return how many words of a matrix's rows, 4, 2 or 1, a copy can take: all rows start at multiples of them."""
    address = x.__cuda_array_interface__["data"][0]
    return next(n for n in (4, 2, 1) if x.shape[1] % n == 0 and address % (4 * n) == 0)


def launch(a: Any, b: Any, c: Any, plan: Plan) -> None:
    """Queue the kernel, without any check but `Plan.refuses`, after a copy of b where the plan says so."""
    m, n = c.shape
    k = a.shape[1]
    if reason := plan.refuses(k):
        raise ValueError(f"{plan}: {reason}")
    if plan.pad and words(b) < 4:
        wide = cp.empty((k, -(-n // 4) * 4), np.float32)
        sizes = map(np.int32, (k, n, wide.shape[1]))
        grid = min(PAD_BLOCKS, math.ceil(wide.size / 4 / PAD_THREADS))
        launch_kernel(SOURCES.function("10_split_k.cu", "matmul_pad"), grid, PAD_THREADS, (b, wide, *sizes))
        b = wide
    (tiles,) = tuned_grid(plan.tiles, m, n)
    partials = counters = np.uint64(0)
    if plan.parts > 1:
        partials = cp.empty(tiles * plan.parts * plan.tiles.bm * plan.tiles.bn, np.float32)
        counters = zeroed_counters(tiles)
    arguments = a, b, c, partials, counters, *map(np.int32, (m, n, k, b.shape[1]))
    function = function_of(plan, words(b), words(c) == 4)
    launch_kernel(function, (tiles, 1, plan.parts), plan.tiles.threads, arguments, plan.tiles.shared_bytes)


def function_of(plan: Plan, b_words: int, c_aligned: bool) -> Any:
    """Return the compiled kernel for a plan, what `words` says of b, and whether it says 4 of c."""
    return _function(plan.entry(b_words, c_aligned), plan.tiles.shared_bytes)


@functools.cache
def _function(entry: str, shared_bytes: int) -> Any:
    function = SOURCES.function("10_split_k.cu", entry)
    function.max_dynamic_shared_size_bytes = shared_bytes
    return function
