"""Layers and filters of images: im2col, depthwise convolution, pooling, resizing, filters, a change of colours."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import NUMBA, Case, UnseenKernel, ceil, floats, int32, launch, random, zeros


def im2col(channels: int, side: int, k: int) -> Case:
    def expected(x, columns, *_):
        padded = np.pad(x, ((0, 0), (k // 2, k // 2), (k // 2, k // 2)))
        for dy in range(k):
            for dx in range(k):
                columns[:, dy * k + dx] = padded[:, dy : dy + side, dx : dx + side]
        return {1: columns}

    return Case(
        ceil(channels * side * side, 256),
        256,
        lambda: (floats(channels, side, side), zeros(channels, k * k, side, side), *int32(channels, side, side, k)),
        expected,
    )


def depthwise_nhwc(images: int, side: int, channels: int) -> Case:
    def expected(x, filters, out, *_):
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        for dy in range(3):
            for dx in range(3):
                out += padded[:, dy : dy + side, dx : dx + side] * filters[dy, dx]
        return {2: out}

    shape = images, side, side, channels
    return Case(
        ceil(images * side * side * channels, 256),
        256,
        lambda: (floats(*shape), floats(3, 3, channels, seed=1), zeros(*shape), *int32(*shape)),
        expected,
    )


def resize_bilinear(planes: int, height: int, width: int, rows: int, columns: int) -> Case:
    def expected(x, out, *_):
        def places(n: int, of: int):
            f = np.maximum((np.arange(n, dtype=np.float32) + np.float32(0.5)) * of / n - 0.5, 0)
            return f.astype(int), np.minimum(f.astype(int) + 1, of - 1), (f - f.astype(int)).astype(np.float32)

        (y, y1, wy), (c, c1, wx) = places(rows, height), places(columns, width)
        top = x[:, y][:, :, c] * (1 - wx) + x[:, y][:, :, c1] * wx
        low = x[:, y1][:, :, c] * (1 - wx) + x[:, y1][:, :, c1] * wx
        out[...] = top * (1 - wy[:, None]) + low * wy[:, None]
        return {1: out}

    return Case(
        (ceil(columns, 32), ceil(rows, 8), planes),
        (32, 8),
        lambda: (
            floats(planes, height, width),
            zeros(planes, rows, columns),
            *int32(planes, height, width, rows, columns),
        ),
        expected,
    )


WEIGHTS = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.09, 0.1, 0.14, 0.1, 0.09, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01)


def filter_rows(height: int, width: int) -> Case:
    def expected(x, out, *_):
        padded = np.pad(x, ((0, 0), (8, 8)))
        out[...] = sum(np.float32(w) * padded[:, k : k + width] for k, w in enumerate(WEIGHTS))
        return {1: out}

    return Case(
        (width // 128, height // 4),
        (16, 4),
        lambda: (floats(height, width), zeros(height, width), *int32(height, width)),
        expected,
    )


def bilateral(height: int, width: int) -> Case:
    near, alike = np.float32(0.1), np.float32(4)

    def expected(x, out, *_):
        padded = np.pad(x, 3, mode="edge").astype(float)
        total, weights = np.zeros(x.shape), np.zeros(x.shape)
        for dy in range(-3, 4):
            for dx in range(-3, 4):
                there = padded[3 + dy : 3 + dy + height, 3 + dx : 3 + dx + width]
                w = np.exp(-(dx * dx + dy * dy) * near - (there - x) ** 2 * alike)
                total, weights = total + w * there, weights + w
        out[...] = total / weights
        return {1: out}

    return Case(
        (ceil(width, 16), ceil(height, 16)),
        (16, 16),
        lambda: (floats(height, width), zeros(height, width), *int32(height, width), near, alike),
        expected,
    )


def max_pool(planes: int, rows: int, columns: int) -> Case:
    def expected(x, out):
        return {1: x.reshape(planes, rows, 2, columns, 2).max((2, 4))}

    return Case(
        ceil(planes * rows * columns, 256),
        256,
        lambda: (floats(planes, 2 * rows, 2 * columns), zeros(planes, rows, columns)),
        expected,
    )


def rgb_to_gray(height: int, width: int) -> Case:
    def expected(image, gray):
        return {1: (image.astype(np.int32) @ np.array([77, 150, 29]) >> 8).astype(np.uint8)}

    def arguments():
        return (
            np.resize(random().integers(0, 256, 3 * 2**20, dtype=np.uint8), (height, width, 3)),
            zeros(height, width, dtype=np.uint8),
        )

    return Case((ceil(width, 16), ceil(height, 16)), (16, 16), arguments, expected)


KERNELS = [
    UnseenKernel(
        "im2col",
        "images.cu",
        im2col,
        {"channels": 3, "side": 13, "k": 3},
        [
            launch({"channels": 64, "side": 56, "k": 3}),
            launch({"channels": 2048, "side": 56, "k": 3}, {"channels": 64}),
            launch({"channels": 192, "side": 224, "k": 7}, {"channels": 3}),
        ],
    ),
    UnseenKernel(
        "depthwise_nhwc",
        "images.cu",
        depthwise_nhwc,
        {"images": 2, "side": 7, "channels": 24},
        [
            launch({"images": 1, "side": 56, "channels": 128}),
            launch({"images": 32, "side": 56, "channels": 128}, {"images": 1}),
            launch({"images": 64, "side": 112, "channels": 64}, {"images": 1}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "resize_bilinear",
        "images.cu",
        resize_bilinear,
        {"planes": 2, "height": 10, "width": 14, "rows": 25, "columns": 40},
        [
            launch({"planes": 3, "height": 480, "width": 640, "rows": 224, "columns": 224}),
            launch(
                {"planes": 96, "height": 1080, "width": 1920, "rows": 224, "columns": 224},
                {"planes": 3},
            ),
            launch(
                {"planes": 48, "height": 540, "width": 960, "rows": 1080, "columns": 1920},
                {"planes": 1},
            ),
        ],
    ),
    UnseenKernel(
        "filter_rows",
        "images.cu",
        filter_rows,
        {"height": 8, "width": 256},
        [
            launch({"height": 512, "width": 512}),
            launch({"height": 4096, "width": 4096}, {"height": 64}),
            launch({"height": 12288, "width": 12288}, {"height": 24}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "bilateral",
        "images.cu",
        bilateral,
        {"height": 20, "width": 40},
        [
            launch({"height": 256, "width": 256}),
            launch({"height": 1080, "width": 1920}, {"height": 128}),
            launch({"height": 4320, "width": 7680}, {"height": 32}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "max_pool",
        NUMBA,
        max_pool,
        {"planes": 3, "rows": 9, "columns": 17},
        [
            launch({"planes": 64, "rows": 56, "columns": 56}),
            launch({"planes": 2048, "rows": 56, "columns": 56}, {"planes": 64}),
            launch({"planes": 16384, "rows": 28, "columns": 28}, {"planes": 128}),
        ],
    ),
    UnseenKernel(
        "rgb_to_gray",
        NUMBA,
        rgb_to_gray,
        {"height": 20, "width": 40},
        [
            launch({"height": 480, "width": 640}),
            launch({"height": 4320, "width": 7680}, {"height": 64}),
            launch({"height": 16384, "width": 16384}, {"height": 32}),
        ],
    ),
]
