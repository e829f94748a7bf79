"""The third set's kernels in Numba; their cases are in `third`."""

from __future__ import annotations

import math

from numba import float32, int32

from warplab import cuda


# Distances on a sphere from places to places.
@cuda.jit
def sphere_distances(latitude, longitude, to_latitude, to_longitude, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        a = math.sin(float32(0.5) * (to_latitude[j] - latitude[i]))
        b = math.sin(float32(0.5) * (to_longitude[j] - longitude[i]))
        h = a * a + math.cos(latitude[i]) * math.cos(to_latitude[j]) * b * b
        out[i, j] = float32(2) * math.asin(math.sqrt(min(h, float32(1))))


# The median of each five neighbours.
@cuda.jit
def median_of_5(x, out):
    i = cuda.grid(1)
    if i < out.size:
        a, b, c, d, e = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4]
        low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))
        out[i] = max(min(low, high), min(max(low, high), e))


# Rule 110 on rings of 512 cells, a block for each, for so many steps.
@cuda.jit
def rule_110(start, steps, out):
    old = cuda.shared.array(512, int32)
    ring = cuda.blockIdx.x
    t = cuda.threadIdx.x
    old[t] = start[ring, t]
    cuda.syncthreads()
    for _ in range(steps):
        code = 4 * old[(t + 511) & 511] + 2 * old[t] + old[(t + 1) & 511]
        cuda.syncthreads()
        old[t] = (110 >> code) & 1
        cuda.syncthreads()
    out[ring, t] = old[t]


# Exponential moving averages, a thread for each series, whose values lie side by side.
@cuda.jit
def smooth_series(x, weight, out):
    s = cuda.grid(1)
    if s < x.shape[0]:
        mean = x[s, 0]
        for t in range(x.shape[1]):
            mean += weight * (x[s, t] - mean)
            out[s, t] = mean


# How many points lie in each cell of a grid.
@cuda.jit
def vote(x, y, counts):
    i = cuda.grid(1)
    if i < x.size:
        side = counts.shape[0]
        cuda.atomic.add(counts, (int(y[i] * side), int(x[i] * side)), 1)
