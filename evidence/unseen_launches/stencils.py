"""Stencils in two and three dimensions, and the Game of Life."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import NUMBA, Case, UnseenKernel, ceil, floats, int32, launch, random, zeros


def jacobi_2d(rows: int, columns: int) -> Case:
    def expected(a, b, *_):
        b[1:-1, 1:-1] = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])
        return {1: b}

    return Case(
        (ceil(columns, 32), ceil(rows, 8)),
        (32, 8),
        lambda: (floats(rows, columns), zeros(rows, columns), *int32(rows, columns)),
        expected,
    )


def heat_3d(nz: int, ny: int, nx: int) -> Case:
    def expected(a, b, *rest):
        c = a[1:-1, 1:-1, 1:-1]
        near = a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1] + a[1:-1, 2:, 1:-1]
        near = near + a[1:-1, 1:-1, :-2] + a[1:-1, 1:-1, 2:]
        b[1:-1, 1:-1, 1:-1] = c + rest[-1] * (near - 6 * c)
        return {1: b}

    return Case(
        (ceil(nx, 32), ceil(ny, 4), ceil(nz, 2)),
        (32, 4, 2),
        lambda: (floats(nz, ny, nx), zeros(nz, ny, nx), *int32(nz, ny, nx), np.float32(0.1)),
        expected,
    )


def march_3d(nz: int, ny: int, nx: int) -> Case:
    def expected(a, b, *_):
        def moved(z: int = 0, y: int = 0, x: int = 0):
            return a[4 + z : 4 + z + nz, 4 + y : 4 + y + ny, 4 + x : 4 + x + nx]

        total = np.float32(-2.5) * moved()
        for k, w in enumerate((1.6, -0.2, 0.025, -0.0018), 1):
            near = moved(-k) + moved(k) + moved(0, -k) + moved(0, k) + moved(0, 0, -k) + moved(0, 0, k)
            total = total + np.float32(w) * near
        b[4:-4, 4:-4, 4:-4] = total
        return {1: b}

    padded = nz + 8, ny + 8, nx + 8
    return Case(
        (nx // 32, ny // 16),
        (32, 16),
        lambda: (floats(*padded), zeros(*padded), *int32(nz, ny, nx)),
        expected,
    )


def game_of_life(rows: int, columns: int) -> Case:
    def expected(old, new):
        near = sum(np.roll(old, (y, x), (0, 1)).astype(int) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
        new[...] = (near == 3) | ((near == 2) & (old == 1))
        return {1: new}

    def arguments():
        return random().integers(0, 2, (rows, columns), dtype=np.uint8), zeros(rows, columns, dtype=np.uint8)

    return Case((ceil(rows, 8), ceil(columns, 32)), (8, 32), arguments, expected)


def _march(nz: int, ny: int, nx: int):
    loaded = 4 * (nz + 8) * (ny + 8) * (nx + 8)
    return launch({"nz": nz, "ny": ny, "nx": nx}, {"ny": 64, "nx": 128}, footprint=(loaded, 4 * nz * ny * nx))


KERNELS = [
    UnseenKernel(
        "jacobi_2d",
        "stencils.cu",
        jacobi_2d,
        {"rows": 70, "columns": 100},
        [
            launch({"rows": 512, "columns": 512}),
            launch({"rows": 2048, "columns": 2048}, {"rows": 512}),
            launch({"rows": 8192, "columns": 8192}, {"rows": 64}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "heat_3d",
        "stencils.cu",
        heat_3d,
        {"nz": 9, "ny": 14, "nx": 40},
        [
            launch({"nz": 64, "ny": 64, "nx": 64}),
            launch({"nz": 256, "ny": 256, "nx": 256}, {"nz": 16}, footprint=(4 * 256**3, 4 * 256**3)),
            launch({"nz": 256, "ny": 512, "nx": 512}, {"nz": 6}, footprint=(4 * 2**26, 4 * 2**26)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "march_3d",
        "stencils.cu",
        march_3d,
        {"nz": 6, "ny": 32, "nx": 64},
        [_march(64, 128, 256), _march(256, 256, 256), _march(128, 512, 1024)],
        warm=True,
    ),
    UnseenKernel(
        "game_of_life",
        NUMBA,
        game_of_life,
        {"rows": 40, "columns": 70},
        [
            launch({"rows": 512, "columns": 512}),
            launch({"rows": 4096, "columns": 4096}, {"columns": 128}),
            launch({"rows": 8192, "columns": 16384}, {"columns": 128}),
        ],
        warm=True,
    ),
]
