"""The unseen kernels that are written in Numba; their cases are in the modules by subject."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32

from warplab import cuda

# -- stencils.py -------------------------------------------------------------------------------------------------------


# The index that runs along a row is the block's slow one: what a beginner writes.
@cuda.jit
def game_of_life(old, new):
    y, x = cuda.grid(2)
    rows, columns = old.shape
    if y < rows and x < columns:
        up = y - 1 if y > 0 else rows - 1
        down = y + 1 if y < rows - 1 else 0
        left = x - 1 if x > 0 else columns - 1
        right = x + 1 if x < columns - 1 else 0
        alive = old[up, left] + old[up, x] + old[up, right] + old[y, left]
        alive += old[y, right] + old[down, left] + old[down, x] + old[down, right]
        new[y, x] = 1 if alive == 3 or (alive == 2 and old[y, x] == 1) else 0


# -- images.py ---------------------------------------------------------------------------------------------------------


@cuda.jit
def max_pool(x, out):
    i = cuda.grid(1)
    planes, height, width = out.shape
    if i < planes * height * width:
        column = i % width
        row = i // width % height
        plane = i // (width * height)
        best = x[plane, 2 * row, 2 * column]
        for dy in range(2):
            for dx in range(2):
                best = max(best, x[plane, 2 * row + dy, 2 * column + dx])
        out[plane, row, column] = best


@cuda.jit
def rgb_to_gray(image, gray):
    x, y = cuda.grid(2)
    if y < gray.shape[0] and x < gray.shape[1]:
        red = np.int32(image[y, x, 0])
        green = np.int32(image[y, x, 1])
        blue = np.int32(image[y, x, 2])
        gray[y, x] = (77 * red + 150 * green + 29 * blue) >> 8


# -- rows.py -----------------------------------------------------------------------------------------------------------


# A block of 128 threads per row: the largest logit, then the sum of exponentials, both by trees in shared memory.
@cuda.jit
def cross_entropy(logits, labels, loss):
    part = cuda.shared.array(128, float32)
    row = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    n = logits.shape[1]
    best = float32(-math.inf)
    for j in range(thread, n, 128):
        best = max(best, logits[row, j])
    part[thread] = best
    cuda.syncthreads()
    step = 64
    while step > 0:
        if thread < step:
            part[thread] = max(part[thread], part[thread + step])
        cuda.syncthreads()
        step //= 2
    best = part[0]
    cuda.syncthreads()
    total = float32(0)
    for j in range(thread, n, 128):
        total += math.exp(logits[row, j] - best)
    part[thread] = total
    cuda.syncthreads()
    step = 64
    while step > 0:
        if thread < step:
            part[thread] += part[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        loss[row] = math.log(part[0]) + best - logits[row, labels[row]]


# -- training.py -------------------------------------------------------------------------------------------------------


# gradient[ids[t], d] += g[t, d]: words that are frequent are added to often.
@cuda.jit
def embedding_gradient(g, ids, gradient):
    i = cuda.grid(1)
    tokens, width = g.shape
    if i < tokens * width:
        token = i // width
        d = i % width
        cuda.atomic.add(gradient, (ids[token], d), g[token, d])


# -- algebra.py --------------------------------------------------------------------------------------------------------


# out[j] = sum of a[i, j] * x[i], a thread per column.
@cuda.jit
def gemv_columns(a, x, out):
    j = cuda.grid(1)
    if j < a.shape[1]:
        total = float32(0)
        for i in range(a.shape[0]):
            total += a[i, j] * x[i]
        out[j] = total


@cuda.jit
def batched_matmul_16(a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    batch = cuda.blockIdx.x
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    left[y, x] = a[batch, y, x]
    right[y, x] = b[batch, y, x]
    cuda.syncthreads()
    total = float32(0)
    for k in range(16):
        total += left[y, k] * right[k, x]
    c[batch, y, x] = total


@cuda.jit
def floyd_warshall_step(d, k):
    x, y = cuda.grid(2)
    if y < d.shape[0] and x < d.shape[1]:
        d[y, x] = min(d[y, x], d[y, k] + d[k, x])


# ELLPACK: as many places in each row, stored by columns; -1 where a row is shorter.
@cuda.jit
def spmv_ell(column, value, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = float32(0)
        for k in range(column.shape[0]):
            c = column[k, row]
            if c >= 0:
                total += value[k, row] * x[c]
        y[row] = total


# -- science.py --------------------------------------------------------------------------------------------------------


@cuda.jit
def lorenz(x, y, z, steps, dt):
    i = cuda.grid(1)
    if i < x.size:
        a, b, c = x[i], y[i], z[i]
        half = float32(0.5) * dt
        sigma, rho, beta = float32(10), float32(28), float32(8 / 3)
        for _ in range(steps):
            a1 = sigma * (b - a)
            b1 = a * (rho - c) - b
            c1 = a * b - beta * c
            p, q, r = a + half * a1, b + half * b1, c + half * c1
            a2 = sigma * (q - p)
            b2 = p * (rho - r) - q
            c2 = p * q - beta * r
            p, q, r = a + half * a2, b + half * b2, c + half * c2
            a3 = sigma * (q - p)
            b3 = p * (rho - r) - q
            c3 = p * q - beta * r
            p, q, r = a + dt * a3, b + dt * b3, c + dt * c3
            a4 = sigma * (q - p)
            b4 = p * (rho - r) - q
            c4 = p * q - beta * r
            a += dt / float32(6) * (a1 + float32(2) * (a2 + a3) + a4)
            b += dt / float32(6) * (b1 + float32(2) * (b2 + b3) + b4)
            c += dt / float32(6) * (c1 + float32(2) * (c2 + c3) + c4)
        x[i], y[i], z[i] = a, b, c


# A sum of waves at each place, as in the reconstruction of magnetic resonance images.
@cuda.jit
def wave_sums(place, frequency, real, imaginary):
    i = cuda.grid(1)
    if i < place.size:
        re, im = float32(0), float32(0)
        for k in range(frequency.size):
            phase = frequency[k] * place[i]
            re += math.cos(phase)
            im += math.sin(phase)
        real[i] = re
        imaginary[i] = im


# -- arrays.py ---------------------------------------------------------------------------------------------------------


@cuda.jit
def scatter(x, index, out):
    i = cuda.grid(1)
    if i < x.size:
        out[index[i]] = x[i]


# How many of the sorted values are smaller than each key.
@cuda.jit
def binary_search(values, keys, place):
    i = cuda.grid(1)
    if i < keys.size:
        low, high = 0, values.size
        while low < high:
            middle = (low + high) // 2
            if values[middle] < keys[i]:
                low = middle + 1
            else:
                high = middle
        place[i] = low


# CRC-32 of each message (a row of words), by a table of 256 words.
@cuda.jit
def crc32(words, table, out):
    i = cuda.grid(1)
    if i < out.size:
        crc = np.uint32(0xFFFFFFFF)
        for k in range(words.shape[0]):
            word = words[k, i]
            for _ in range(4):
                crc = np.uint32(table[(crc ^ word) & np.uint32(255)] ^ (crc >> np.uint32(8)))
                word = np.uint32(word >> np.uint32(8))
        out[i] = ~crc


# A block per segment of an array; each warp adds its part, then one thread adds the warps'.
@cuda.jit
def segment_sums(x, start, out):
    parts = cuda.shared.array(8, float32)
    segment = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    total = float32(0)
    for i in range(start[segment] + thread, start[segment + 1], cuda.blockDim.x):
        total += x[i]
    step = 16
    while step > 0:
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
        step //= 2
    if thread % 32 == 0:
        parts[thread // 32] = total
    cuda.syncthreads()
    if thread == 0:
        total = float32(0)
        for k in range(cuda.blockDim.x // 32):
            total += parts[k]
        out[segment] = total


# Longest common subsequence of two strings of a pair, a block per pair and an antidiagonal after the other.
@cuda.jit
def common_subsequence(first, second, length):
    diagonals = cuda.shared.array((3, 257), int32)
    pair = cuda.blockIdx.x
    j = cuda.threadIdx.x + 1
    n = first.shape[1]
    for k in range(3):
        diagonals[k, j] = 0
        if j == 1:
            diagonals[k, 0] = 0
    cuda.syncthreads()
    for d in range(2, 2 * n + 1):
        i = d - j
        if 1 <= i <= n:
            now, before, older = d % 3, (d - 1) % 3, (d - 2) % 3
            if first[pair, i - 1] == second[pair, j - 1]:
                diagonals[now, j] = diagonals[older, j - 1] + 1
            else:
                diagonals[now, j] = max(diagonals[before, j], diagonals[before, j - 1])
        cuda.syncthreads()
    if j == n:
        length[pair] = diagonals[(2 * n) % 3, n]
