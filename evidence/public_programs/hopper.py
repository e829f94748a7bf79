"""Programs that others published for Hopper: matrix products with wgmma, TMA and clusters. As `samples`."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

from evidence.public_programs.samples import Code, program
from warplab.dropin import cupy as cp
from warplab.simulator.memory.tensor_maps import encode_tiled

FAST = "pranjalssh/fast.cu"
SETTINGS = """
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda/std/cstdint>
using namespace cuda::std;
typedef __nv_bfloat16 bf16;
typedef unsigned int uint;
struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; };
typedef CUtensorMap_st CUtensorMap;
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define assert(condition)
#line 1
"""
BF16, SWIZZLE_128B = 9, 3
SPACE = 128  # places of a block's own list of tiles


def flat_map(matrix, rows: int, columns: int) -> np.ndarray:
    """Encode the map of boxes of a matrix with rows of 64 elements at most."""
    height, width = matrix.shape
    return _encoded(matrix, (width, height), (2 * width,), (columns, rows), SWIZZLE_128B)


def deep_map(matrix, rows: int, columns: int, axes: int = 3, swizzle: int = SWIZZLE_128B, line: int = 64):
    """Encode the map of boxes of a matrix as a tensor of three axes: 64 columns, rows, how many times 64 columns."""
    height, width = matrix.shape
    sizes, strides, box = (64, height, width // 64), (2 * width, 128), (line, rows, columns // 64)
    more = (1,) * (axes - 3)
    return _encoded(matrix, (*sizes, *more), (*strides, *(0,) * len(more)), (*box, *more), swizzle)


def _encoded(matrix, sizes, strides, box, swizzle: int) -> np.ndarray:
    steps = (1,) * len(sizes)
    data = encode_tiled(BF16, len(sizes), matrix.data.ptr, sizes, strides, box, steps, 0, swizzle)
    return np.frombuffer(data, "V128")


def _product(code: Code, number: int, template: str, m: int, n: int, k: int, blocks: int, threads: int, shared: int):
    """C, n × m, = B (n × k) · Aᵀ (m × k), which is how these kernels see cuBLAS' C."""
    rng = np.random.default_rng(number)
    a, b = (rng.integers(-4, 5, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
    of_a, of_b, c = cp.asarray(a), cp.asarray(b), cp.zeros((n, m), ml_dtypes.bfloat16)
    name = f"M{number}::matmulKernel{number}<{template}>"
    options = ("-std=c++17", "--gpu-architecture=sm_90a")
    kernel = cp.RawModule(code=code.text, options=options, name_expressions=(name,)).get_function(name)
    kernel.max_dynamic_shared_size_bytes = shared
    rows, columns, depth = (int(size) for size in template.split(", ")[:3])
    maps = flat_map if number < 7 else functools.partial(deep_map, axes=5 if number == 7 else 3)
    given = [maps(of_a, rows, depth), maps(of_b, columns, depth)]
    if number < 6:  # in global memory
        given = [cp.asarray(one.view(np.uint8)) for one in given]
    arguments = [np.int32(m), np.int32(n), np.int32(k), c, *given]
    if number == 3:
        arguments.append(np.uint64(0))
    if number >= 10:
        box = (columns, rows, 3, 0) if number < 12 else (columns, rows // 2, 3, 0, 72)
        arguments[3:] = [deep_map(c, *box), *given]
    if number >= 11:
        arguments.append(cp.asarray(_tiles(m // (2 * rows), n // columns, blocks // 2)))
    kernel((blocks,), (threads,), tuple(arguments), shared_mem=shared)
    want = (b.astype("f4") @ a.astype("f4").T).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(cp.asnumpy(c).astype("f4"), want.astype("f4"))


def _tiles(height: int, width: int, clusters: int) -> np.ndarray:
    """For each cluster the tiles of C that it computes, -1 after the last."""
    lists = np.full((2 * clusters, SPACE), -1, np.int32)
    for number, (row, column) in enumerate(np.ndindex(height, width)):
        lists[number % clusters, number // clusters] = row << 16 | column
    return lists


_KERNELS = [  # number, template arguments, m, n, k, blocks, threads, shared bytes
    (2, "64, 64, 64, 64, 64, 16, 128", (128, 192, 256), 6, 128, 0),
    (3, "128, 128, 64, 128, false", (256, 256, 256), 4, 128, 32768),
    (4, "128, 128, 64, 256, 5", (256, 256, 512), 4, 256, 163840),
    (5, "128, 256, 64, 384, 3", (256, 512, 384), 4, 384, 147456),
    (6, "128, 256, 64, 384, 3, 4", (2048, 2048, 128), 4, 384, 147456),
    (7, "128, 256, 64, 384, 3, 4", (2048, 2048, 128), 4, 384, 147456),
    (8, "128, 256, 64, 384, 3, 4, 2, 1", (2048, 2048, 128), 4, 384, 147456),
    (9, "128, 256, 64, 384, 3, 4, 2, 1", (2048, 2048, 128), 4, 384, 147456),
    (10, "128, 256, 64, 384, 3, 4, 2, 1", (2048, 2048, 128), 4, 384, 214016),
    (11, "128, 256, 64, 384, 3, 4, 2, 1", (512, 1024, 256), 4, 384, 214016),
    (12, "128, 256, 64, 384, 3, 4, 2, 1", (512, 1024, 256), 4, 384, 222208),
]
for _number, _template, _sizes, _blocks, _threads, _shared in _KERNELS:
    _run = functools.partial(
        lambda code, number, template, sizes, blocks, threads, shared: _product(
            code, number, template, *sizes, blocks, threads, shared
        ),
        number=_number,
        template=_template,
        sizes=_sizes,
        blocks=_blocks,
        threads=_threads,
        shared=_shared,
    )
    _file = f"examples/matmul/matmul_{_number}.cuh"
    program(FAST, f"matmul_{_number}", _file, f"matmulKernel{_number}<{_template}>", SETTINGS)(_run)
