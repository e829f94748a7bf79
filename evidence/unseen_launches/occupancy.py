"""Tensor cores, asynchronous copies, grids that stay, and launches with few threads or much of a resource."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, floats, int32, launch, zeros


def wmma_tiles(m: int, n: int, depth: int) -> Case:
    def expected(a, b, *_):
        return {2: a.astype(np.float32) @ b.astype(np.float32)}

    return Case(
        (n // 64, m // 64),
        128,
        lambda: (
            *(floats(m, depth).astype(np.float16), floats(depth, n, seed=1).astype(np.float16)),
            *(zeros(m, n), *int32(n, depth)),
        ),
        expected,
    )


def async_smooth(blocks: int, tiles: int) -> Case:
    def expected(x, *_):
        x = x.reshape(-1, 1024)
        padded = np.pad(x, ((0, 0), (1, 1)), mode="edge")
        return {1: (0.25 * padded[:, :-2] + 0.5 * x + 0.25 * padded[:, 2:]).reshape(-1)}

    n = blocks * tiles * 1024
    return Case(blocks, 256, lambda: (floats(n), zeros(n), *int32(tiles)), expected)


def persistent_reverse(blocks: int, tiles: int) -> Case:
    def expected(x, *_):
        return {1: x.reshape(tiles, 2048)[:, ::-1].reshape(-1)}

    return Case(blocks, 256, lambda: (floats(tiles * 2048), zeros(tiles * 2048), *int32(tiles)), expected)


def saxpy(n: int, block: int) -> Case:
    def expected(x, y, *_):
        return {2: np.float32(2.5) * x + y}

    return Case(
        ceil(n, block),
        block,
        lambda: (floats(n), floats(n, seed=1), zeros(n), *int32(n), np.float32(2.5)),
        expected,
    )


def wide_shared(blocks: int, block: int, radius: int) -> Case:
    def expected(x, *_):
        x = x.reshape(blocks, 24576)
        total = sum(np.roll(x, k, 1) for k in range(-radius, radius + 1))
        return {1: (total / (2 * radius + 1)).reshape(-1)}

    n = 24576 * blocks
    return Case(blocks, block, lambda: (floats(n), zeros(n), *int32(radius)), expected, shared_bytes=4 * 24576)


def cholesky_8(n: int) -> Case:
    def expected(a, out, *_):
        out[...] = 0
        lower = np.linalg.cholesky(a.transpose(2, 0, 1).astype(float)).transpose(1, 2, 0)
        return {1: lower}

    def arguments():
        a = floats(8, 8, n)
        a = (a + a.transpose(1, 0, 2)) / 2
        a[np.arange(8), np.arange(8)] += 9
        return a, zeros(8, 8, n), *int32(n)

    return Case(ceil(n, 128), 128, arguments, expected)


def _product(m: int, n: int, depth: int):
    """Few blocks at the whole depth: a block's stores would be multiplied with its loop."""
    return launch(
        {"m": m, "n": n, "depth": depth},
        {"m": min(m, 128), "n": min(n, 128)},
        footprint=(2 * (m + n) * depth, 4 * m * n),
    )


KERNELS = [
    UnseenKernel(
        "wmma_tiles",
        "occupancy.cu",
        wmma_tiles,
        {"m": 64, "n": 128, "depth": 64},
        [_product(512, 512, 512), _product(2048, 2048, 2048), _product(4096, 4096, 1024), _product(64, 64, 4096)],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "async_smooth",
        "occupancy.cu",
        async_smooth,
        {"blocks": 2, "tiles": 5},
        [
            launch({"blocks": 132, "tiles": 8}, {"blocks": 66}),
            launch({"blocks": 528, "tiles": 64}, {"blocks": 33}),
            launch({"blocks": 16384, "tiles": 8}, {"blocks": 64}),
        ],
    ),
    UnseenKernel(
        "persistent_reverse",
        "occupancy.cu",
        persistent_reverse,
        {"blocks": 2, "tiles": 5},
        [
            launch({"blocks": 264, "tiles": 528}),
            launch({"blocks": 1056, "tiles": 33792}, {"blocks": 132, "tiles": 1056}, work=4),
            launch({"blocks": 132, "tiles": 16896}, {"tiles": 1056}, work=16),
        ],
    ),
    UnseenKernel(
        "saxpy",
        "occupancy.cu",
        saxpy,
        {"n": 1000, "block": 96},
        [
            launch({"n": 32, "block": 32}),
            launch({"n": 2**12, "block": 64}),
            launch({"n": 2**20, "block": 32}, {"n": 2**18}),
            launch({"n": 2**25, "block": 64}, {"n": 2**18}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "wide_shared",
        "occupancy.cu",
        wide_shared,
        {"blocks": 1, "block": 256, "radius": 5},
        [
            launch({"blocks": 132, "block": 256, "radius": 8}, {"blocks": 4}),
            launch({"blocks": 1056, "block": 1024, "radius": 8}, {"blocks": 4}),
            launch({"blocks": 264, "block": 128, "radius": 32}, {"blocks": 4}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "cholesky_8",
        "occupancy.cu",
        cholesky_8,
        {"n": 200},
        [
            launch({"n": 2**12}),
            launch({"n": 2**17}, {"n": 2**14}),
            launch({"n": 2**21}, {"n": 2**14}),
        ],
    ),
]
