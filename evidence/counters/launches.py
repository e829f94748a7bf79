"""The launches that hold the simulator's counters to Nsight Compute's: one for each pattern and shape."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from warpcourse.bench.compared_launches import Difference, Launch
from warpcourse.bench.lab_kernels import Sources

# Element types of CUDA C++ by the bytes of an access, and the NumPy dtype and items that stand for one.
TYPES = {
    1: ("unsigned char", np.uint8, 1),
    2: ("unsigned short", np.uint16, 1),
    4: ("float", np.float32, 1),
    8: ("float2", np.float32, 2),
    16: ("float4", np.float32, 4),
}
N = 4096
_INSTANCES = {
    "global_memory.cu": [f"{k}<{t[0]}>" for k in ("copy_strided", "gather", "scatter") for t in TYPES.values()],
    "shared_memory.cu": [f"{k}<{t[0]}>" for k in ("shared_load", "shared_store") for t in TYPES.values()]
    + ["matmul_tiled<16>", "matmul_tiled<32>"],
    "asynchronous.cu": [f"{k}<{TYPES[width][0]}>" for k in ("copy_async", "copy_async_apart") for width in (4, 8, 16)]
    + ["copy_tile<false>", "copy_tile<true>"],
    "divergence.cu": [],
    "atomics.cu": [],
}


def _kernels(file: str) -> list[str]:
    """Instances of a file's templates and its other kernels: all are listed, so that names of C++ are found."""
    lines = (Path(__file__).parent / file).read_text().splitlines()
    plain = [line.split("(")[0].split()[-1] for line in lines if line.startswith("__global__ void ")]
    return [*_INSTANCES[file], *plain]


SOURCES = Sources(__package__, templates={file: _kernels(file) for file in _INSTANCES})


def _cuda(file: str, kernel: str):
    return lambda: SOURCES.function(file, kernel)


