"""The sixth set's kernels in Numba; their cases are in `sixth`."""

from __future__ import annotations

import math

from numba import float32, float64, int16, int32

from warplab import cuda


# A step of two substances that spread and react (Gray and Scott), on a field whose borders meet.
@cuda.jit
def gray_scott(u, v, feed, kill, new_u, new_v):
    i, j = cuda.grid(2)
    height, width = u.shape
    if j < height and i < width:
        left, right, above, below = (i - 1) % width, (i + 1) % width, (j - 1) % height, (j + 1) % height
        a, b = u[j, i], v[j, i]
        near_a = u[j, left] + u[j, right] + u[above, i] + u[below, i] - float32(4) * a
        near_b = v[j, left] + v[j, right] + v[above, i] + v[below, i] - float32(4) * b
        meet = a * b * b
        new_u[j, i] = a + float32(0.16) * near_a - meet + feed * (float32(1) - a)
        new_v[j, i] = b + float32(0.08) * near_b + meet - (feed + kill) * b


# How many triangles each node is the lowest of: for each edge, the neighbours that its ends' sorted lists share.
@cuda.jit
def triangle_counts(begin, source, target, count):
    e = cuda.grid(1)
    if e < target.size:
        i, j = begin[source[e]], begin[target[e]]
        end_i, end_j = begin[source[e] + 1], begin[target[e] + 1]
        found = 0
        while i < end_i and j < end_j:
            a, b = target[i], target[j]
            if a == b:
                found += 1
            if a <= b:
                i += 1
            if b <= a:
                j += 1
        if found > 0:
            cuda.atomic.add(count, source[e], found)


# American puts by Cox, Ross and Rubinstein's tree, a block for each, from the last step back; in double.
@cuda.jit
def american_put(spot, strike, volatility, rate, years, steps, worth):
    price = cuda.shared.array(1024, float64)
    value = cuda.shared.array((2, 1024), float64)
    t, option = cuda.threadIdx.x, cuda.blockIdx.x
    step = years / steps
    up = math.exp(volatility[option] * math.sqrt(step))
    less = math.exp(-rate * step)
    rise = (1.0 / less - 1.0 / up) / (up - 1.0 / up)
    limit = strike[option]
    for j in range(t, steps + 1, cuda.blockDim.x):
        price[j] = spot[option] * math.pow(up, float64(2 * j - steps))
        value[steps & 1, j] = max(limit - price[j], 0.0)
    cuda.syncthreads()
    for left in range(steps - 1, -1, -1):
        now = left & 1
        for j in range(t, left + 1, cuda.blockDim.x):
            price[j] *= up
            later = less * (rise * value[1 - now, j + 1] + (1.0 - rise) * value[1 - now, j])
            value[now, j] = max(later, limit - price[j])
        cuda.syncthreads()
    if t == 0:
        worth[option] = value[0, 0]


# Blocks of 8 by 8 as JPEG keeps them: a thread for each coefficient of their cosine transform, divided by the table.
@cuda.jit
def dct_quantise(image, cosine, table, out):
    pixels = cuda.shared.array((4, 8, 8), float32)
    halfway = cuda.shared.array((4, 8, 8), float32)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    column, row = (cuda.blockIdx.x * 4 + z) * 8 + x, cuda.blockIdx.y * 8 + y
    inside = column < image.shape[1]
    pixels[z, y, x] = float32(image[row, column]) - float32(128) if inside else float32(0)
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += pixels[z, y, k] * cosine[x, k]
    halfway[z, y, x] = total
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += halfway[z, k, x] * cosine[y, k]
    if inside:
        out[row, column] = int16(math.floor(total / table[y, x] + float32(0.5)))


# Sums and numbers of rows by key, of those rows whose value is below a limit: each block adds up in shared memory.
@cuda.jit
def group_sums(key, value, limit, total, number):
    totals = cuda.shared.array(512, float32)
    numbers = cuda.shared.array(512, int32)
    for k in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        totals[k] = float32(0)
        numbers[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), key.size, cuda.gridsize(1)):
        if value[i] < limit:
            cuda.atomic.add(totals, key[i], value[i])
            cuda.atomic.add(numbers, key[i], 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        if numbers[k] > 0:
            cuda.atomic.add(total, k, totals[k])
            cuda.atomic.add(number, k, numbers[k])
