"""Dense layers of one vector whose weights have 16, 8 or 4 bits: few_bits.cu, beside PyTorch's products."""

import functools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from kernels.fusion.tactics.sources import SOURCES
from warpcourse.bench import timing
from warpcourse.bench.lab_kernels import Kernel, launch
from warpcourse.bench.pytorch import torch_on_gpu
from warplab import cp

SIZES, GROUP = (4096, 8192), 64
INT4 = f"INT4, groups of {GROUP}"
FORMATS = {"FP16": (16, 0), "FP8": (8, 0), f"FP8, groups of {GROUP}": (8, GROUP), INT4: (4, GROUP)}  # 0: a whole row
THREADS = 256  # of a block
ROWS = {16: 2, 8: 2, 4: 4}  # of a warp, by bits: the fastest of 2, 4 and 8
STEPS = {8: 448, 4: 7}  # of the largest weight that a scale stands for
TOLERANCE = 1e-3  # of the largest result
RUNS = 20


@functools.cache
def kernel(bits: int, group: int) -> Any:
    """Return the compiled kernel for weights of so many bits, with a scale for each group."""
    entry = f"few_bits<{bits}, {ROWS[bits]}, {group}>"
    return Kernel(entry, SOURCES, "few_bits.cu", entry).function()


def packed(weights: np.ndarray, bits: int, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights (rows, columns) as the kernel reads them, their scales in float16, and what they stand for."""
    if bits == 16:
        half = weights.astype(np.float16)
        return half, np.ones(1, np.float16), half.astype(np.float32)
    groups = weights.reshape(len(weights), -1, group or weights.shape[1])
    largest = np.abs(groups).max(axis=2, keepdims=True)
    scales = np.where(largest > 0, largest / STEPS[bits], 1).astype(np.float16)
    steps = groups / scales.astype(np.float32)
    if bits == 8:
        rounded = steps.astype(ml_dtypes.float8_e4m3fn)
        values = rounded.astype(np.float32) * scales
        return rounded.reshape(weights.shape), scales.ravel(), values.reshape(weights.shape)
    rounded = np.clip(np.rint(steps), -8, 7)
    eights = (rounded + 8).astype(np.uint32).reshape(len(weights), -1, 8)
    words = np.bitwise_or.reduce(eights << np.arange(0, 32, 4, dtype=np.uint32), axis=2)
    return words, scales.ravel(), (rounded * scales).reshape(weights.shape).astype(np.float32)


def product(bits: int, group: int, w: Any, scales: Any, x: Any, y: Any) -> None:
    """Queue y = W x. `x`: float16 (columns,), a multiple of 64 and of `group`; `y`: float32 (rows,)."""
    blocks = math.ceil(len(y) / (THREADS // 32 * ROWS[bits]))
    launch(kernel(bits, group), blocks, THREADS, (w, scales, x, y, np.int32(len(y)), np.int32(len(x))))


def weight_only() -> dict[str, Any]:
    """Measure square layers by bits of a weight, each call's weights beyond the L2, in turns with PyTorch's."""
    timing.cupy_on_gpu()
    random, rows = np.random.default_rng(0), []
    for size in SIZES:
        weights = (random.standard_normal((size, size)) / math.sqrt(size)).astype(np.float32)
        x = random.standard_normal(size).astype(np.float16)
        made, about = _by_pytorch(weights, x), {}
        for name, of in FORMATS.items():
            w, scales, values = packed(weights, *of)
            arrays = w.view(np.uint32), scales, x, np.zeros(size, np.float32)
            sets = _sets(lambda arrays=arrays, of=of: (*of, *map(cp.asarray, arrays)), w.nbytes)
            product(*sets[0])
            found, expected = cp.asnumpy(sets[0][-1]), values.astype(np.float64) @ x.astype(np.float64)
            error = float(np.abs(found - expected).max() / np.abs(expected).max())
            made[name] = timing.Candidate(product, sets)
            about[name] = {"error": error, "correct": error <= TOLERANCE}
        for name, timed in timing.time_together(made, runs=RUNS).items():
            bits, group = FORMATS[name.removeprefix("PyTorch, ")]
            nbytes = size * size * (bits + (16 / group if group else 0)) / 8
            row = {"size": size, "weights": name, "bytes": nbytes, "seconds": timed.seconds}
            rows.append(row | {"bytes_per_second": nbytes / timed.seconds} | about.get(name, {}))
    return {"rows": rows, "torch": str(torch_on_gpu().__version__)}


def _sets(make: Callable[[], tuple], nbytes: int) -> list[tuple]:
    return [make() for _ in range(timing.sets_beyond_l2(nbytes, RUNS))]


def _by_pytorch(weights: np.ndarray, x: np.ndarray) -> dict[str, timing.Candidate]:
    """Return PyTorch's products in FP16 and, of any numbers, in INT4; its results are not checked."""
    torch, size = torch_on_gpu(), len(weights)
    half, vector = torch.from_numpy(weights).cuda().half(), torch.from_numpy(x).cuda()
    few, row = torch.ops.aten, vector.bfloat16()[None]
    packed_in_two = torch.randint(0, 256, (size, size // 2), dtype=torch.uint8, device="cuda")
    tiles = few._convert_weight_to_int4pack(packed_in_two, 8)
    scales = torch.ones(size // GROUP, size, 2, dtype=torch.bfloat16, device="cuda")
    fours = _sets(lambda: (row, tiles.clone(), GROUP, scales.clone()), size * size // 2)
    return {
        "PyTorch, FP16": timing.Candidate(torch.mv, _sets(lambda: (half.clone(), vector), 2 * size * size)),
        f"PyTorch, {INT4}": timing.Candidate(few._weight_int4pack_mm, fours),
    }
