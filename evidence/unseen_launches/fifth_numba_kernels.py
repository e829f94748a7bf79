"""The fifth set's kernels in Numba; their cases are in `fifth`."""

from __future__ import annotations

import math

from numba import float32, int32, uint32

from warplab import cuda


@cuda.jit(device=True)
def rotated(p, q, pq, pr, qr):
    """Return a symmetric matrix's p, q, p r and q r after the turn that makes its p q zero."""
    if pq == 0.0:
        return p, q, pr, qr
    theta = (q - p) / (2.0 * pq)
    t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1.0))
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    return p - t * pq, q + t * pq, c * pr - s * qr, s * pr + c * qr


# Eigenvalues of symmetric matrices of 3 by 3 in double, such as stresses, by Jacobi's turns until they are small.
@cuda.jit
def eigen_3x3(matrix, out):
    i = cuda.grid(1)
    if i < matrix.shape[1]:
        x, y, z = matrix[0, i], matrix[1, i], matrix[2, i]
        xy, xz, yz = matrix[3, i], matrix[4, i], matrix[5, i]
        size = x * x + y * y + z * z + xy * xy + xz * xz + yz * yz
        for _ in range(12):
            if xy * xy + xz * xz + yz * yz < 1e-24 * size:
                break
            x, y, xz, yz = rotated(x, y, xy, xz, yz)
            x, z, xy, yz = rotated(x, z, xz, 0.0, yz)
            y, z, xy, xz = rotated(y, z, yz, xy, 0.0)
            yz = 0.0
        low, high = min(x, y), max(x, y)
        out[0, i] = min(low, z)
        out[1, i] = max(low, min(high, z))
        out[2, i] = max(high, z)


# A join's second half: each key is looked up in a table of keys and values, from the place of its hash on.
@cuda.jit
def join_probe(keys, table, mask, found):
    i = cuda.grid(1)
    if i < keys.size:
        key = keys[i]
        x = uint32(key)
        x = uint32((x ^ (x >> uint32(16))) * uint32(0x7FEB352D))
        x = uint32((x ^ (x >> uint32(15))) * uint32(0x846CA68B))
        place = int32((x ^ (x >> uint32(16))) & uint32(mask))
        while table[place, 0] != key and table[place, 0] != 0:
            place += 1
        found[i] = table[place, 1]


# How often two images have each pair of bytes, 64 by 64 kinds of them, as for their mutual information.
@cuda.jit
def joint_histogram(left, right, counts):
    shared = cuda.shared.array(4096, int32)
    for k in range(cuda.threadIdx.x, 4096, cuda.blockDim.x):
        shared[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), left.size, cuda.gridsize(1)):
        cuda.atomic.add(shared, (left[i] >> 2) * 64 + (right[i] >> 2), 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 4096, cuda.blockDim.x):
        if shared[k] > 0:
            cuda.atomic.add(counts, k, shared[k])


# Channels to places, as networks make images larger: by `by` in both directions.
@cuda.jit
def pixel_shuffle(image, by, out):
    x, y, c = cuda.grid(3)
    if y < out.shape[1] and x < out.shape[2]:
        out[c, y, x] = image[(c * by + y % by) * by + x % by, y // by, x // by]


# An ultrasound image: for each place the sum of what all elements received when the echo from there came.
@cuda.jit
def delay_and_sum(received, pitch, rate, image):
    i, j = cuda.grid(2)
    if j < image.shape[0] and i < image.shape[1]:
        elements, samples = received.shape
        x, z = float32(i - image.shape[1] // 2) * pitch, float32(j + 1) * pitch
        total = float32(0)
        for e in range(elements):
            dx = x - float32(e - elements // 2) * pitch
            at = (z + math.sqrt(dx * dx + z * z)) * rate
            k = int32(at)
            if k < samples - 1:
                part = at - float32(k)
                total += received[e, k] + part * (received[e, k + 1] - received[e, k])
        image[j, i] = total
