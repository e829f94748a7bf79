"""The second set of unseen kernels: tables, strings, signals and integers."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, floats, int32, launch, random, zeros

NUMBA = "second_numba_kernels.py"


def align_tiles(side: int) -> Case:
    """Align the tiles of the long diagonal from the lower left to the upper right."""
    tiles, penalty = side // 32, 3

    def expected(score, reference, out, *_):
        for tile in range(tiles):
            left, top = 32 * tile, 32 * (tiles - 1 - tile)
            t = score[top : top + 33, left : left + 33].copy()
            for y in range(32):
                for x in range(32):
                    match = t[y, x] + reference[top + y, left + x]
                    t[y + 1, x + 1] = max(match, t[y, x + 1] - penalty, t[y + 1, x] - penalty)
            out[top : top + 32, left : left + 32] = t[1:, 1:]
        return {2: out}

    def arguments():
        g = random()
        score = g.integers(-5, 50, (side + 1, side + 1)).astype(np.int32)
        return (
            score,
            g.integers(-3, 6, (side, side)).astype(np.int32),
            zeros(side, side, dtype=np.int32),
            *int32(side, penalty),
        )

    return Case(tiles, 32, arguments, expected)


def tree_search(queries: int, levels: int, first: int | None = None) -> Case:
    some = queries if first is None else first

    def expected(_keys, query, *_):
        return {2: query // 3}

    def arguments():
        leaves = 32**levels
        keys = [
            (np.arange(32 ** (level + 1), dtype=np.int64) * (leaves // 32 ** (level + 1)) * 3).astype(np.int32)
            for level in range(levels)
        ]
        query = random().integers(0, 3 * leaves, some).astype(np.int32)
        return np.concatenate(keys), query, zeros(some, dtype=np.int32), *int32(some, levels)

    return Case(ceil(some * 32, 256), 256, arguments, expected)


def haar_rows(rows: int) -> Case:
    def expected(x, _out):
        s, out = x.reshape(rows, 1024).astype(float), np.zeros((rows, 1024))
        n = 512
        while n:
            out[:, n : 2 * n] = (s[:, ::2] - s[:, 1::2]) * np.sqrt(0.5)
            s = (s[:, ::2] + s[:, 1::2]) * np.sqrt(0.5)
            n //= 2
        out[:, :1] = s
        return {1: out.reshape(-1)}

    return Case(rows, 512, lambda: (floats(rows * 1024), zeros(rows * 1024)), expected)


def fourier_512(transforms: int) -> Case:
    def expected(x, _out):
        x = x.reshape(transforms, 512, 2)
        found = np.fft.fft(x[..., 0] + 1j * x[..., 1].astype(float))
        return {1: np.stack([found.real, found.imag], 2).reshape(-1)}

    n = transforms * 1024
    return Case(transforms, 256, lambda: (floats(n), zeros(n)), expected)


def motion_search(height: int, width: int) -> Case:
    def expected(now, before, best, _width):
        found = zeros(height // 16, width // 16, dtype=np.int32)
        for y, x in np.ndindex(found.shape):
            own = now[16 * y : 16 * y + 16, 16 * x : 16 * x + 16].astype(int)
            found[y, x] = min(
                int(abs(own - before[16 * y + j : 16 * y + j + 16, 16 * x + i : 16 * x + i + 16]).sum()) << 8
                | j << 4
                | i
                for j in range(16)
                for i in range(16)
            )
        return {2: found}

    def arguments():
        g = random()
        pictures = (
            g.integers(0, 256, (height, width), dtype=np.uint8),
            g.integers(0, 256, (height + 16, width + 16), dtype=np.uint8),
        )
        return *pictures, zeros(height // 16, width // 16, dtype=np.int32), *int32(width)

    return Case((width // 16, height // 16), (16, 16), arguments, expected)


def chacha20(blocks: int) -> Case:
    def expected(key, _out, _blocks):
        start = [np.full(blocks, word, np.uint32) for word in (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key)]
        start += [np.arange(blocks, dtype=np.uint32), *(np.full(blocks, k, np.uint32) for k in (1, 2, 3))]
        s = [word.copy() for word in start]

        def mixed(a, b, c, d):
            for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[x] = s[x] + s[y]
                turned = s[z] ^ s[x]
                s[z] = turned << np.uint32(by) | turned >> np.uint32(32 - by)

        for _ in range(10):
            for k in range(4):
                mixed(k, k + 4, k + 8, k + 12)
            for k in range(4):
                mixed(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
        return {1: np.stack([a + b for a, b in zip(s, start, strict=True)], 1)}

    def arguments():
        key = random().integers(0, 2**32, 8, dtype=np.uint32)
        return key, zeros(blocks, 16, dtype=np.uint32), *int32(blocks)

    return Case(ceil(blocks, 128), 128, arguments, expected)


def normal_numbers(n: int, blocks: int) -> Case:
    seed = np.uint32(5)

    def expected(*_):
        def mixed(x):
            s = (x + seed) * np.uint32(747796405) + np.uint32(2891336453)
            s = ((s >> ((s >> np.uint32(28)) + np.uint32(4))) ^ s) * np.uint32(277803737)
            return (s >> np.uint32(22)) ^ s

        a = mixed(np.arange(n, dtype=np.uint32))
        angle = 2 * np.pi * (mixed(a) >> np.uint32(8)) / 2**24
        radius = np.sqrt(-2 * np.log((a + 1.0) / 2**32))
        return {0: np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)}

    return Case(blocks, 256, lambda: (zeros(n, 2), *int32(n), seed), expected)


def angle_counts(n: int, parts: int, rows: int | None = None) -> Case:
    """Count angles; every launch adds to the counts."""

    def expected(point, *_):
        dots = np.zeros((n, n), np.float32)
        for k in range(3):
            dots += point[:, None, k] * point[None, :, k]
        bins = np.minimum(31, ((1 + np.clip(dots, -1, 1)) * 16).astype(int))
        return {1: np.bincount(bins.ravel(), minlength=32)}

    def arguments():
        # Eighths, so that every order of the additions gives the same sum.
        point = (random().integers(-4, 5, (n, 4)) / 8).astype(np.float32)
        return point, zeros(32, dtype=np.uint32), *int32(n, n // parts)

    return Case(((rows or n) // 256, parts), 256, arguments, expected)


def run_starts(n: int, mean: int) -> Case:
    def expected(x, mark, marks, _n):
        mark[...] = np.concatenate([[True], x[1:] != x[:-1]])
        return {1: mark, 2: np.add.reduceat(mark.astype(int), np.arange(0, n, 256))}

    def arguments():
        x = np.cumsum(random().random(n) < 1 / mean).astype(np.int32)
        return x, zeros(n, dtype=np.uint8), zeros(ceil(n, 256), dtype=np.int32), *int32(n)

    return Case(ceil(n, 256), 256, arguments, expected)


def pathfinder(grids: int, rows: int) -> Case:
    def expected(cost, _best):
        best = cost[:, 0].copy()
        for row in range(1, rows):
            around = np.pad(best, ((0, 0), (1, 1)), mode="edge")
            best = np.minimum(np.minimum(around[:, :-2], around[:, 2:]), best) + cost[:, row]
        return {1: best}

    def arguments():
        cost = np.resize(random().integers(0, 10, min(grids * rows * 256, 2**22)).astype(np.int32), grids * rows * 256)
        return cost.reshape(grids, rows, 256), zeros(grids, 256, dtype=np.int32)

    return Case(grids, 256, arguments, expected)


def gradient_noise(height: int, width: int) -> Case:
    scale = np.float32(0.05)

    def expected(table, _scale, out):
        y, x = (np.arange(size, dtype=np.float32) * scale for size in (height, width))
        x, y = np.meshgrid(x, y)
        ix, iy = x.astype(int), y.astype(int)
        dx, dy = x - ix, y - iy
        for k in range(4):
            cx, cy = k & 1, k >> 1
            h = table[(table[(ix + cx) & 255] + iy + cy) & 255]
            tx, ty = dx - cx, dy - cy
            wx, wy = 1 - abs(tx), 1 - abs(ty)
            slope = np.where(h & 1, 1, -1) * tx + np.where(h & 2, 1, -1) * ty
            out += slope * wx * wx * (3 - 2 * wx) * wy * wy * (3 - 2 * wy)
        return {2: out}

    return Case(
        (ceil(width, 16), ceil(height, 16)),
        (16, 16),
        lambda: (random().permutation(256).astype(np.int32), scale, zeros(height, width)),
        expected,
    )


def reverse_bits(n: int) -> Case:
    def expected(x, _out):
        bits = np.unpackbits(x.view(np.uint8), bitorder="little").reshape(-1, 32)
        return {1: np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(np.uint32)[:, 0]}

    return Case(
        ceil(n, 128),
        128,
        lambda: (np.resize(random().integers(0, 2**32, min(n, 2**22), dtype=np.uint32), n), zeros(n, dtype=np.uint32)),
        expected,
    )


KERNELS = [
    UnseenKernel(
        "align_tiles",
        "second_tables.cu",
        align_tiles,
        {"side": 96},
        [launch({"side": 1024}), launch({"side": 4096}), launch({"side": 16384}, {"side": 2048})],
        warm=True,
    ),
    UnseenKernel(
        "tree_search",
        "second_tables.cu",
        tree_search,
        {"queries": 100, "levels": 2},
        [
            launch({"queries": 10000, "levels": 3}),
            launch({"queries": 2**20, "levels": 3}, {"first": 2**14}, footprint=(4 * (2**20 + 33824), 2**22)),
            launch({"queries": 2**20, "levels": 4}, {"first": 2**14}, footprint=(4 * (2**20 + 1082400), 2**22)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "haar_rows",
        "second_tables.cu",
        haar_rows,
        {"rows": 3},
        [launch({"rows": 132}), launch({"rows": 4096}, {"rows": 64}), launch({"rows": 65536}, {"rows": 64})],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "fourier_512",
        "second_tables.cu",
        fourier_512,
        {"transforms": 3},
        [
            launch({"transforms": 264}, {"transforms": 66}),
            launch({"transforms": 8192}, {"transforms": 64}),
            launch({"transforms": 131072}, {"transforms": 64}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "motion_search",
        "second_tables.cu",
        motion_search,
        {"height": 32, "width": 48},
        [
            launch({"height": 144, "width": 176}),
            launch({"height": 1088, "width": 1920}, sample=64),
            launch({"height": 4320, "width": 7680}, sample=64),
        ],
        warm=True,
    ),
    UnseenKernel(
        "chacha20",
        "second_tables.cu",
        chacha20,
        {"blocks": 300},
        [
            launch({"blocks": 2**14}),
            launch({"blocks": 2**19}, {"blocks": 2**14}),
            launch({"blocks": 2**23}, {"blocks": 2**14}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "normal_numbers",
        "second_tables.cu",
        normal_numbers,
        {"n": 1000, "blocks": 2},
        [
            launch({"n": 2**17, "blocks": 132}),
            launch({"n": 2**24, "blocks": 1056}, {"n": 2**19, "blocks": 33}),
            launch({"n": 2**26, "blocks": 262144}, {"n": 2**17, "blocks": 512}),
        ],
        tolerance=1e-3,
    ),
    UnseenKernel(
        "angle_counts",
        "second_tables.cu",
        angle_counts,
        {"n": 512, "parts": 2},
        [
            launch({"n": 4096, "parts": 8}, {"rows": 512}, footprint=(16 * 4096, 128)),
            launch({"n": 16384, "parts": 16}, {"rows": 256}, footprint=(16 * 16384, 128)),
            launch({"n": 65536, "parts": 4}, sample=2, footprint=(16 * 65536, 128)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "run_starts",
        "second_tables.cu",
        run_starts,
        {"n": 1000, "mean": 5},
        [
            launch({"n": 2**18, "mean": 8}),
            launch({"n": 2**23, "mean": 8}, {"n": 2**18}),
            launch({"n": 2**27, "mean": 100}, {"n": 2**18}),
        ],
    ),
    UnseenKernel(
        "pathfinder",
        NUMBA,
        pathfinder,
        {"grids": 2, "rows": 20},
        [
            launch({"grids": 132, "rows": 100}, {"grids": 33}),
            launch({"grids": 1056, "rows": 200}, {"grids": 33}),
            launch({"grids": 8448, "rows": 100}, {"grids": 33}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "gradient_noise",
        NUMBA,
        gradient_noise,
        {"height": 40, "width": 50},
        [
            launch({"height": 256, "width": 256}),
            launch({"height": 2048, "width": 2048}, {"height": 128}),
            launch({"height": 8192, "width": 8192}, {"height": 32}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "reverse_bits",
        NUMBA,
        reverse_bits,
        {"n": 1000},
        [launch({"n": 2**16}), launch({"n": 2**22}, {"n": 2**17}), launch({"n": 2**26}, {"n": 2**17})],
    ),
]
