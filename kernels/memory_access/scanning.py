"""Inclusive prefix sum of a float32 vector of any length: block by block, with decoupled look-back, and pipelined."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import BLOCK, FLOAT4_BYTES, SOURCES
from warpcourse.bench.device_arguments import check_apart, check_array
from warpcourse.bench.lab_kernels import Kernel, by_name, choose
from warplab import cp
from warplab.hardware import backend

TILE = 256 * 8 * 4  # elements that a block of scan_look_back takes
PIPELINED_BLOCK, PIPELINED_VECTORS = 512, (1, 2, 3, 4, 6)  # threads, and float4 of a thread
FEW_TILE, FEW_BEFORE = 1024, (7, 15)  # elements of a block of scan_few, and float4 that a thread adds up before them


@dataclass(frozen=True)
class Scan(Kernel):
    """A kernel. `plan(a, out)` allocates what launches on these arrays need and returns a function that launches."""

    plan: Callable[[Any, Any], Callable[[], None]] = lambda a, out: lambda: None


def _by_blocks(a: Any, out: Any) -> Callable[[], None]:
    levels = []  # arrays to scan: the elements, then the sums of blocks
    while True:
        blocks = math.ceil(a.size / BLOCK)
        sums = cp.empty(blocks, np.float32)
        levels.append((a, out, sums, blocks))
        if blocks == 1:
            break
        a, out = sums, cp.empty(blocks, np.float32)
    scan, add = (SOURCES.function("scan.cu", entry) for entry in ("scan_blocks", "add_before"))

    def launch() -> None:
        for source, to, sums, blocks in levels:
            scan((blocks,), (BLOCK,), (source, to, sums, np.uint64(source.size)))
        for (_, to, _, blocks), (_, scanned, _, _) in zip(levels[-2::-1], levels[:0:-1], strict=True):
            add((blocks - 1,), (BLOCK,), (to, scanned, np.uint64(to.size)))

    return launch


def _look_back(a: Any, out: Any) -> Callable[[], None]:
    tiles = math.ceil(a.size / TILE)
    state = cp.empty(tiles + 1, np.uint64)  # of the tiles, then the number of the next one
    scan = SOURCES.function("scan.cu", "scan_look_back")

    def launch() -> None:
        state.fill(0)
        scan((tiles,), (256,), (a, out, np.uint64(a.size), state[:tiles], state[tiles:].view(np.uint32)))

    return launch


def _pipelined(a: Any, out: Any) -> Callable[[], None]:
    blocks = math.ceil(a.size / FEW_TILE)
    if few := [most for most in FEW_BEFORE if blocks <= most + 1]:
        scan = SOURCES.function("scan.cu", f"scan_few<{few[0]}>")
        return lambda: scan((blocks,), (FEW_TILE // 4,), (a, out, np.uint64(a.size)))
    on_gpu = backend.name() == "gpu"
    attributes = cp.cuda.Device().attributes if on_gpu else {}
    sizes = PIPELINED_VECTORS
    if attributes.get("MaxSharedMemoryPerBlockOptin", 227_000) < 100_000:  # of a block: two tiles
        sizes = tuple(vectors for vectors in sizes if 2 * 16 * PIPELINED_BLOCK * vectors <= 49_152)
    at_work = 2 * attributes["MultiProcessorCount"] if on_gpu else 4  # blocks
    # A block's rounds take the time of its elements, and a little more: so rounds of which the last is nearly full.
    vectors = min(sizes, key=lambda v: math.ceil(a.size / (at_work * 4 * PIPELINED_BLOCK * v)) * (v + 1))
    tile = 4 * PIPELINED_BLOCK * vectors
    chosen = Kernel("cuda_pipelined", SOURCES, "scan.cu", f"scan_pipelined<{vectors}>")
    sums, shared_bytes = cp.zeros(math.ceil(a.size / tile), np.uint64), 2 * 4 * tile
    flags = itertools.count(1)  # of launches, the lower 32 bits
    grid = min(sums.size, chosen.resident_blocks(PIPELINED_BLOCK, shared_bytes))

    def launch() -> None:
        flag = np.uint32(next(flags) % 2**32)
        chosen.launch(grid, PIPELINED_BLOCK, (a, out, np.uint64(a.size), sums, flag), shared_bytes)

    return launch


SCANS = by_name(
    Scan("cuda_by_blocks", SOURCES, "scan.cu", "scan_blocks", plan=_by_blocks),
    Scan("cuda_look_back", SOURCES, "scan.cu", "scan_look_back", FLOAT4_BYTES, plan=_look_back),
    Scan("cuda_pipelined", SOURCES, "scan.cu", "scan_pipelined<6>", FLOAT4_BYTES, plan=_pipelined),
)


def prefix_sum(a: Any, out: Any, kernel: str = "cuda_pipelined") -> Any:
    """Compute out[i] = a[0] + ... + a[i] on the GPU; return `out` at once, before the kernel has finished.

    `a`, `out`: device arrays (CuPy), float32, of one shape of one dimension, C-contiguous, without overlap, at
    multiples of 16 bytes unless `kernel`, a name in SCANS, is cuda_by_blocks. The rounding of cuda_look_back differs
    from run to run. Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = choose(SCANS, kernel)
    check_array("a", a, alignment=chosen.alignment)
    if len(a.shape) != 1:
        raise ValueError(f"a has {len(a.shape)} dimensions; it must have one: a.ravel()")
    check_array("out", out, tuple(a.shape), alignment=chosen.alignment)
    if a.size:
        check_apart("a", a, out)
        chosen.plan(a, out)()
    return out
