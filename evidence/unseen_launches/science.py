"""Arithmetic: bodies, option prices, random numbers, clusters, orbits, chaos, sums of waves, polynomials."""

from __future__ import annotations

import math

import numpy as np

from evidence.unseen_launches.unseen import NUMBA, Case, UnseenKernel, ceil, floats, int32, launch, zeros


def n_body(n: int, blocks: int | None = None) -> Case:
    def expected(body, *_):
        body = body.astype(float)
        d = body[None, :, :3] - body[:, None, :3]
        pull = body[None, :, 3] / ((d**2).sum(2) + 0.01) ** 1.5
        return {1: np.concatenate([(pull[..., None] * d).sum(1), np.zeros((n, 1))], 1)}

    return Case(
        n // 256 if blocks is None else blocks,
        256,
        lambda: (floats(n, 4, low=0.0), zeros(n, 4), *int32(n)),
        expected,
    )


def black_scholes(n: int, block: int = 128) -> Case:
    rate, volatility = np.float32(0.02), np.float32(0.3)

    def expected(s, k, t, *_):
        s, k, t = (x.astype(float) for x in (s, k, t))
        root = volatility * np.sqrt(t)
        d1 = (np.log(s / k) + (rate + 0.5 * volatility**2) * t) / root
        n1, n2 = (0.5 * np.vectorize(math.erfc)(-d / math.sqrt(2)) for d in (d1, d1 - root))
        discounted = k * np.exp(-rate * t)
        return {3: s * n1 - discounted * n2, 4: discounted * (1 - n2) - s * (1 - n1)}

    return Case(
        ceil(n, block),
        block,
        lambda: (
            floats(n, low=5.0, high=30.0),
            floats(n, seed=1, low=1.0, high=100.0),
            floats(n, seed=2, low=0.25, high=10.0),
            *(zeros(n), zeros(n), *int32(n), rate, volatility),
        ),
        expected,
    )


def monte_carlo_pi(blocks: int, points: int) -> Case:
    seed = np.uint32(99)

    def expected(hits, *_):
        s = np.arange(1, 256 * blocks + 1, dtype=np.uint32) * np.uint32(2654435769) ^ seed
        inside = np.zeros(s.size, np.uint32)
        for _ in range(points):
            place = []
            for _ in range(2):
                s ^= s << np.uint32(13)
                s ^= s >> np.uint32(17)
                s ^= s << np.uint32(5)
                place.append((s >> np.uint32(8)).astype(np.float64) / 2**24)
            inside += place[0] ** 2 + place[1] ** 2 < 1
        return {0: inside.reshape(blocks, 256).sum(1)}

    return Case(blocks, 256, lambda: (zeros(blocks, dtype=np.uint32), *int32(points), seed), expected)


def kmeans_assign(n: int) -> Case:
    def expected(point, centre, *_):
        distance = ((point.T[:, None] - centre[None]) ** 2).sum(2)
        return {2: distance.argmin(1)}

    return Case(
        ceil(n, 128),
        128,
        lambda: (floats(16, n), floats(64, 16, seed=1), zeros(n, dtype=np.int32), *int32(n)),
        expected,
    )


def kepler_fp64(n: int, steps: int) -> Case:
    e = np.float64(0.3)

    def expected(mean, *_):
        x = mean.copy()
        for _ in range(steps):
            x -= (x - e * np.sin(x) - mean) / (1 - e * np.cos(x))
        return {1: x}

    return Case(
        ceil(n, 128),
        128,
        lambda: (floats(n, low=0.0, high=6.28).astype(float), zeros(n, dtype=float), *int32(n), e, *int32(steps)),
        expected,
    )


def polynomial_chains(blocks: int, block: int, degree: int) -> Case:
    n = 8 * blocks * block

    def expected(x, coefficient, *_):
        return {2: np.polyval(coefficient.astype(float), x)}

    return Case(blocks, block, lambda: (floats(n), floats(degree, seed=1), zeros(n), *int32(n, degree)), expected)


