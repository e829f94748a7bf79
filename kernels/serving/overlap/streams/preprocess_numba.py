"""preprocess.cu in Numba: a decoded NV12 frame to three normalised planes of float32."""

import math

from numba import float32, int32

from warplab import cuda


@cuda.jit(device=True)
def bilinear(plane, first, step, height, width, y, x):
    """Sample a plane at (y, x), from the four bytes around it. `first`, `step`: column of pixel 0, columns apart."""
    half = float32(0.5)
    top, left = math.floor(y - half), math.floor(x - half)
    down, right = y - half - top, x - half - left
    y0, y1 = max(int32(top), 0), min(int32(top) + 1, height - 1)
    x0, x1 = first + max(int32(left), 0) * step, first + min(int32(left) + 1, width - 1) * step
    a, b, c, d = float32(plane[y0, x0]), float32(plane[y0, x1]), float32(plane[y1, x0]), float32(plane[y1, x1])
    upper = a + right * (b - a)
    return upper + down * (c + right * (d - c) - upper)


@cuda.jit(device=True)
def clamped(value):
    """Return `value` between 0 and 255."""
    return min(max(value, float32(0)), float32(255))


@cuda.jit
def preprocess(nv12, out, scale, shift):
    """Write `out`, float32 (3, rows, columns), from `nv12`, uint8 (height * 3 / 2, width); one thread per pixel."""
    column, row = cuda.grid(2)
    rows, columns = out.shape[1], out.shape[2]
    if row >= rows or column >= columns:
        return
    width, height = nv12.shape[1], nv12.shape[0] // 3 * 2
    half, two = float32(0.5), float32(2)
    y = (float32(row) + half) * float32(height) / float32(rows)
    x = (float32(column) + half) * float32(width) / float32(columns)
    chroma = nv12[height:]
    luma = bilinear(nv12, 0, 1, height, width, y, x)
    blue = bilinear(chroma, 0, 2, height // 2, width // 2, y / two, x / two) - float32(128)
    red = bilinear(chroma, 1, 2, height // 2, width // 2, y / two, x / two) - float32(128)
    bright = float32(1.164384) * (luma - float32(16))
    out[0, row, column] = clamped(bright + float32(1.596027) * red) * scale[0] + shift[0]
    green = bright - float32(0.391762) * blue - float32(0.812968) * red
    out[1, row, column] = clamped(green) * scale[1] + shift[1]
    out[2, row, column] = clamped(bright + float32(2.017232) * blue) * scale[2] + shift[2]
