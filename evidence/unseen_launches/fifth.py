"""The fifth set of unseen kernels, by a writer who had read neither the model nor a recorded or estimated time.

All of it is held out and sealed: recorded by `record`, but not among the launches that estimates are held to until it
is opened (2026-11-27).
"""

from __future__ import annotations

import functools

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, distinct, floats, int32, launch, random, zeros

CUDA, NUMBA = "fifth.cu", "fifth_numba_kernels.py"


def whole(n: int, low: int, high: int, kind: type) -> np.ndarray:
    """Whole numbers from `low` to below `high`. Of large arrays the first 2^22 come again and again."""
    return np.resize(random().integers(low, high, min(n, 2**22)).astype(kind), n)


def winograd_input(planes: int, height: int, width: int) -> Case:
    across, tiles = ceil(width, 2), ceil(width, 2) * ceil(height, 2)

    def expected(x, *_):
        padded = np.pad(x, ((0, 0), (1, 2), (1, 2)))
        d = np.lib.stride_tricks.sliding_window_view(padded, (4, 4), (1, 2))[:, : height + 1 : 2, : width + 1 : 2]
        d = d[:, : ceil(height, 2), :across].reshape(planes, tiles, 4, 4)
        turn = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
        return {1: np.einsum("ai,ptij,bj->abpt", turn, d, turn).reshape(16, planes, tiles)}

    return Case(
        (ceil(tiles, 128), planes),
        128,
        lambda: (floats(planes, height, width), zeros(16, planes, tiles), *int32(height, width, across, tiles)),
        expected,
    )