def lorenz(n: int, steps: int) -> Case:
    dt = np.float32(0.005)

    def expected(x, y, z, *_):
        def slope(state):
            a, b, c = state
            return np.array([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])

        state = np.array([x, y, z], float)
        for _ in range(steps):
            k1 = slope(state)
            k2 = slope(state + dt / 2 * k1)
            k3 = slope(state + dt / 2 * k2)
            k4 = slope(state + dt * k3)
            state = state + dt / 6 * (k1 + 2 * (k2 + k3) + k4)
        return dict(enumerate(state))

    return Case(
        ceil(n, 64), 64, lambda: (floats(n), floats(n, seed=1), floats(n, seed=2), np.int32(steps), dt), expected
    )


def wave_sums(n: int, waves: int) -> Case:
    def expected(place, frequency, *_):
        phase = (frequency * place[:, None]).astype(float)
        return {2: np.cos(phase).sum(1), 3: np.sin(phase).sum(1)}

    return Case(
        ceil(n, 256),
        256,
        lambda: (floats(n), floats(waves, seed=1, low=0.0, high=50.0), zeros(n), zeros(n)),
        expected,
    )


def _bodies(n: int):
    return launch({"n": n}, {"n": 2048, "blocks": 4}, work=n / 2048, footprint=(16 * n, 16 * n))


KERNELS = [
    UnseenKernel(
        "n_body",
        "science.cu",
        n_body,
        {"n": 512},
        [_bodies(4096), _bodies(32768), _bodies(131072)],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "black_scholes",
        "science.cu",
        black_scholes,
        {"n": 1000},
        [
            launch({"n": 2**17}),
            launch({"n": 2**22}, {"n": 2**17}),
            launch({"n": 2**26}, {"n": 2**17}),
            launch({"n": 2**22, "block": 1024}, {"n": 2**17}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "monte_carlo_pi",
        "science.cu",
        monte_carlo_pi,
        {"blocks": 3, "points": 20},
        [
            launch({"blocks": 132, "points": 256}, {"blocks": 33}),
            launch({"blocks": 1056, "points": 1024}, {"blocks": 33}),
            launch({"blocks": 8, "points": 65536}, {"points": 4096}, work=16),
        ],
        warm=True,
    ),
    UnseenKernel(
        "kmeans_assign",
        "science.cu",
        kmeans_assign,
        {"n": 300},
        [
            launch({"n": 2**14}),
            launch({"n": 2**20}, {"n": 2**14}),
            launch({"n": 2**24}, {"n": 2**14}),
        ],
    ),
    UnseenKernel(
        "kepler_fp64",
        "science.cu",
        kepler_fp64,
        {"n": 300, "steps": 3},
        [
            launch({"n": 2**13, "steps": 4}),
            launch({"n": 2**20, "steps": 4}, {"n": 2**13}),
            launch({"n": 2**22, "steps": 16}, {"n": 2**13}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "polynomial_chains",
        "science.cu",
        polynomial_chains,
        {"blocks": 3, "block": 64, "degree": 20},
        [
            launch({"blocks": 132, "block": 32, "degree": 4096}),
            launch({"blocks": 132, "block": 256, "degree": 4096}, {"blocks": 66}),
            launch({"blocks": 4096, "block": 256, "degree": 1024}, {"blocks": 64}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "lorenz",
        NUMBA,
        lorenz,
        {"n": 100, "steps": 20},
        [
            launch({"n": 4096, "steps": 1000}),
            launch({"n": 262144, "steps": 100}, {"n": 16384}),
            launch({"n": 2097152, "steps": 200}, {"n": 16384}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "wave_sums",
        NUMBA,
        wave_sums,
        {"n": 300, "waves": 40},
        [
            launch({"n": 4096, "waves": 512}),
            launch({"n": 65536, "waves": 2048}, {"n": 2048}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
]
