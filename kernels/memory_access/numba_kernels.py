"""The teaching kernels of `access.cu`, `transpose.cu` and `reduction.cu` in Numba; steps have the same numbers.

Numba passes arrays with their shapes, so lengths need no arguments. It has no 16-byte access for float32 arrays.
Measured as there: NVIDIA H100 80GB HBM3, 2026-11-21.
"""

from numba import float32

from warplab import cuda

TILE, STEP = 32, 8  # side of a tile; rows that a block of 32 × 8 threads moves at a time
PITCH = TILE + 1  # words in a row of the padded tile
BLOCK = 256  # threads per block of the sums
ALL = 0xFFFFFFFF


# Strides and offsets: out[i] = source[i * stride + offset].
@cuda.jit
def copy_strided(source, out, stride, offset):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = source[i * stride + offset]


# An array of structures has shape (n, 4), a structure of arrays (4, n). First one field, then all.
# Reached: 1242 GB/s.
@cuda.jit
def aos_field(points, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = points[i, 0] * points[i, 0]


# Reached: 2374 GB/s.
@cuda.jit
def soa_field(points, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = points[0, i] * points[0, i]


# Reached: 3101 GB/s.
@cuda.jit
def aos_norm(points, out):
    i = cuda.grid(1)
    if i < out.size:
        x, y, z, w = points[i, 0], points[i, 1], points[i, 2], points[i, 3]
        out[i] = x * x + y * y + z * z + w * w


# Reached: 3101 GB/s.
@cuda.jit
def soa_norm(points, out):
    i = cuda.grid(1)
    if i < out.size:
        x, y, z, w = points[0, i], points[1, i], points[2, i], points[3, i]
        out[i] = x * x + y * y + z * z + w * w


# Transpose, 1. One thread per element.
# Reached: 413 GB/s, 0.14 of the copy.
@cuda.jit
def transpose_naive(source, out):
    x, y = cuda.grid(2)
    if x < source.shape[1] and y < source.shape[0]:
        out[x, y] = source[y, x]


# Transpose, 2. A tile of 32 × 32 through shared memory.
# Reached: 1437 GB/s, 0.48 of the copy.
@cuda.jit
def transpose_tile(source, out):
    tile = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * TILE + tx, cuda.blockIdx.y * TILE + ty
    for k in range(0, TILE, STEP):
        if x < source.shape[1] and y + k < source.shape[0]:
            tile[ty + k, tx] = source[y + k, x]
    cuda.syncthreads()
    x, y = cuda.blockIdx.y * TILE + tx, cuda.blockIdx.x * TILE + ty
    for k in range(0, TILE, STEP):
        if x < out.shape[1] and y + k < out.shape[0]:
            out[y + k, x] = tile[tx, ty + k]


# Transpose, 3. Rows of 33 words.
# Reached: 2153 GB/s, 0.72 of the copy.
@cuda.jit
def transpose_padded(source, out):
    tile = cuda.shared.array((TILE, PITCH), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * TILE + tx, cuda.blockIdx.y * TILE + ty
    for k in range(0, TILE, STEP):
        if x < source.shape[1] and y + k < source.shape[0]:
            tile[ty + k, tx] = source[y + k, x]
    cuda.syncthreads()
    x, y = cuda.blockIdx.y * TILE + tx, cuda.blockIdx.x * TILE + ty
    for k in range(0, TILE, STEP):
        if x < out.shape[1] and y + k < out.shape[0]:
            out[y + k, x] = tile[tx, ty + k]


# Sum, 1. A tree of every second, every fourth, ... thread.
# Reached: 528 GB/s, 0.17 of CUB.
@cuda.jit
def sum_interleaved(source, out):
    part = cuda.shared.array(BLOCK, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = source[i] if i < source.size else float32(0)
    cuda.syncthreads()
    step = 1
    while step < BLOCK:
        if t % (2 * step) == 0:
            part[t] += part[t + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


# Sum, 2. The lower half adds the upper half.
# Reached: 893 GB/s, 0.29 of CUB.
@cuda.jit
def sum_sequential(source, out):
    part = cuda.shared.array(BLOCK, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = source[i] if i < source.size else float32(0)
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit(device=True)
def block_sum(value):
    """Return the sum of a block's values, in thread 0."""
    part = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(ALL, value, step)
    if t % 32 == 0:
        part[t // 32] = value
    cuda.syncthreads()
    if t < 32:
        value = part[t] if t < BLOCK // 32 else float32(0)
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(ALL, value, step)
    return value


# Sum, 3. Shuffles, from register to register.
# Reached: 1121 GB/s, 0.37 of CUB.
@cuda.jit
def sum_shuffle(source, out):
    i = cuda.grid(1)
    total = block_sum(source[i] if i < source.size else float32(0))
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total


# Sum, 5. A grid of fixed size, one atomic per block. out is zero before.
# Reached: 2998 GB/s, 0.98 of CUB. More than in CUDA C++: of range() the number of trips is known beforehand, so the
# compiler unrolls the loop four times and has four loads under way.
@cuda.jit
def sum_grid_stride(source, out):
    total = float32(0)
    for i in range(cuda.grid(1), source.size, cuda.gridsize(1)):
        total += source[i]
    total = block_sum(total)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, total)