def _bytes(rows: int, n: int) -> np.ndarray:
    return whole(rows * n // 4, -(2**31), 2**31, np.int32).reshape(rows, -1)


def int8_linear(m: int, n: int, k: int) -> Case:
    def expected(x, w, token, channel, *_):
        sums = x.view(np.int8).astype(int) @ w.view(np.int8).astype(int).T
        return {4: (sums * token[:, None] * channel).astype(np.float16)}

    return Case(
        (ceil(n, 64), ceil(m, 64)),
        128,
        lambda: (
            *(_bytes(m, k), _bytes(n, k)[::-1].copy()),
            *(floats(m, low=1e-3, high=2e-3), floats(n, seed=1, low=1e-3, high=2e-3)),
            *(zeros(m, n, dtype=np.float16), *int32(m, n, k)),
        ),
        expected,
    )


def _linear(m: int, n: int, k: int):
    timed = {"m": m, "n": n, "k": k}
    return launch(timed, {"m": min(m, 128), "n": 512}, footprint=(m * k + n * k + 4 * (m + n), 2 * m * n))


def split_attention(heads: int, positions: int, split: int) -> Case:
    splits = ceil(positions, split)

    def expected(q, key, value, *_):
        score = np.einsum("hd,hpd->hp", q, np.repeat(key.astype(float), 4, 0)) / 8
        score = np.pad(score, ((0, 0), (0, splits * split - positions)), constant_values=-1e30)
        most = score.reshape(heads, splits, split).max(2)
        share = np.exp(score.reshape(heads, splits, split) - most[:, :, None])
        values = np.pad(np.repeat(value.astype(float), 4, 0), ((0, 0), (0, splits * split - positions), (0, 0)))
        sums = np.einsum("hsp,hspd->hsd", share, values.reshape(heads, splits, split, 64))
        return {3: sums, 4: np.stack([most, share.sum(2)], 2)}

    return Case(
        (splits, heads),
        128,
        lambda: (
            *(floats(heads, 64), floats(heads // 4, positions, 64, seed=1).astype(np.float16)),
            *(floats(heads // 4, positions, 64, seed=2).astype(np.float16), zeros(heads, splits, 64)),
            *(zeros(heads, splits, 2), *int32(positions, split)),
        ),
        expected,
    )


def _mixed(x: np.ndarray) -> np.ndarray:
    """Return the kernels' hash of uint32."""
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x7FEB352D)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


def gumbel_tokens(rows: int, n: int) -> Case:
    def expected(logit, token, n, coldness, seed):
        bits = _mixed(_mixed(np.arange(rows, dtype=np.uint32) + seed)[:, None] + np.arange(n, dtype=np.uint32))
        noise = -np.log(-np.log(((bits >> np.uint32(9)) + 0.5) / 2**23))
        return {1: np.argmax(logit * float(coldness) + noise, 1).astype(np.int32)}

    return Case(
        rows,
        256,
        lambda: (
            *(floats(rows, n, low=-5.0, high=5.0), zeros(rows, dtype=np.int32), *int32(n)),
            *(np.float32(1.25), np.uint32(2718)),
        ),
        expected,
    )


def flagged_scan(n: int) -> Case:
    """`n`: a multiple of four."""
    tiles = ceil(n, 1024)

    def expected(x, flag, *_):
        out, carry = np.zeros(n), np.zeros((tiles, 2))
        for i in range(n):
            begins = flag[i] or i % 1024 == 0
            out[i] = x[i] + (0 if begins else out[i - 1])
        for tile, flags in enumerate(np.array_split(flag, range(1024, n, 1024))):
            carry[tile] = out[min(tile * 1024 + 1023, n - 1)], flags.any()
        return {2: out, 3: carry}

    return Case(
        tiles,
        256,
        lambda: (
            *(floats(n), (whole(n, 0, 23, np.uint8) == 0).astype(np.uint8), zeros(n), zeros(tiles, 2)),
            *int32(n // 4),
        ),
        expected,
    )


def radix_scatter(n: int, shift: int) -> Case:
    tiles = ceil(n, 1024)

    def arguments() -> tuple:
        key = whole(n, 0, 2**32, np.uint32)
        digit = np.full(tiles * 1024, 16, np.uint8)
        digit[:n] = key >> np.uint32(shift) & np.uint32(15)
        counts = np.stack([(digit.reshape(tiles, 1024) == k).sum(1, dtype=np.int32) for k in range(16)])
        start = np.cumsum(counts.ravel(), dtype=np.int32) - counts.ravel()
        return key, start, zeros(n, dtype=np.uint32), *int32(n, shift)

    def expected(key, *_):
        return {2: key[np.argsort(key >> np.uint32(shift) & np.uint32(15), kind="stable")]}

    return Case(tiles, 256, arguments, expected)


def seismic_step(depth: int, height: int, width: int) -> Case:
    def expected(now, before, speed, *_):
        now = now.astype(float)
        middle = now[4:-4, 4:-4, 4:-4]
        total = -3 * 205 / 72 * middle
        for d, weight in enumerate((8 / 5, -1 / 5, 8 / 315, -1 / 560), 1):
            for axis in range(3):
                for by in (-d, d):
                    total += weight * np.roll(now, by, axis)[4:-4, 4:-4, 4:-4]
        return {3: 2 * middle - before + speed * total}

    return Case(
        (ceil(width, 32), ceil(height, 8)),
        (32, 8),
        lambda: (
            *(floats(depth + 8, height + 8, width + 8), floats(depth, height, width, seed=1)),
            *(floats(depth, height, width, seed=2, low=0.0, high=0.1), zeros(depth, height, width)),
            *int32(depth, height, width),
        ),
        expected,
    )


def _seismic(depth: int, height: int, width: int):
    n = depth * height * width
    footprint = 8 * n + 4 * (depth + 8) * (height + 8) * (width + 8), 4 * n
    timed = {"depth": depth, "height": height, "width": width}
    return launch(timed, {"height": min(height, 64), "width": min(width, 160)}, footprint=footprint)


@functools.lru_cache(1)
def _rows(rows: int, mean: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where rows begin, few of which are long, and random columns."""
    draw = random()
    lengths = np.minimum(mean * (draw.pareto(2.5, rows) * 1.2 + 0.2), 40 * mean).astype(np.int32)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return begin, draw.integers(0, rows, begin[-1], np.int32)


def spmm_rows(rows: int, mean: int) -> Case:
    def arguments() -> tuple:
        begin, column = _rows(rows, mean)
        return begin, column, floats(column.size), floats(rows, 64, seed=1), zeros(rows, 64), np.int32(rows)

    def expected(begin, column, weight, feature, out, _):
        out = out.astype(float)
        np.add.at(out, np.repeat(np.arange(rows), np.diff(begin)), weight[:, None] * feature[column])
        return {4: out}

    return Case(ceil(rows, 8), 256, arguments, expected)


def _sparse(rows: int, mean: int):
    def footprint() -> tuple[int, int]:
        begin, column = _rows(rows, mean)
        return 4 * begin.size + 8 * column.size + 256 * distinct(column), 256 * rows

    return launch({"rows": rows, "mean": mean}, sample=128, footprint=footprint)


def kth_largest(rows: int, n: int, k: int) -> Case:
    return Case(
        rows,
        512,
        lambda: (floats(rows, n), zeros(rows), *int32(n, k)),
        lambda x, *_: {1: -np.partition(-x, k - 1, axis=1)[:, k - 1]},
    )


LEVELS = np.array([-1, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0], np.float32)
LEVELS = np.append(LEVELS, np.array([0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1], np.float32))


def nf4_weights(groups: int) -> Case:
    """Return a case of so many groups of 64."""

    def expected(x, border, *_):
        most = np.abs(x).max(1)
        code = np.searchsorted(border, x * (np.float32(1) / most)[:, None]).astype(np.uint16).reshape(-1, 4)
        return {2: (code << np.arange(0, 16, 4, dtype=np.uint16)).sum(1, dtype=np.uint16), 3: most}

    return Case(
        ceil(groups, 16),
        256,
        lambda: (
            *(floats(groups, 64) * floats(groups, 1, seed=1, low=0.5), (LEVELS[1:] + LEVELS[:-1]) / 2),
            *(zeros(16 * groups, dtype=np.uint16), zeros(groups), *int32(16 * groups)),
        ),
        expected,
    )


def poisson_cg(squares: int, steps: int) -> Case:
    def expected(b, *_):
        def product(v):
            v = np.pad(v, ((0, 0), (1, 1), (1, 1)))
            near = v[:, :-2, 1:-1] + v[:, 2:, 1:-1] + v[:, 1:-1, :-2] + v[:, 1:-1, 2:]
            return 4 * v[:, 1:-1, 1:-1] - near

        r = b.astype(float)
        x, p = np.zeros_like(r), r.copy()
        for _ in range(steps):
            q, old = product(p), np.sum(r * r, (1, 2), keepdims=True)
            far = old / np.sum(p * q, (1, 2), keepdims=True)
            x, r = x + far * p, r - far * q
            p = r + np.sum(r * r, (1, 2), keepdims=True) / old * p
        return {1: x}

    return Case(squares, (32, 32), lambda: (floats(squares, 32, 32), zeros(squares, 32, 32), *int32(steps)), expected)


def eigen_3x3(n: int) -> Case:
    def expected(matrix, _):
        x, y, z, xy, xz, yz = matrix
        return {1: np.linalg.eigvalsh(np.array([[x, xy, xz], [xy, y, yz], [xz, yz, z]]).transpose(2, 0, 1)).T}

    def arguments() -> tuple:
        matrix = floats(6, n).astype(float)
        matrix[3:] *= np.resize(np.array([1, 1e-2, 1e-5]), n)  # some take more turns than others
        return matrix, zeros(3, n, dtype=float)

    return Case(ceil(n, 128), 128, arguments, expected)


@functools.lru_cache(1)
def _table(slots: int) -> np.ndarray:
    """Return a hash table, three fifths full of keys from 1 on and their values; what its end lacks room for goes
    behind it."""
    keys = np.arange(1, slots * 3 // 5, dtype=np.int32)
    place = _mixed(keys.view(np.uint32)) & np.uint32(slots - 1)
    order = np.argsort(place, kind="stable")
    number = np.arange(keys.size)
    table = zeros(slots + 2**12, 2, dtype=np.int32)
    table[number + np.maximum.accumulate(place[order] - number)] = np.stack([keys, keys * 3 % 1009], 1)[order]
    return table


def _keys(slots: int, n: int) -> np.ndarray:
    """Keys, half of which are in the table."""
    return whole(n, 1, slots * 6 // 5, np.int32)


def join_probe(slots: int, n: int) -> Case:
    def expected(keys, *_):
        return {3: np.where(keys < slots * 3 // 5, keys * 3 % 1009, 0).astype(np.int32)}

    return Case(
        ceil(n, 256),
        256,
        lambda: (_keys(slots, n), _table(slots).copy(), np.int32(slots - 1), zeros(n, dtype=np.int32)),
        expected,
    )


def _join(slots: int, n: int):
    def footprint() -> tuple[int, int]:
        first = _mixed(_keys(slots, n).view(np.uint32)) & np.uint32(slots - 1)
        return 4 * n + 32 * distinct(first // 4), 4 * n

    return launch({"slots": slots, "n": n}, {"n": min(n, 2**16)}, footprint=footprint)


def joint_histogram(blocks: int, rounds: int) -> Case:
    n = 256 * blocks * rounds - 7

    def arguments() -> tuple:
        left = whole(n, 0, 200, np.uint8)
        return left, left + np.resize(random().integers(0, 55, 99991).astype(np.uint8), n), zeros(4096, dtype=np.int32)

    def expected(left, right, counts):
        return {2: np.bincount(left.astype(int) // 4 * 64 + right // 4, minlength=4096).astype(np.int32)}

    return Case(blocks, 256, arguments, expected)


def pixel_shuffle(channels: int, height: int, width: int, by: int) -> Case:
    def expected(image, *_):
        parts = image.reshape(channels, by, by, height, width).transpose(0, 3, 1, 4, 2)
        return {2: parts.reshape(channels, height * by, width * by)}

    return Case(
        (ceil(width * by, 32), ceil(height * by, 8), channels),
        (32, 8),
        lambda: (
            *(floats(channels * by * by, height, width), np.int32(by)),
            zeros(channels, height * by, width * by),
        ),
        expected,
    )


def delay_and_sum(height: int, width: int, elements: int, samples: int) -> Case:
    def expected(received, pitch, rate, _):
        x, z = (np.arange(width) - width // 2) * pitch, (np.arange(height)[:, None] + 1) * pitch
        total = np.zeros((height, width))
        for e, line in enumerate(received):
            at = (z + np.hypot(x - (e - elements // 2) * pitch, z)) * rate
            total += np.where(at.astype(int) < samples - 1, np.interp(at, np.arange(samples), line), 0)
        return {3: total}

    def arguments() -> tuple:
        received = np.cumsum(floats(elements, samples), 1, dtype=np.float32) / np.float32(samples)
        return received, np.float32(0.25), np.float32(1.7 * samples / height), zeros(height, width)

    return Case((ceil(width, 16), ceil(height, 16)), (16, 16), arguments, expected)


KERNELS = [
    UnseenKernel(
        "winograd_input",
        CUDA,
        winograd_input,
        {"planes": 2, "height": 13, "width": 20},
        [
            launch({"planes": 509, "height": 57, "width": 57}, {"planes": 32}),
            launch({"planes": 4093, "height": 28, "width": 28}, {"planes": 64}),
            launch({"planes": 3840, "height": 56, "width": 56}, {"planes": 32}),
        ],
    ),
    UnseenKernel(
        "int8_linear",
        CUDA,
        int8_linear,
        {"m": 70, "n": 90, "k": 128},
        [_linear(37, 4096, 4096), _linear(1000, 3072, 768), _linear(8192, 5120, 5120)],
        tolerance=2e-3,
    ),
    UnseenKernel(
        "split_attention",
        CUDA,
        split_attention,
        {"heads": 8, "positions": 101, "split": 40},
        [
            launch({"heads": 8, "positions": 1999, "split": 250}),
            launch({"heads": 32, "positions": 8191, "split": 512}, {"heads": 4}),
            launch({"heads": 192, "positions": 16384, "split": 1024}, {"heads": 4}),
        ],
        tolerance=1e-3,
    ),
    UnseenKernel(
        "gumbel_tokens",
        CUDA,
        gumbel_tokens,
        {"rows": 3, "n": 2999},
        [
            launch({"rows": 3, "n": 50257}),
            launch({"rows": 257, "n": 32000}, {"rows": 4}),
            launch({"rows": 1280, "n": 50257}, {"rows": 4}),
        ],
    ),
    UnseenKernel(
        "flagged_scan",
        CUDA,
        flagged_scan,
        {"n": 2500},
        [launch({"n": n}, {"n": 2**18}) for n in (4_999_996, 12_000_028, 30_000_004)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "radix_scatter",
        CUDA,
        radix_scatter,
        {"n": 2500, "shift": 8},
        [launch({"n": n, "shift": 12}, {"n": min(n, 2**17)}) for n in (500_009, 3_000_017, 2**25)],
    ),
    UnseenKernel(
        "seismic_step",
        CUDA,
        seismic_step,
        {"depth": 6, "height": 11, "width": 39},
        [_seismic(40, 47, 61), _seismic(128, 250, 250), _seismic(149, 266, 400)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "spmm_rows",
        CUDA,
        spmm_rows,
        {"rows": 50, "mean": 7},
        [_sparse(1009, 12), _sparse(100_003, 8), _sparse(250_000, 32)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "kth_largest",
        CUDA,
        kth_largest,
        {"rows": 3, "n": 1500, "k": 40},
        [
            launch({"rows": 7, "n": 10_007, "k": 50}),
            launch({"rows": 300, "n": 32_000, "k": 256}, {"rows": 6}),
            launch({"rows": 2048, "n": 25_000, "k": 1000}, {"rows": 6}),
        ],
    ),
    UnseenKernel(
        "nf4_weights",
        CUDA,
        nf4_weights,
        {"groups": 21},
        [launch({"groups": n}, {"groups": 2**13}) for n in (100_003, 2**18, 800_001)],
    ),
    UnseenKernel(
        "poisson_cg",
        CUDA,
        poisson_cg,
        {"squares": 2, "steps": 9},
        [
            launch({"squares": 1, "steps": 30}),
            launch({"squares": 97, "steps": 150}, {"squares": 2}),
            launch({"squares": 3000, "steps": 60}, {"squares": 2}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "eigen_3x3",
        NUMBA,
        eigen_3x3,
        {"n": 300},
        [launch({"n": n}, {"n": min(n, 2**14)}) for n in (40_009, 500_009, 3_500_000)],
        tolerance=1e-9,
    ),
    UnseenKernel(
        "join_probe",
        NUMBA,
        join_probe,
        {"slots": 2**8, "n": 1000},
        [_join(2**12, 3_000_017), _join(2**19, 2_000_003), _join(2**23, 12_000_000)],
    ),
    UnseenKernel(
        "joint_histogram",
        NUMBA,
        joint_histogram,
        {"blocks": 3, "rounds": 4},
        [
            launch({"blocks": 29, "rounds": 31}),
            launch({"blocks": 264, "rounds": 100}, {"blocks": 8}, footprint=(2 * 264 * 25600, 2**14)),
            launch({"blocks": 1056, "rounds": 450}, {"blocks": 4}, footprint=(2 * 1056 * 115200, 2**14)),
        ],
    ),
    UnseenKernel(
        "pixel_shuffle",
        NUMBA,
        pixel_shuffle,
        {"channels": 2, "height": 7, "width": 11, "by": 3},
        [
            launch({"channels": 7, "height": 241, "width": 331, "by": 3}, {"channels": 1}),
            launch({"channels": 64, "height": 180, "width": 320, "by": 2}, {"channels": 1}),
            launch({"channels": 3, "height": 911, "width": 701, "by": 4}, {"channels": 1, "height": 32}),
        ],
    ),
    UnseenKernel(
        "delay_and_sum",
        NUMBA,
        delay_and_sum,
        {"height": 20, "width": 25, "elements": 16, "samples": 200},
        [
            launch({"height": 64, "width": 67, "elements": 128, "samples": 1024}),
            launch({"height": 300, "width": 511, "elements": 128, "samples": 2048}, sample=64),
            launch({"height": 1200, "width": 1000, "elements": 192, "samples": 3000}, sample=64),
        ],
        warm=True,
        tolerance=1e-3,
    ),
]
