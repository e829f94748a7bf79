"""The second set's kernels in Numba; their cases are in the modules by subject."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32

from warplab import cuda

# -- second_physics.py -------------------------------------------------------------------------------------------------


# The coefficient of diffusion that takes the speckles off an image (Rodinia's srad).
@cuda.jit
def srad(image, q0, out):
    x, y = cuda.grid(2)
    rows, columns = image.shape
    if y < rows and x < columns:
        c = image[y, x]
        n = image[max(y - 1, 0), x] - c
        s = image[min(y + 1, rows - 1), x] - c
        w = image[y, max(x - 1, 0)] - c
        e = image[y, min(x + 1, columns - 1)] - c
        g2 = (n * n + s * s + w * w + e * e) / (c * c)
        laplace = (n + s + w + e) / c
        below = float32(1) + float32(0.25) * laplace
        q = (float32(0.5) * g2 - laplace * laplace / float32(16)) / (below * below)
        d = float32(1) / (float32(1) + (q - q0) / (q0 * (float32(1) + q0)))
        out[y, x] = min(max(d, float32(0)), float32(1))


# The magnetic field of a step of FDTD in two dimensions (PolyBench's fdtd-2d).
@cuda.jit
def fdtd_field(ex, ey, hz):
    x, y = cuda.grid(2)
    if y < hz.shape[0] - 1 and x < hz.shape[1] - 1:
        hz[y, x] -= float32(0.7) * (ex[y, x + 1] - ex[y, x] + ey[y + 1, x] - ey[y, x])


# Covariances of columns whose means are 0 (PolyBench's covariance), a thread per pair.
@cuda.jit
def covariance(data, out):
    j, i = cuda.grid(2)
    rows, columns = data.shape
    if i < columns and j < columns:
        total = float32(0)
        for k in range(rows):
            total += data[k, i] * data[k, j]
        out[i, j] = total / float32(rows - 1)


# c = a times a transposed (PolyBench's syrk), a thread per element.
@cuda.jit
def symmetric_update(a, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * a[j, k]
        c[i, j] = total


# Distances of places to one place (Rodinia's nn).
@cuda.jit
def nearest_places(latitude, longitude, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = math.sqrt((latitude[i] - x) ** 2 + (longitude[i] - y) ** 2)


# -- second_layers.py --------------------------------------------------------------------------------------------------


@cuda.jit
def batch_norm_inference(x, mean, scale, shift, out):
    i = cuda.grid(1)
    channels, places = x.shape[1], x.shape[2]
    if i < x.shape[0] * channels * places:
        place = i % places
        channel = i // places % channels
        image = i // (places * channels)
        out[image, channel, place] = (x[image, channel, place] - mean[channel]) * scale[channel] + shift[channel]


@cuda.jit
def upsample_nearest(x, out):
    column, row, plane = cuda.grid(3)
    if plane < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        out[plane, row, column] = x[plane, row // 2, column // 2]


# Sums up to each element of a row of up to 256, by Hillis and Steele in shared memory, a block per row.
@cuda.jit
def cumulative_rows(x, out):
    old = cuda.shared.array(256, float32)
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    old[t] = x[row, t]
    cuda.syncthreads()
    step = 1
    while step < 256:
        value = old[t]
        if t >= step:
            value += old[t - step]
        cuda.syncthreads()
        old[t] = value
        cuda.syncthreads()
        step *= 2
    out[row, t] = old[t]


# -- second_tables.py --------------------------------------------------------------------------------------------------


# The cheapest way through rows of a grid (Rodinia's pathfinder), a block per grid of 256 columns, a barrier per row.
@cuda.jit
def pathfinder(cost, best):
    old = cuda.shared.array(256, int32)
    grid = cuda.blockIdx.x
    t = cuda.threadIdx.x
    old[t] = cost[grid, 0, t]
    cuda.syncthreads()
    for row in range(1, cost.shape[1]):
        least = old[t]
        if t > 0:
            least = min(least, old[t - 1])
        if t < 255:
            least = min(least, old[t + 1])
        cuda.syncthreads()
        old[t] = least + cost[grid, row, t]
        cuda.syncthreads()
    best[grid, t] = old[t]


# Smooth noise in two dimensions from a table of 256 gradients.
@cuda.jit
def gradient_noise(table, scale, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        fx, fy = x * scale, y * scale
        ix, iy = int(fx), int(fy)
        dx, dy = fx - ix, fy - iy
        total = float32(0)
        for k in range(4):
            cx, cy = k & 1, k >> 1
            h = table[(table[(ix + cx) & 255] + iy + cy) & 255]
            gx = float32(1) if h & 1 else float32(-1)
            gy = float32(1) if h & 2 else float32(-1)
            tx, ty = dx - cx, dy - cy
            wx, wy = float32(1) - abs(tx), float32(1) - abs(ty)
            total += (
                (gx * tx + gy * ty)
                * wx
                * wx
                * (float32(3) - float32(2) * wx)
                * wy
                * wy
                * (float32(3) - float32(2) * wy)
            )
        out[y, x] = total


# The bits of a number in reverse, one by one.
@cuda.jit
def reverse_bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        turned = np.uint32(0)
        for _ in range(32):
            turned = np.uint32((turned << np.uint32(1)) | (value & np.uint32(1)))
            value = np.uint32(value >> np.uint32(1))
        out[i] = turned
