"""The third set of unseen kernels, of kinds that neither set before has, by somebody who had built the model.

All of it was held out: times were read once, when the model was final.
"""

from __future__ import annotations

import base64 as encoding

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, floats, int32, launch, random, zeros

CUDA, NUMBA = "third.cu", "third_numba_kernels.py"


def dequantise_int4(words: int) -> Case:
    def expected(packed, scale, *_):
        values = (packed[:, None] >> np.arange(0, 32, 4, np.uint32) & 15).astype(np.float32) - 8
        return {2: (values * np.repeat(scale, 8)[:, None]).ravel()}

    return Case(
        ceil(words, 256),
        256,
        lambda: (
            np.resize(random().integers(0, 2**32, min(words, 2**20), np.uint32), words),
            *(floats(words // 8), zeros(8 * words), *int32(words, 8)),
        ),
        expected,
    )


def dispatch_rows(rows: int, width: int) -> Case:
    return Case(
        rows,
        128,
        lambda: (
            *(floats(rows, width), random().permutation(rows).astype(np.int32), zeros(rows, width)),
            *int32(width // 4),
        ),
        lambda x, place, *_: {2: x[np.argsort(place)]},
    )


def state_scan(channels: int, steps: int) -> Case:
    def expected(x, rate, *_):
        state, out = np.zeros((channels, 4)), np.zeros((steps, channels))
        for t, v in enumerate(x.astype(float)):
            state = state * np.exp(-rate / (1 + np.exp(-v))[:, None]) + v[:, None]
            out[t] = state.sum(1)
        return {2: out}

    return Case(
        ceil(channels, 64),
        64,
        lambda: (
            *(floats(steps, channels), floats(channels, 4, seed=1, low=0.1), zeros(steps, channels)),
            *int32(channels, steps),
        ),
        expected,
    )


def base64(groups: int) -> Case:
    return Case(
        ceil(groups, 256),
        256,
        lambda: (
            np.resize(random().integers(0, 2**32, min(3 * groups, 3 * 2**18), np.uint32), 3 * groups),
            *(zeros(4 * groups, dtype=np.uint32), *int32(groups)),
        ),
        lambda data, *_: {1: np.frombuffer(encoding.b64encode(data.tobytes()), np.uint32)},
    )


def turn_image(height: int, width: int, degrees: float, rows: int | None = None) -> Case:
    cosine, sine = np.float32(np.cos(np.radians(degrees))), np.float32(np.sin(np.radians(degrees)))

    def expected(image, *_):
        y, x = np.mgrid[:height, :width].astype(np.float32)
        u, v = x - np.float32(0.5 * width), y - np.float32(0.5 * height)
        sx = np.clip(cosine * u - sine * v + np.float32(0.5 * width), 0, np.float32(width - 1.001))
        sy = np.clip(sine * u + cosine * v + np.float32(0.5 * height), 0, np.float32(height - 1.001))
        ix, iy = sx.astype(int), sy.astype(int)
        fx, fy = sx - ix, sy - iy
        top, bottom = ((1 - fx) * image[iy + k, ix] + fx * image[iy + k, ix + 1] for k in (0, 1))
        return {1: top + fy * (bottom - top)}

    return Case(
        (ceil(width, 32), ceil(rows or height, 8)),
        (32, 8),
        lambda: (floats(height, width), zeros(height, width), *int32(height, width), cosine, sine),
        expected,
    )


def pair_energies(n: int, first: int | None = None) -> Case:
    def expected(*arguments):
        at = np.stack(arguments[:3])
        r = 1 / (((at[:, :, None] - at[:, None, :]) ** 2).sum(0) + 0.5)
        return {3: (r**3 * (r**3 - 1)).sum(1)}

    return Case(
        (first or n) // 128,
        128,
        lambda: (*(4 * floats(n, seed=k).astype(float) for k in range(3)), np.zeros(n), *int32(n)),
        expected,
    )


def transpose_bits(words: int) -> Case:
    def expected(word, *_):
        bits = word.reshape(-1, 32)[:, :, None] >> np.arange(32, dtype=np.uint32) & 1
        return {1: (bits.swapaxes(1, 2) << np.arange(32, dtype=np.uint32)).sum(2).astype(np.uint32).ravel()}

    return Case(
        ceil(words, 256),
        256,
        lambda: (
            np.resize(random().integers(0, 2**32, min(words, 2**20), np.uint32), words),
            *(zeros(words, dtype=np.uint32), *int32(words)),
        ),
        expected,
    )


def particle_density(side: int, mean: int) -> Case:
    """`mean` particles in each of side times side cells, by chance more or fewer."""

    def arguments() -> tuple:
        rng = random()
        number = rng.poisson(mean, side * side)
        cell = np.repeat(np.arange(side * side), number)
        at = rng.random((cell.size, 2), np.float32) * np.float32(0.999) + np.stack([cell % side, cell // side], axis=1)
        begin = np.concatenate([[0], np.cumsum(number)]).astype(np.int32)
        n = int(mean * side * side)  # threads for the mean number; those of few particles more are not asked for
        return at.astype(np.float32), begin, zeros(cell.size), *int32(min(n, cell.size), side), np.float32(0.81)

    def expected(at, begin, density, n, *_):
        left = 0.81 - ((at[:, None].astype(float) - at[None]) ** 2).sum(2)
        density[:n] = (np.where(left > 0, left, 0) ** 3).sum(1)[:n]
        return {2: density}

    return Case(ceil(mean * side * side, 128), 128, arguments, expected)


def sphere_distances(rows: int, columns: int) -> Case:
    def expected(latitude, longitude, to_latitude, to_longitude, _):
        a = np.sin((to_latitude[None] - latitude[:, None]) / 2) ** 2
        b = np.sin((to_longitude[None] - longitude[:, None]) / 2) ** 2
        h = a + np.cos(latitude)[:, None] * np.cos(to_latitude)[None] * b
        return {4: 2 * np.arcsin(np.sqrt(np.minimum(h, 1)))}

    return Case(
        (ceil(columns, 32), ceil(rows, 8)),
        (32, 8),
        lambda: (
            *(floats(n, seed=k, low=-1.2, high=1.2) for k, n in enumerate((rows, rows, columns, columns))),
            zeros(rows, columns),
        ),
        expected,
    )


def median_of_5(n: int) -> Case:
    def expected(x, _):
        return {1: np.median(np.stack([x[k : k + n] for k in range(5)]), axis=0)}

    return Case(ceil(n, 256), 256, lambda: (floats(n + 4), zeros(n)), expected)


def rule_110(rings: int, steps: int) -> Case:
    def expected(start, *_):
        cells = start.copy()
        for _ in range(steps):
            cells = 110 >> (4 * np.roll(cells, 1, 1) + 2 * cells + np.roll(cells, -1, 1)) & 1
        return {2: cells.astype(np.int32)}

    return Case(
        rings,
        512,
        lambda: (
            np.resize(random().integers(0, 2, (min(rings, 64), 512)), (rings, 512)).astype(np.int32),
            *(np.int32(steps), zeros(rings, 512, dtype=np.int32)),
        ),
        expected,
    )


def smooth_series(series: int, steps: int) -> Case:
    def expected(x, weight, _):
        mean, out = x[:, 0].astype(float), np.zeros(x.shape)
        for t in range(steps):
            mean = mean + weight * (x[:, t] - mean)
            out[:, t] = mean
        return {2: out}

    return Case(
        ceil(series, 128), 128, lambda: (floats(series, steps), np.float32(0.1), zeros(series, steps)), expected
    )


def vote(n: int, side: int) -> Case:
    def expected(x, y, counts):
        where = (y * np.float32(side)).astype(int), (x * np.float32(side)).astype(int)
        np.add.at(counts, where, 1)
        return {2: counts}

    return Case(
        ceil(n, 256),
        256,
        lambda: (
            *(floats(n, seed=k, low=0.0, high=0.9999) for k in range(2)),
            zeros(side, side, dtype=np.int32),
        ),
        expected,
    )


KERNELS = [
    UnseenKernel(
        "dequantise_int4",
        CUDA,
        dequantise_int4,
        {"words": 1000},
        [launch({"words": n}, {"words": min(n, 2**16)}) for n in (2**15, 2**20, 2**25)],
    ),
    UnseenKernel(
        "dispatch_rows",
        CUDA,
        dispatch_rows,
        {"rows": 20, "width": 256},
        [
            launch({"rows": 512, "width": 1024}),
            launch({"rows": 16384, "width": 1024}, {"rows": 256}),
            launch({"rows": 65536, "width": 4096}, {"rows": 64}),
        ],
    ),
    UnseenKernel(
        "state_scan",
        CUDA,
        state_scan,
        {"channels": 100, "steps": 20},
        [
            launch({"channels": 2048, "steps": 1024}, {"steps": 128}, work=8),
            launch({"channels": 32768, "steps": 512}, {"channels": 4096, "steps": 64}, work=8),
            launch({"channels": 262144, "steps": 256}, {"channels": 4096, "steps": 32}, work=8),
        ],
        tolerance=1e-3,
    ),
    UnseenKernel(
        "base64",
        CUDA,
        base64,
        {"groups": 300},
        [launch({"groups": n}, {"groups": min(n, 2**16)}) for n in (2**14, 2**20, 2**25)],
    ),
    UnseenKernel(
        "turn_image",
        CUDA,
        turn_image,
        {"height": 40, "width": 70, "degrees": 30.0},
        [
            launch({"height": 480, "width": 640, "degrees": 30.0}),
            launch({"height": 2160, "width": 3840, "degrees": 30.0}, sample=256),
            launch({"height": 8192, "width": 8192, "degrees": 90.0}, sample=256, footprint=(2**28, 2**28)),
        ],
        tolerance=2e-2,
    ),
    UnseenKernel(
        "pair_energies",
        CUDA,
        pair_energies,
        {"n": 256},
        [
            launch({"n": 4096}, {"first": 256}, footprint=(3 * 8 * 4096, 8 * 4096)),
            launch({"n": 16896}, {"first": 256}, footprint=(3 * 8 * 16896, 8 * 16896)),
            launch({"n": 67584}, {"first": 128}, footprint=(3 * 8 * 67584, 8 * 67584)),
        ],
        warm=True,
        tolerance=1e-8,
    ),
    UnseenKernel(
        "transpose_bits",
        CUDA,
        transpose_bits,
        {"words": 320},
        [launch({"words": n}, {"words": min(n, 2**15)}) for n in (2**15, 2**21, 2**26)],
    ),
    UnseenKernel(
        "particle_density",
        CUDA,
        particle_density,
        {"side": 6, "mean": 9},
        [
            launch({"side": 64, "mean": 8}),
            launch({"side": 256, "mean": 16}, sample=128),
            launch({"side": 1024, "mean": 8}, sample=128),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "sphere_distances",
        NUMBA,
        sphere_distances,
        {"rows": 20, "columns": 50},
        [
            launch({"rows": 256, "columns": 1024}, {"rows": 64}),
            launch({"rows": 2048, "columns": 4096}, {"rows": 8}),
            launch({"rows": 16384, "columns": 8192}, {"rows": 8}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "median_of_5",
        NUMBA,
        median_of_5,
        {"n": 1000},
        [launch({"n": n}, {"n": min(n, 2**16)}) for n in (2**16, 2**22, 2**27)],
    ),
    UnseenKernel(
        "rule_110",
        NUMBA,
        rule_110,
        {"rings": 2, "steps": 9},
        [
            launch({"rings": 132, "steps": 1024}, {"rings": 2, "steps": 64}, work=16),
            launch({"rings": 528, "steps": 1024}, {"rings": 2, "steps": 64}, work=16),
            launch({"rings": 16896, "steps": 256}, {"rings": 2, "steps": 32}, work=8),
        ],
    ),
    UnseenKernel(
        "smooth_series",
        NUMBA,
        smooth_series,
        {"series": 140, "steps": 20},
        [
            launch({"series": 4096, "steps": 1024}, {"steps": 128}, work=8),
            launch({"series": 65536, "steps": 512}, {"series": 4096, "steps": 64}, work=8),
            launch({"series": 1048576, "steps": 128}, {"series": 4096}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "vote",
        NUMBA,
        vote,
        {"n": 1000, "side": 16},
        [
            launch({"n": 2**18, "side": 256}),
            launch({"n": 2**24, "side": 2048}, sample=256),
            launch({"n": 2**24, "side": 64}, sample=256),
        ],
    ),
]