def scrambled(count: int, seed: int = 1) -> np.ndarray:
    """uint32 that look random and are the same everywhere: the finaliser of MurmurHash3 of 0, 1, 2, …"""
    x = np.arange(count, dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 % 2**32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x


def integers(count: int, bound: int, seed: int = 1) -> np.ndarray:
    """int32 from 0 to `bound` - 1."""
    return (scrambled(count, seed) % np.uint32(bound)).astype(np.int32)


def permutation(count: int, seed: int = 1) -> np.ndarray:
    return np.argsort(scrambled(count, seed), kind="stable").astype(np.int32)


def data(count: int, dtype=np.float32, seed: int = 1) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return (scrambled(count, seed) >> np.uint32(8)).astype(dtype) / dtype(2**24)
    return scrambled(count, seed).astype(dtype)


def empty(count: int, dtype=np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


def _launch(name: str, file: str, kernel: str, blocks, threads, *arguments) -> Launch:
    arguments = tuple(np.int32(a) if type(a) is int else np.float32(a) if type(a) is float else a for a in arguments)
    return Launch(name, _cuda(file, kernel), blocks, threads, arguments)


def _global_memory() -> list[Launch]:
    file = "global_memory.cu"

    def strided(name: str, width: int, stride: int, offset: int, n: int = N, block: int = 256) -> Launch:
        type_name, dtype, items = TYPES[width]
        size = (n * stride + offset) * items
        blocks = -(-n // block)
        arrays = data(size, dtype), empty(size, dtype)
        return _launch(name, file, f"copy_strided<{type_name}>", blocks, block, *arrays, n, stride, offset)

    result = [strided(f"copy, stride {k}", 4, k, 0) for k in (1, 2, 3, 4, 8, 16, 32, 33)]
    result += [strided(f"copy, {k} elements misaligned", 4, 1, k) for k in (1, 2, 4)]
    for width in (1, 2, 8, 16):
        result += [strided(f"copy of {width} bytes per thread, stride {k}", width, k, 0) for k in (1, 2, 3)]
        result.append(strided(f"copy of {width} bytes per thread, misaligned by one", width, 1, 1))
    result += [
        strided("copy, one thread", 4, 1, 0, 1, 32),
        strided("copy, 1000 elements by blocks of 100", 4, 1, 0, 1000, 100),
        strided("copy of 16 bytes per thread by blocks of 100", 16, 1, 0, 1000, 100),
        strided("copy, blocks of 33", 4, 1, 0, 1000, 33),
    ]
    tables = {
        "random": integers(N, N),
        "a permutation within warps": (permutation(32)[None, :] + 32 * np.arange(N // 32)[:, None]).reshape(-1),
        "pairs of lanes alike": np.arange(N) // 2,
        "lanes alike": np.arange(N) // 32,
        "16 elements": integers(N, 16),
    }
    for what, index in tables.items():
        index = index.astype(np.int32)
        for width in (4, 8, 16) if what != "16 elements" else (1, 4):
            type_name, dtype, items = TYPES[width]
            arguments = data(N * items, dtype), index, empty(N * items, dtype), N
            result.append(
                _launch(f"gather of {width} bytes, {what}", file, f"gather<{type_name}>", 16, 256, *arguments)
            )
    for width in (2, 4, 8, 16):
        type_name, dtype, items = TYPES[width]
        arguments = data(N * items, dtype), permutation(N), empty(N * items, dtype), N
        result.append(_launch(f"scatter of {width} bytes, random", file, f"scatter<{type_name}>", 16, 256, *arguments))
    a, out = data(N), empty(N)
    n = 100  # of matrices: no multiple of a block
    square, image = (data(n * n, seed=k) for k in (1, 2))
    tiles = -(-n // 16), -(-n // 16)
    points = data(3 * N)
    return [
        *result,
        _launch("broadcast", file, "broadcast", 16, 256, a, out, N),
        _launch("reverse", file, "reverse", 16, 256, a, out, N),
        _launch("saxpy, grid-stride", file, "saxpy_grid_stride", 5, 256, 2.0, a, data(N, seed=2), N),
        _launch("array of structures, one field", file, "aos_one_field", 16, 256, points, out, N),
        _launch("array of structures, all fields", file, "aos_norm", 16, 256, points, out, N),
        _launch("array of structures, in place", file, "aos_scale", 16, 256, points, 2.0, N),
        _launch("array of structures of 16 bytes", file, "aos_aligned", 16, 256, data(4 * N), out, N),
        _launch("structure of arrays", file, "soa_norm", 16, 256, a, data(N, seed=2), data(N, seed=3), out, N),
        _launch("row sums", file, "row_sums", 1, 128, square, empty(n), n),
        _launch("column sums", file, "column_sums", 1, 128, square, empty(n), n),
        _launch("transpose, naive", file, "transpose_naive", tiles, (16, 16), square, empty(n * n), n),
        _launch("stencil of five points", file, "stencil", tiles, (16, 16), square, empty(n * n), n),
        _launch("matrix product, naive", file, "matmul_naive", tiles, (16, 16), square, image, empty(n * n), n),
        _launch("array in local memory", file, "local_array", 16, 256, a, integers(N, 16), out, N),
        _launch("constant memory, one address", file, "constant_uniform", 16, 256, a, out, N, 16),
        _launch("constant memory, by lane", file, "constant_by_lane", 16, 256, a, out, N),
    ]


def shared_patterns(width: int) -> dict[str, np.ndarray]:
    """Return index of each of 32 lanes, by the pattern's name; negative for lanes that do nothing. In elements of
    `width`."""
    lane = np.arange(32)
    words = max(1, width // 4)
    count = 16384 // width
    patterns = {f"stride {k}": lane * k for k in (1, 2, 3, 4, 8, 16, 32) if 31 * k < count}
    patterns |= {
        "one address": 0 * lane + 5,
        "pairs alike": lane // 2,
        "fours alike": lane // 4,
        "even lanes": np.where(lane % 2 == 0, lane, -1),
        "half a warp": np.where(lane < 16, lane, -1),
        "a quarter": np.where(lane % 4 == 1, lane, -1),
        "halves alike": lane % 16,
        "quarters alike": lane % 8,
        "pairs alike, then fours alike": np.where(lane < 16, lane // 2, lane // 4 * 2 + lane % 2),
        "reversed": 31 - lane,
        "permuted": permutation(32),
        "halves in other banks": lane % 16 * (32 // words) + lane // 16 * (16 // words),
        "rows of 33 words": lane * 33 if width < 8 else lane * (32 // words + 1),
    }
    for seed in range(1, 5):
        patterns[f"random {seed}"] = integers(32, count, seed)
    return patterns


def _shared_patterns() -> list[Launch]:
    file = "shared_memory.cu"
    result = []
    for width, (type_name, dtype, items) in TYPES.items():
        for what, index in shared_patterns(width).items():
            index = index.astype(np.int32)
            name = f"{width} bytes, {what}"
            out = empty(32 * items, dtype)
            result.append(_launch(f"shared load of {name}", file, f"shared_load<{type_name}>", 1, 32, index, out))
            chosen = index[index >= 0]
            if np.unique(chosen).size == chosen.size:  # otherwise the lanes race
                arguments = index, data(32 * items, dtype), empty(32, np.uint32)
                result.append(_launch(f"shared store of {name}", file, f"shared_store<{type_name}>", 1, 32, *arguments))
    return result


def _shared_memory() -> list[Launch]:
    file, result = "shared_memory.cu", []
    a, b, c = data(64 * 64), data(64 * 64, seed=2), empty(64 * 64)
    blocks, values = 16, data(N)
    for kind in ("tile", "padded", "swizzled"):
        result.append(_launch(f"transpose, {kind}", file, f"transpose_{kind}", (2, 2), (32, 8), a, c, 64))
    result += [
        _launch("matrix product, tiles of 16", file, "matmul_tiled<16>", (4, 4), (16, 16), a, b, c, 64),
        _launch("matrix product, tiles of 32", file, "matmul_tiled<32>", (2, 2), (32, 32), a, b, c, 64),
        _launch("matrix product of 50 × 50, tiles of 16", file, "matmul_tiled<16>", (4, 4), (16, 16), a, b, c, 50),
    ]
    for kind in ("interleaved", "strided", "sequential", "shuffle"):
        result.append(_launch(f"sum, {kind}", file, f"reduce_{kind}", blocks, 256, values, empty(blocks)))
    return [
        *result,
        _launch("scan, Hillis and Steele", file, "scan", blocks, 256, values, empty(N)),
        _launch("scan, Blelloch", file, "scan_tree", blocks // 2, 256, values, empty(N)),
    ]


def _asynchronous() -> list[Launch]:
    file = "asynchronous.cu"
    out = empty(4 * 32, np.uint32)
    result = [
        _launch(f"ldmatrix, rows {pitch} bytes apart", file, "load_matrix", 1, 32, out, pitch)
        for pitch in (16, 32, 64, 80, 128, 256)
    ]
    for width in (4, 8, 16):
        type_name, dtype, items = TYPES[width]
        for stride in (1, 2):
            arguments = data(1024 * items, dtype), empty(1024 * items, dtype), stride
            name = f"cp.async of {width} bytes, stride {stride}"
            result.append(_launch(name, file, f"copy_async<{type_name}>", 4, 256, *arguments))
    return [*result, *_copies(file)]


def _copies(file: str) -> list[Launch]:
    """cp.async with bank conflicts on the writing side, on the reading side, and on both."""
    result = []
    for width, apart in ((4, (0, 1, 2, 3, 8, 16)), (8, (0, 1, 2, 3, 8, 16)), (16, (0, 1, 2, 3, 4, 8))):
        type_name, dtype, items = TYPES[width]
        pairs = [*((1, k) for k in apart if k), *((k, 1) for k in apart if k != 1), (0, 0), (4, 4), (2, 8), (8, 2)]
        for source, target in pairs:
            name = f"cp.async of {width} bytes, {source} apart to {target} apart"
            arguments = data(64 * 16 * items, dtype), empty(64 * items, dtype), source, target
            result.append(_launch(name, file, f"copy_async_apart<{type_name}>", 1, 64, *arguments))
    for columns, pitch, target in ((4, 4, 4), (4, 64, 4), (4, 64, 5), (8, 8, 8), (8, 64, 8), (8, 64, 9)):
        arguments = data(64 * 64 * 4), empty(64 * columns * 4), columns, pitch, target
        name = f"tile of {16 * columns}-byte rows, {16 * pitch} apart to {16 * target} apart"
        result.append(_launch(name, file, "copy_tile<false>", 1, 128, *arguments))
        if target == columns:
            result.append(_launch(f"{name}, swizzled", file, "copy_tile<true>", 1, 128, *arguments))
    for zeros in (0, 2, 4):
        name = f"cp.async by every other thread, {zeros} of 4 without source"
        result.append(_launch(name, file, "copy_async_some", 1, 256, data(256), empty(256), zeros))
    return result


def _divergence() -> list[Launch]:
    file, values, out = "divergence.cu", data(N), empty(N)
    steps = {
        "uniform": "no branch",
        "branch_by_lane": "branch by lane",
        "branch_by_warp": "branch by warp",
        "one_lane": "one lane of 32",
        "nested": "nested branches",
        "switch_by_lane": "switch by lane",
    }
    result = [_launch(name, file, kernel, 16, 256, values, out, 32) for kernel, name in steps.items()]
    pairs = [integers(N, 5000, seed) for seed in (1, 2)]
    lengths = np.minimum(integers(1000, 4096), integers(1000, 4096, 2)) // 64
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    column = integers(int(start[-1]), 1000, 3)
    csr = start, column, data(column.size), data(1000), empty(1000), 1000
    return [
        *result,
        _launch("short conditions", file, "short_condition", 16, 256, values, out),
        _launch("trips by lane", file, "trips_by_lane", 16, 256, values, out),
        _launch("trips from data", file, "trips_from_data", 16, 256, values, integers(N, 50), out),
        _launch("early return of 24 lanes", file, "early_return", 16, 256, values, out, 32, 8),
        _launch("Collatz", file, "collatz", 16, 256, empty(N, np.int32), 1),
        _launch("Mandelbrot", file, "mandelbrot", (4, 8), (16, 8), empty(N, np.int32), 64, 64, 100),
        _launch(
            "binary search",
            file,
            "binary_search",
            16,
            256,
            np.sort(integers(1000, 10000)),
            integers(N, 10000, 2),
            empty(N, np.int32),
            1000,
            N,
        ),
        _launch("greatest common divisor", file, "gcd", 16, 256, *pairs, empty(N, np.int32)),
        _launch("break and continue", file, "search", 16, 256, integers(N, 64), empty(N, np.int32), 512, 8),
        _launch("sparse rows", file, "csr_rows", 8, 128, *csr),
        _launch("sparse rows, not unrolled", file, "csr_rows_not_unrolled", 8, 128, *csr),
    ]


def _atomics() -> list[Launch]:
    file, values, numbers = "atomics.cu", data(N), integers(N, 1000)
    ints, pixels = empty(2 * N, np.int32), data(N, np.uint8)

    def launch(name: str, kernel: str, *arguments, blocks: int = 16) -> Launch:
        return _launch(name, file, kernel, blocks, 256, *arguments)

    result = [
        launch("atomic add, own address", "add_distinct", ints, numbers),
        launch("atomic add, one address", "add_same", ints, numbers),
        launch("atomic add of floats, one address", "add_same_float", empty(1), values),
        launch("append", "append", ints, empty(N, np.int32), numbers),
        launch("append, one atomic per warp", "append_by_warp", ints, empty(N, np.int32), numbers),
        launch("histogram, global", "histogram_global", empty(256, np.uint32), pixels, N),
        launch("histogram, shared", "histogram_shared", empty(256, np.uint32), pixels, N, blocks=4),
        launch("maximum by compare-and-swap", "cas_maximum", empty(8, np.int32), values),
        launch(
            "exchange, minimum, maximum", "exchange_and_extremes", ints, empty(8 * N, np.int32), ints.copy(), numbers
        ),
    ]
    lane = np.arange(256)
    for what, index in {
        "own address": lane,
        "one address": 0 * lane,
        "one bank": lane % 32 * 32,
        "random": integers(256, 1024),
    }.items():
        arguments = empty(256, np.int32), index.astype(np.int32)
        result.append(launch(f"shared atomic add, {what}", "shared_add", *arguments, blocks=1))
    return result


def _numba() -> list[Launch]:
    def launch(name: str, kernel: str, blocks, threads, *arguments) -> Launch:
        return Launch(f"Numba: {name}", _cuda("numba_kernels.py", kernel), blocks, threads, arguments)

    n = 100
    a, b = (data(64 * 64, seed=k).reshape(64, 64) for k in (1, 2))
    odd = [data(n * n, seed=k).reshape(n, n) for k in (1, 2)]
    numbers = integers(N, 256)
    result = []
    for k in (1, 2, 32):
        shape = np.int64(N), np.int64(k), np.int64(0)
        arrays = data(N * k), empty(N * k)
        result.append(launch(f"copy, stride {k}", "copy_strided", 16, 256, *arrays, *shape))
    return [
        *result,
        launch("sum of matrices", "add_matrices", (7, 13), (16, 8), *odd, empty(n * n).reshape(n, n)),
        launch("transpose, padded", "transpose_padded", (2, 2), (32, 8), a, empty(N).reshape(64, 64)),
        launch("matrix product, tiles of 16", "matmul_tiled", (4, 4), (16, 16), a, b, empty(N).reshape(64, 64)),
        launch("sum, sequential", "block_sum", 16, 256, data(N), empty(16)),
        launch("histogram", "histogram", 16, 256, numbers, empty(256, np.int32)),
        launch("Mandelbrot", "mandelbrot", (4, 8), (16, 8), empty(N, np.int32).reshape(64, 64), np.int64(100)),
        launch("Collatz", "collatz", 16, 256, empty(N, np.int32), np.int64(1)),
    ]


_ORDER = "Depends on the order in which warps come, which is not the same from run to run on a GPU."
_UNROLLED = (
    "In PTX the loop is unrolled 4 times; ptxas unrolls it 4 times more, to 16 rows of the loop, with code for 8 and "
    "for 4 after it. Lanes whose rows differ in length part between these, so that a warp makes more requests. With "
    "`#pragma unroll 1` both leave the loop as it is."
)
_REPEATED = "Of the bins in one sector several occur twice; how the turns of the hardware go there is not modelled."
_NOT_COUNTED = (
    "ncu's metric of the bytes counts loads to registers only, that of the sectors also the copies to shared memory "
    "(LDGSTS). The simulator counts both in both, so that bytes a sector mean the same for a copy."
)
_CAS = (
    "How often a compare-and-swap must be repeated depends on the order in which warps come, which is not the same "
    "from run to run on a GPU: two recordings on one card read 454 and 431 requests, 684 and 612 branches, and two "
    "others 18 and 13 divergent ones."
)
_UNROLLED_MORE = "ptxas unrolls a loop that PTX has unrolled 4 times once more, so that it turns less often."
_LAID_OUT = "ptxas lays the conditions out with one branch more a warp."
_RARE = "A division of 0 goes the way for rare arguments, whose branches the simulator does not count."
_DIFFERENCES = {
    "append": (Difference("global_store_sectors", 0.05, _ORDER),),
    "append, one atomic per warp": (Difference("global_store_sectors", 0.05, _ORDER),),
    "maximum by compare-and-swap": (
        Difference("global_atomic", 1.0, _CAS),
        Difference("warp_efficiency", 0.1, _CAS),
        Difference("branches", 0.25, _CAS),
        Difference("divergent_branches", 1.0, _CAS),
    ),
    "sparse rows": (
        Difference("global_load", 0.15, _UNROLLED),
        Difference("branches", 0.6, _UNROLLED),
        Difference("divergent_branches", 0.6, _UNROLLED),
    ),
    **{
        name: (Difference("branches", 1.0, _UNROLLED_MORE),)
        for name in ("row sums", "column sums", "matrix product, naive")
    },
    **{name: (Difference("branches", 0.13, _LAID_OUT),) for name in ("constant memory, one address", "switch by lane")},
    **{
        name: (Difference("branches", 0.05, _RARE), Difference("divergent_branches", 0.06, _RARE))
        for name in ("Mandelbrot", "Numba: Mandelbrot")
    },
    "histogram, global": (Difference("global_atomic_sectors", 0.02, _REPEATED),),
    "Numba: histogram": (Difference("global_atomic_sectors", 0.02, _REPEATED),),
    **{
        launch.name: (Difference("global_load_bytes", math.inf, _NOT_COUNTED),)
        for launch in _asynchronous()
        if not launch.name.startswith("ldmatrix")
    },
}
_SECTIONS = {
    "Global and local memory": _global_memory,
    "Shared memory: patterns of a warp": _shared_patterns,
    "Shared memory: kernels": _shared_memory,
    "ldmatrix and asynchronous copies": _asynchronous,
    "Branches": _divergence,
    "Atomic operations": _atomics,
    "Kernels in Numba": _numba,
}
LAUNCHES = [
    dataclasses.replace(launch, section=section, differences=_DIFFERENCES.get(launch.name, ()))
    for section, make in _SECTIONS.items()
    for launch in make()
]
