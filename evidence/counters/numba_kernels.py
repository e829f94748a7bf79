"""Numba kernels of the comparison with Nsight Compute: what Numba's compiler makes of the same patterns."""

from __future__ import annotations

from numba import float32

from warplab import cuda


@cuda.jit
def copy_strided(source, out, n, stride, offset):
    i = cuda.grid(1)
    if i < n:
        out[i * stride + offset] = source[i * stride + offset]


@cuda.jit
def add_matrices(a, b, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = a[y, x] + b[y, x]


@cuda.jit
def transpose_padded(source, out):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    bx, by = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
    for k in range(0, 32, 8):
        tile[ty + k, tx] = source[by + ty + k, bx + tx]
    cuda.syncthreads()
    for k in range(0, 32, 8):
        out[bx + ty + k, by + tx] = tile[tx, ty + k]


@cuda.jit
def matmul_tiled(a, b, c):
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 16):
        tile_a[ty, tx] = a[y, k + tx]
        tile_b[ty, tx] = b[k + ty, x]
        cuda.syncthreads()
        for j in range(16):
            total += tile_a[ty, j] * tile_b[j, tx]
        cuda.syncthreads()
    c[y, x] = total


@cuda.jit
def block_sum(source, out):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    s[t] = source[cuda.grid(1)]
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@cuda.jit
def histogram(source, bins):
    i = cuda.grid(1)
    if i < source.size:
        cuda.atomic.add(bins, source[i], 1)


@cuda.jit
def mandelbrot(out, limit):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        cr = float32(-2.2) + float32(3.2) * float32(x) / float32(out.shape[1])
        ci = float32(-1.2) + float32(2.4) * float32(y) / float32(out.shape[0])
        zr = float32(0)
        zi = float32(0)
        k = 0
        while k < limit and zr * zr + zi * zi < float32(4):
            zr, zi = zr * zr - zi * zi + cr, float32(2) * zr * zi + ci
            k += 1
        out[y, x] = k


@cuda.jit
def collatz(out, first):
    i = cuda.grid(1)
    n = first + i
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    out[i] = steps
