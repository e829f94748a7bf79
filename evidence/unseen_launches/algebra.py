"""Linear algebra: matrix times vector, small and FP64 products, LU, shortest paths, sparse rows, three diagonals."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import (
    NUMBA,
    Case,
    UnseenKernel,
    ceil,
    distinct,
    floats,
    int32,
    launch,
    random,
    zeros,
)


def gemv_rows(rows: int, n: int) -> Case:
    def expected(a, x, *_):
        return {2: a.astype(float) @ x}

    return Case(
        ceil(rows * 32, 256),
        256,
        lambda: (floats(rows, n), floats(n, seed=1), zeros(rows), *int32(rows, n)),
        expected,
    )


def dgemm_tiles(n: int, depth: int, rows: int | None = None) -> Case:
    rows = n if rows is None else rows

    def expected(a, b, *_):
        return {2: a @ b}

    return Case(
        (n // 16, rows // 16),
        (16, 16),
        lambda: (
            *(floats(rows, depth).astype(float), floats(depth, n, seed=1).astype(float)),
            *(zeros(rows, n, dtype=float), *int32(n, depth)),
        ),
        expected,
    )


def rank_one_update(rows: int, columns: int) -> Case:
    def expected(a, left, top, *_):
        return {0: a - left[:, None] * top}

    return Case(
        (ceil(columns, 64), ceil(rows, 4)),
        (64, 4),
        lambda: (floats(rows, columns), floats(rows, seed=1), floats(columns, seed=2), *int32(rows, columns)),
        expected,
    )


def lu_panel(panels: int) -> Case:
    def expected(a, _out):
        a = a.astype(float)
        for k in range(32):
            a[:, k + 1 :, k] /= a[:, k, k][:, None]
            a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
        return {1: a}

    def arguments():
        a = floats(panels, 128, 32)
        a[:, np.arange(32), np.arange(32)] += 40
        return a, zeros(panels, 128, 32)

    return Case(panels, 128, arguments, expected)


def _sparse(rows: int, columns: int, mean: int) -> tuple[np.ndarray, np.ndarray]:
    """Start of each row and columns of a matrix whose rows have some `mean` elements, some few and some many."""
    lengths = random().lognormal(np.log(mean) - 0.5, 1.0, rows).astype(int).clip(1, 8 * mean)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return start, random().integers(0, columns, int(start[-1])).astype(np.int32)


def spmv_csr(rows: int, columns: int, mean: int) -> Case:
    def expected(start, column, value, x, y, *_):
        products = value.astype(float) * x[column]
        return {4: np.add.reduceat(products, start[:-1])}

    def arguments():
        start, column = _sparse(rows, columns, mean)
        return start, column, floats(column.size), floats(columns, seed=1), zeros(rows), *int32(rows)

    return Case(ceil(rows * 32, 256), 256, arguments, expected)


def spmv_ell(rows: int, columns: int, places: int) -> Case:
    def expected(column, value, x, _y):
        return {3: np.where(column >= 0, value.astype(float) * x[column], 0).sum(0)}

    def arguments():
        near = np.arange(rows) * columns // rows + random().integers(-200, 200, (places, rows))
        column = np.where(random().random((places, rows)) < 0.9, near % columns, -1).astype(np.int32)
        return column, floats(places, rows), floats(columns, seed=1), zeros(rows)

    return Case(ceil(rows, 128), 128, arguments, expected)


def tridiagonal(systems: int, n: int) -> Case:
    def expected(low, middle, high, right, c, x, *_):
        c[0], x[0] = high[0] / middle[0], right[0] / middle[0]
        for i in range(1, n):
            m = 1 / (middle[i] - low[i] * c[i - 1])
            c[i], x[i] = high[i] * m, (right[i] - low[i] * x[i - 1]) * m
        for i in range(n - 2, -1, -1):
            x[i] -= c[i] * x[i + 1]
        return {4: c, 5: x}

    def arguments():
        shape = n, systems
        outer = floats(*shape), floats(*shape, seed=1, low=4.0, high=5.0), floats(*shape, seed=2)
        return *outer, floats(*shape, seed=3), zeros(*shape), zeros(*shape), *int32(n, systems)

    return Case(ceil(systems, 128), 128, arguments, expected)


def gemv_columns(rows: int, columns: int) -> Case:
    def expected(a, x, _out):
        return {2: x.astype(float) @ a}

    return Case(
        ceil(columns, 128), 128, lambda: (floats(rows, columns), floats(rows, seed=1), zeros(columns)), expected
    )


def batched_matmul_16(batches: int) -> Case:
    def expected(a, b, _c):
        return {2: a @ b}

    shape = batches, 16, 16
    return Case(batches, (16, 16), lambda: (floats(*shape), floats(*shape, seed=1), zeros(*shape)), expected)


def floyd_warshall_step(n: int, rows: int | None = None) -> Case:
    def expected(d, k):
        return {0: np.minimum(d, d[:, k, None] + d[k])}

    def arguments():
        d = floats(n if rows is None else rows, n, low=0.0)
        d[d.shape[0] // 2, d.shape[0] // 2] = 0  # the way from k to itself
        return d, d.shape[0] // 2

    return Case((ceil(n, 16), ceil(rows or n, 16)), (16, 16), arguments, expected)


def _spmv(rows: int, columns: int, mean: int, simulated: int):
    def footprint() -> tuple[int, int]:
        _, column = _sparse(rows, columns, mean)
        return 8 * column.size + 4 * rows + 32 * distinct(column // 8), 4 * rows

    return launch({"rows": rows, "columns": columns, "mean": mean}, {"rows": simulated}, footprint=footprint)


def _dgemm(n: int):
    return launch({"n": n, "depth": n}, {"n": 64}, footprint=(16 * n * n, 8 * n * n))


KERNELS = [
    UnseenKernel(
        "gemv_rows",
        "algebra.cu",
        gemv_rows,
        {"rows": 20, "n": 100},
        [
            launch({"rows": 1024, "n": 1024}, {"rows": 512}),
            launch({"rows": 4096, "n": 4096}, {"rows": 512}),
            launch({"rows": 32768, "n": 8192}, {"rows": 256}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "dgemm_tiles",
        "algebra.cu",
        dgemm_tiles,
        {"n": 48, "depth": 32},
        [_dgemm(256), _dgemm(1024), _dgemm(2048)],
        warm=True,
    ),
    UnseenKernel(
        "rank_one_update",
        "algebra.cu",
        rank_one_update,
        {"rows": 30, "columns": 100},
        [
            launch({"rows": 1024, "columns": 1024}),
            launch({"rows": 4096, "columns": 4096}, {"rows": 256}),
            launch({"rows": 16384, "columns": 16384}, {"rows": 64}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "lu_panel",
        "algebra.cu",
        lu_panel,
        {"panels": 3},
        [launch({"panels": 1}), launch({"panels": 528}, {"panels": 66}), launch({"panels": 16384}, {"panels": 128})],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "spmv_csr",
        "algebra.cu",
        spmv_csr,
        {"rows": 100, "columns": 80, "mean": 20},
        [
            _spmv(4096, 4096, 16, 4096),
            _spmv(2**18, 2**18, 16, 2**13),
            _spmv(2**19, 2**22, 64, 2**12),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "tridiagonal",
        "algebra.cu",
        tridiagonal,
        {"systems": 50, "n": 9},
        [
            launch({"systems": 4096, "n": 64}),
            launch({"systems": 65536, "n": 128}, {"systems": 4096}),
            launch({"systems": 16384, "n": 1024}, {"systems": 1024, "n": 128}, work=8),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "gemv_columns",
        NUMBA,
        gemv_columns,
        {"rows": 40, "columns": 200},
        [
            launch({"rows": 1024, "columns": 1024}),
            launch({"rows": 4096, "columns": 16384}, {"rows": 512, "columns": 2048}, work=8),
            launch({"rows": 512, "columns": 262144}, {"columns": 2048}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "batched_matmul_16",
        NUMBA,
        batched_matmul_16,
        {"batches": 5},
        [
            launch({"batches": 256}),
            launch({"batches": 16384}, {"batches": 512}),
            launch({"batches": 262144}, {"batches": 512}),
        ],
    ),
    UnseenKernel(
        "floyd_warshall_step",
        NUMBA,
        floyd_warshall_step,
        {"n": 70},
        [
            launch({"n": 512}),
            launch({"n": 4096}, {"rows": 128}, footprint=(4 * 4096**2, 4 * 4096**2)),
            launch({"n": 16384}, {"rows": 32}, footprint=(4 * 16384**2, 4 * 16384**2)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "spmv_ell",
        NUMBA,
        spmv_ell,
        {"rows": 300, "columns": 200, "places": 5},
        [
            launch({"rows": 8192, "columns": 8192, "places": 16}),
            launch({"rows": 2**20, "columns": 2**20, "places": 16}, {"rows": 2**15, "columns": 2**15}),
            launch({"rows": 2**21, "columns": 2**21, "places": 48}, {"rows": 2**14, "columns": 2**14}),
        ],
        tolerance=1e-4,
    ),
]
