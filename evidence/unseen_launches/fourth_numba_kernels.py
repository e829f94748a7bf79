"""The fourth set's kernels in Numba; their cases are in `fourth`."""

from __future__ import annotations

import math

from numba import float32, int32, uint32

from warplab import cuda


# Bellman and Ford: each edge offers its target a shorter distance.
@cuda.jit
def relax_edges(source, target, weight, distance, shorter):
    i = cuda.grid(1)
    if i < source.size:
        far = distance[source[i]]
        if far >= 0:
            cuda.atomic.min(shorter, target[i], far + weight[i])


@cuda.jit(device=True)
def shifted(state):
    state = uint32(state ^ uint32(state << uint32(13)))
    state = uint32(state ^ (state >> uint32(17)))
    return uint32(state ^ uint32(state << uint32(5)))


# A call option that is void once the price falls below a barrier, a path in each thread.
@cuda.jit
def barrier_option(seeds, steps, drift, volatility, barrier, payoff):
    i = cuda.grid(1)
    if i < payoff.size:
        state = shifted(seeds[i])
        price = float32(100)
        for _ in range(steps):
            first = float32((state >> uint32(8)) + uint32(1)) * float32(2**-24)
            state = shifted(state)
            turn = float32(state >> uint32(8)) * float32(2 * math.pi * 2**-24)
            state = shifted(state)
            normal = math.sqrt(float32(-2) * math.log(first)) * math.cos(turn)
            price *= math.exp(drift + volatility * normal)
            if price < barrier:
                break
        payoff[i] = max(price - float32(100), float32(0)) if price >= barrier else float32(0)


# How far rays go before they meet a ring or a floor, by their distance functions; in float64, as Python's numbers are.
@cuda.jit
def march_rays(out):
    i, j = cuda.grid(2)
    height, width = out.shape
    if i < width and j < height:
        x, y = (i - 0.5 * width) / height, (0.5 * height - j) / height
        size = math.sqrt(x * x + y * y + 1.0)
        dx, dy, dz = x / size, y / size, 1.0 / size
        t = 0.0
        for _ in range(96):
            px, py, pz = t * dx, t * dy + 1.0, t * dz - 4.0
            ring = math.sqrt(px * px + pz * pz) - 1.5
            d = min(math.sqrt(ring * ring + py * py) - 0.4, py + 1.0)
            t += d
            if d < 1e-4 or t > 30.0:
                break
        out[j, i] = min(t, 30.0)


# Ways to put queens into the rows left below each start, by masks of what they attack and a stack in shared memory.
@cuda.jit
def queens(columns, left, right, rows, full, ways):
    taken = cuda.shared.array((16, 64), int32)
    downleft = cuda.shared.array((16, 64), int32)
    downright = cuda.shared.array((16, 64), int32)
    free = cuda.shared.array((16, 64), int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < ways.size:
        taken[0, t], downleft[0, t], downright[0, t] = columns[i], left[i], right[i]
        free[0, t] = full & ~(columns[i] | left[i] | right[i])
        depth, found = 0, 0
        while depth >= 0:
            bit = free[depth, t] & -free[depth, t]
            if bit == 0:
                depth -= 1
            else:
                free[depth, t] ^= bit
                if depth == rows - 1:
                    found += 1
                else:
                    c = taken[depth, t] | bit
                    a = (downleft[depth, t] | bit) << 1
                    b = (downright[depth, t] | bit) >> 1
                    depth += 1
                    taken[depth, t], downleft[depth, t], downright[depth, t] = c, a, b
                    free[depth, t] = full & ~(c | a | b)
        ways[i] = found


# The longest match of up to 18 bytes that begins at most `window` bytes before each byte, as LZ77 looks for it.
@cuda.jit
def longest_match(text, window, found):
    i = cuda.grid(1)
    if i < text.size:
        best, where = 0, 0
        most = min(18, text.size - i)
        for back in range(1, min(window, i) + 1):
            length = 0
            while length < most and text[i - back + length] == text[i + length]:
                length += 1
            if length > best:
                best, where = length, back
        found[i] = best << 16 | where


# The logarithm of the softmax of rows, a thread for each row, which it reads three times: what a beginner writes.
@cuda.jit
def log_softmax_rows(x, out):
    r = cuda.grid(1)
    if r < x.shape[0]:
        most = x[r, 0]
        for k in range(1, x.shape[1]):
            most = max(most, x[r, k])
        total = float32(0)
        for k in range(x.shape[1]):
            total += math.exp(x[r, k] - most)
        shift = most + math.log(total)
        for k in range(x.shape[1]):
            out[r, k] = x[r, k] - shift


# A step of k-means: points of four numbers added to the sums of their clusters.
@cuda.jit
def add_to_clusters(points, label, sums, counts):
    i = cuda.grid(1)
    if i < label.size:
        k = label[i]
        for c in range(4):
            cuda.atomic.add(sums, (k, c), points[i, c])
        cuda.atomic.add(counts, k, 1)
