"""The fourth set of unseen kernels, of kinds that no set before has, by a writer who had not read the model.

Nor a line of `evidence.estimates` or a recorded time: only the sets before, and the lines in an issue and in
budget.toml that name what the model weighs. All of it is held out, and none of it recorded yet (2026-11-27).
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, distinct, floats, int32, launch, random, zeros

CUDA, NUMBA = "fourth.cu", "fourth_numba_kernels.py"


def whole(n: int, high: int, kind: type) -> np.ndarray:
    """Whole numbers from 0 to below `high`. Of large arrays the first 2^22 come again and again."""
    return np.resize(random().integers(0, high, min(n, 2**22)).astype(kind), n)


def sha256(messages: int) -> Case:
    def expected(data, *_):
        digests = b"".join(hashlib.sha256(row.tobytes()).digest() for row in data)
        return {1: np.frombuffer(digests, np.uint32).reshape(-1, 8)}

    return Case(
        ceil(messages, 128),
        128,
        lambda: (
            whole(16 * messages, 2**32, np.uint32).reshape(-1, 16),
            *(zeros(messages, 8, dtype=np.uint32), *int32(messages)),
        ),
        expected,
    )


def gru_gates(rows: int, width: int) -> Case:
    def expected(x, recurrent, bias, h, *_):
        (a, b, c), (ra, rb, rc), (ba, bb, bc) = (np.split(v, 3, axis=-1) for v in (x, recurrent, bias))
        reset, keep = 1 / (1 + np.exp(-(a + ra + ba))), 1 / (1 + np.exp(-(b + rb + bb)))
        fresh = np.tanh(c + reset * (rc + bc))
        return {4: fresh + keep * (h - fresh)}

    return Case(
        ceil(rows * width, 512),
        512,
        lambda: (
            *(floats(rows, 3 * width), floats(rows, 3 * width, seed=1), floats(3 * width, seed=2)),
            *(floats(rows, width, seed=3), zeros(rows, width), *int32(rows * width, width)),
        ),
        expected,
    )


def int8_scores(heads: int, positions: int) -> Case:
    def expected(query, key, scale, *_):
        return {3: np.einsum("hc,hpc->hp", query, key.astype(np.float32)) * scale}

    return Case(
        (ceil(positions, 8), heads),
        256,
        lambda: (
            *(floats(heads, 128), whole(heads * positions * 128, 255, np.uint8).view(np.int8).reshape(heads, -1, 128)),
            *(floats(heads, positions, seed=1, low=0.001, high=0.01), zeros(heads, positions), *int32(positions)),
        ),
        expected,
    )


def top_p(rows: int, n: int) -> Case:
    def arguments() -> tuple:
        p = -np.sort(-floats(min(rows, 64), n, low=0.5) / np.arange(5, n + 5, dtype=np.float32))
        p = np.resize(p / p.sum(1, keepdims=True), (rows, n))
        return p, zeros(rows, n), zeros(rows, dtype=np.int32), np.int32(n), np.float32(0.9)

    def expected(p, out, kept, n, top):
        keep = np.cumsum(p.astype(float), 1) - p < top
        return {1: p * keep, 2: keep.sum(1).astype(np.int32)}

    return Case(rows, 1024, arguments, expected)


def sobel_tile(height: int, width: int) -> Case:
    def expected(image, *_):
        p = np.pad(image.astype(int), 1)
        wide, tall = p[:-2] + 2 * p[1:-1] + p[2:], p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        gx, gy = wide[:, 2:] - wide[:, :-2], tall[2:] - tall[:-2]
        return {1: np.minimum(np.sqrt((gx * gx + gy * gy).astype(np.float32)), 255).astype(np.uint8)}

    return Case(
        (ceil(width, 30), ceil(height, 30)),
        (32, 32),
        lambda: (
            whole(height * width, 256, np.uint8).reshape(height, width),
            *(zeros(height, width, dtype=np.uint8), *int32(height, width)),
        ),
        expected,
    )


def push_particles(n: int, side: int) -> Case:
    def arguments() -> tuple:
        particles = floats(n, 5)
        particles[:, :2] = floats(n, 2, seed=1, low=0.0, high=0.9999) * side
        return particles, floats(side, side, 2, seed=2), *int32(n, side), np.float32(0.5)

    def expected(particles, field, n, side, dt):
        at, charge = particles[:, :2].astype(float), particles[:, 4:]
        x, y = at.astype(int).T
        fx, fy = (at % 1).T[:, :, None]
        upper, lower = (
            (1 - fx) * field[(y + k) % side, x] + fx * field[(y + k) % side, (x + 1) % side] for k in (0, 1)
        )
        speed = particles[:, 2:4] + dt * charge * ((1 - fy) * upper + fy * lower)
        return {0: np.hstack([(at + dt * speed) % side, speed, charge])}

    return Case(ceil(n, 96), 96, arguments, expected)


def rnn_sequence(sequences: int, hidden: int, steps: int) -> Case:
    def expected(x, weight, *_):
        h = np.zeros((sequences, hidden))
        for one in x:
            h = np.tanh(one + h @ weight)
        return {2: h}

    return Case(
        sequences,
        hidden,
        lambda: (
            *(floats(steps, sequences, hidden), floats(hidden, hidden, seed=1) / np.float32(hidden**0.5)),
            *(zeros(sequences, hidden), *int32(steps)),
        ),
        expected,
        4 * hidden,
    )


def _network(sequences: int, hidden: int, steps: int):
    timed = {"sequences": sequences, "hidden": hidden, "steps": steps}
    footprint = 4 * hidden * (sequences * steps + hidden), 4 * hidden * sequences
    return launch(timed, {"sequences": min(sequences, 4), "steps": 32}, work=steps / 32, footprint=footprint)


def solve_lower(matrices: int, columns: int) -> Case:
    def expected(lower, b, *_):
        return {2: np.linalg.solve(np.tril(lower).astype(float), b)}

    return Case(
        (ceil(columns, 64), matrices),
        64,
        lambda: (
            floats(matrices, 32, 32, low=-0.5, high=0.5) + 2 * np.eye(32, dtype=np.float32),
            *(floats(matrices, 32, columns, seed=1), zeros(matrices, 32, columns), *int32(columns)),
        ),
        expected,
    )


def equalise(blocks: int, rounds: int) -> Case:
    n = 320 * blocks * rounds - 7

    def expected(image, up_to, *_):
        table = 255 * (up_to.astype(int) - up_to[0]) // (up_to[255] - up_to[0])
        return {2: table.astype(np.uint8)[image]}

    def arguments() -> tuple:
        image = whole(4 * n, 256, np.uint8).reshape(n, 4)
        up_to = np.cumsum(random().integers(1, 2 * n // 128, 256)).astype(np.int32)
        return image, up_to, zeros(n, 4, dtype=np.uint8), np.int32(n)

    return Case(blocks, 320, arguments, expected)


@functools.lru_cache(1)
def _edges(vertices: int, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sources in order, random targets, and distances of vertices, half of which are -1: not reached."""
    draw = random()
    target = draw.integers(0, vertices, vertices * degree, np.int32)
    distance = draw.integers(0, 1000, vertices, np.int32)
    distance[draw.random(vertices) < 0.5] = -1
    return np.repeat(np.arange(vertices, dtype=np.int32), degree), target, distance


def relax_edges(vertices: int, degree: int, first: int | None = None) -> Case:
    """`first`: how many edges are relaxed, by a smaller grid."""

    def expected(source, target, weight, distance, shorter):
        reached = distance[source] >= 0
        np.minimum.at(shorter, target[reached], (distance[source] + weight)[reached])
        return {4: shorter}

    def arguments() -> tuple:
        source, target, distance = _edges(vertices, degree)
        shorter = np.where(distance < 0, np.int32(2**30), distance)
        return source, target, whole(source.size, 100, np.int32), distance.copy(), shorter

    return Case(ceil(first or vertices * degree, 256), 256, arguments, expected)


def _relax(vertices: int, degree: int, first: int | None = None):
    def footprint() -> tuple[int, int]:
        source, target, distance = _edges(vertices, degree)
        reached = np.flatnonzero(distance[source] >= 0)
        least = 32 * distinct(target[reached] // 8)
        return 4 * (source.size + vertices) + 64 * distinct(reached // 8) + least, least

    graph = {"vertices": vertices, "degree": degree}
    return launch(graph, {"first": first} if first else None, footprint=footprint)


def barrier_option(paths: int, steps: int) -> Case:
    def expected(seeds, steps, drift, volatility, barrier, _):
        def shifted(state):
            for left, by in ((True, 13), (False, 17), (True, 5)):
                state = state ^ (state << np.uint32(by) if left else state >> np.uint32(by))
            return state

        state, price, alive = shifted(seeds), np.full(seeds.size, 100.0), np.ones(seeds.size, bool)
        for _ in range(steps):
            size, state = ((state >> np.uint32(8)) + 1.0) / 2**24, shifted(state)
            turn, state = (state >> np.uint32(8)) / 2**24, shifted(state)
            normal = np.sqrt(-2 * np.log(size)) * np.cos(2 * np.pi * turn)
            price *= np.exp(drift + volatility * normal)
            alive &= price >= barrier
        return {5: np.where(alive, np.maximum(price - 100, 0), 0).astype(np.float32)}

    return Case(
        ceil(paths, 192),
        192,
        lambda: (
            *(whole(paths, 2**32 - 1, np.uint32) + np.uint32(1), np.int32(steps), np.float32(1e-4)),
            *(np.float32(0.02), np.float32(80), zeros(paths)),
        ),
        expected,
    )


def march_rays(height: int, width: int) -> Case:
    def expected(_):
        y, x = np.mgrid[:height, :width].astype(float)
        x, y = (x - 0.5 * width) / height, (0.5 * height - y) / height
        ray = np.stack([x, y, np.ones_like(x)]) / np.sqrt(x * x + y * y + 1)
        t, going = np.zeros(x.shape), np.ones(x.shape, bool)
        for _ in range(96):
            px, py, pz = t * ray + np.array([0, 1, -4.0])[:, None, None]
            d = np.minimum(np.hypot(np.hypot(px, pz) - 1.5, py) - 0.4, py + 1)
            t += np.where(going, d, 0)
            going &= (d >= 1e-4) & (t <= 30)
        return {0: np.minimum(t, 30)}

    return Case((ceil(width, 16), ceil(height, 8)), (16, 8), lambda: (zeros(height, width),), expected)


def _placed(masks: np.ndarray, n: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what queens attack after `rows` more rows, for each way: columns and both diagonals; and which of `masks`
    it comes from."""
    origin, bits = np.arange(len(masks)), 1 << np.arange(n)
    for _ in range(rows):
        who, bit = np.nonzero(np.bitwise_or.reduce(masks, axis=1)[:, None] & bits == 0)
        masks, origin = masks[who] | bits[bit][:, None], origin[who]
        masks = np.stack([masks[:, 0], masks[:, 1] << 1 & (1 << n) - 1, masks[:, 2] >> 1], axis=1)
    return masks, origin


@functools.lru_cache
def _begin(n: int, rows: int) -> np.ndarray:
    return _placed(np.zeros((1, 3), int), n, rows)[0]


def queens(n: int, rows: int) -> Case:
    """Queens on a board of n by n, after all ways to fill `rows` rows, a thread for each."""
    begin = _begin(n, rows)

    def expected(*_):
        _, origin = _placed(begin, n, n - rows)
        return {5: np.bincount(origin, minlength=len(begin)).astype(np.int32)}

    return Case(
        ceil(len(begin), 64),
        64,
        lambda: (
            *(np.ascontiguousarray(begin[:, k], np.int32) for k in range(3)),
            *(*int32(n - rows, (1 << n) - 1), zeros(len(begin), dtype=np.int32)),
        ),
        expected,
    )


def longest_match(n: int, window: int) -> Case:
    def expected(text, *_):
        most = np.minimum(18, n - np.arange(n))
        best, where = np.zeros(n, int), np.zeros(n, int)
        for back in range(1, window + 1):
            same = np.zeros(n + 18, bool)
            same[back:n] = text[back:] == text[:-back]
            runs = np.logical_and.accumulate([same[k : k + n] for k in range(18)]).sum(0)
            longer = np.minimum(runs, most) > best
            best[longer], where[longer] = np.minimum(runs, most)[longer], back
        return {2: (best << 16 | where).astype(np.int32)}

    def arguments() -> tuple:
        words = random().integers(97, 107, (64, 6), np.uint8)
        text = np.resize(words[random().integers(0, 64, min(n, 2**22) // 6 + 1)].ravel(), n)
        return text, np.int32(window), zeros(n, dtype=np.int32)

    return Case(ceil(n, 128), 128, arguments, expected)


def log_softmax_rows(rows: int, n: int) -> Case:
    def expected(x, _):
        return {1: x - np.log(np.exp(x.astype(float)).sum(1, keepdims=True))}

    return Case(ceil(rows, 64), 64, lambda: (floats(rows, n, low=-4.0, high=4.0), zeros(rows, n)), expected)


def add_to_clusters(n: int, clusters: int) -> Case:
    def expected(points, label, sums, counts):
        np.add.at(sums, label, points)
        return {2: sums, 3: np.bincount(label, minlength=clusters).astype(np.int32)}

    return Case(
        ceil(n, 256),
        256,
        lambda: (
            *(floats(n, 4), whole(n, clusters, np.int32)),
            *(zeros(clusters, 4), zeros(clusters, dtype=np.int32)),
        ),
        expected,
    )


def _clusters(n: int, clusters: int):
    footprint = 20 * (n + clusters), 20 * clusters
    return launch({"n": n, "clusters": clusters}, {"n": min(n, 2**16)}, footprint=footprint)


KERNELS = [
    UnseenKernel(
        "sha256",
        CUDA,
        sha256,
        {"messages": 200},
        [launch({"messages": n}, {"messages": 4096}) for n in (2**12, 2**18, 2**22)],
    ),
    UnseenKernel(
        "gru_gates",
        CUDA,
        gru_gates,
        {"rows": 5, "width": 250},
        [
            launch({"rows": 16, "width": 512}),
            launch({"rows": 1000, "width": 1024}, {"rows": 100}),
            launch({"rows": 16000, "width": 1024}, {"rows": 100}),
        ],
    ),
    UnseenKernel(
        "int8_scores",
        CUDA,
        int8_scores,
        {"heads": 2, "positions": 37},
        [
            launch({"heads": 4, "positions": 64}),
            launch({"heads": 32, "positions": 8192}, {"heads": 1}),
            launch({"heads": 64, "positions": 32768}, {"heads": 1}, sample=1024),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "top_p",
        CUDA,
        top_p,
        {"rows": 2, "n": 3000},
        [
            launch({"rows": 8, "n": 32000}),
            launch({"rows": 500, "n": 32000}, {"rows": 5}),
            launch({"rows": 2048, "n": 50257}, {"rows": 4}),
        ],
    ),
    UnseenKernel(
        "sobel_tile",
        CUDA,
        sobel_tile,
        {"height": 50, "width": 70},
        [
            launch({"height": 60, "width": 90}),
            launch({"height": 2160, "width": 3840}, sample=128),
            launch({"height": 15000, "width": 15000}, {"height": 150}),
        ],
    ),
    UnseenKernel(
        "push_particles",
        CUDA,
        push_particles,
        {"n": 500, "side": 9},
        [
            launch({"n": 5000, "side": 64}),
            launch({"n": 10**6, "side": 512}, {"n": 96000}, footprint=(20 * 10**6 + 2**21, 20 * 10**6)),
            launch({"n": 96 * 10**5, "side": 2048}, {"n": 96000}, footprint=(192 * 10**6 + 2**25, 192 * 10**6)),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "rnn_sequence",
        CUDA,
        rnn_sequence,
        {"sequences": 3, "hidden": 96, "steps": 7},
        [_network(1, 128, 512), _network(300, 64, 256), _network(4096, 256, 64)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "solve_lower",
        CUDA,
        solve_lower,
        {"matrices": 2, "columns": 100},
        [
            launch({"matrices": 1, "columns": 128}),
            launch({"matrices": 60, "columns": 1000}, {"matrices": 6}),
            launch({"matrices": 1024, "columns": 1024}, {"matrices": 8}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "equalise",
        CUDA,
        equalise,
        {"blocks": 3, "rounds": 2},
        [
            launch({"blocks": 13, "rounds": 4}),
            launch({"blocks": 263, "rounds": 25}, {"blocks": 8}),
            launch({"blocks": 5281, "rounds": 40}, {"blocks": 8}),
        ],
    ),
    UnseenKernel(
        "relax_edges",
        NUMBA,
        relax_edges,
        {"vertices": 100, "degree": 5},
        [_relax(2**10, 16), _relax(2**20, 8, 2**18), _relax(2**21, 12, 2**18)],
    ),
    UnseenKernel(
        "barrier_option",
        NUMBA,
        barrier_option,
        {"paths": 300, "steps": 30},
        [
            launch({"paths": 1000, "steps": 252}),
            launch({"paths": 192000, "steps": 252}, {"paths": 9600}),
            launch({"paths": 9600000, "steps": 63}, {"paths": 9600}),
        ],
        tolerance=2e-3,
    ),
    UnseenKernel(
        "march_rays",
        NUMBA,
        march_rays,
        {"height": 20, "width": 30},
        [
            launch({"height": 48, "width": 64}),
            launch({"height": 1080, "width": 1920}, sample=256),
            launch({"height": 4320, "width": 7680}, sample=256),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "queens",
        NUMBA,
        queens,
        {"n": 7, "rows": 2},
        [
            launch({"n": 9, "rows": 2}),
            launch({"n": 13, "rows": 4}, sample=32),
            launch({"n": 15, "rows": 5}, sample=128),
        ],
        warm=True,
    ),
    UnseenKernel(
        "longest_match",
        NUMBA,
        longest_match,
        {"n": 500, "window": 20},
        [launch({"n": n, "window": 32}, {"n": min(n, 2**15)}) for n in (2**12, 2**20, 2**26)],
        warm=True,
    ),
    UnseenKernel(
        "log_softmax_rows",
        NUMBA,
        log_softmax_rows,
        {"rows": 100, "n": 20},
        [
            launch({"rows": 200, "n": 1000}),
            launch({"rows": 500000, "n": 10}, {"rows": 32000}),
            launch({"rows": 131072, "n": 512}, {"rows": 2048}),
        ],
    ),
    UnseenKernel(
        "add_to_clusters",
        NUMBA,
        add_to_clusters,
        {"n": 1000, "clusters": 7},
        [_clusters(5000, 8), _clusters(2**20, 16), _clusters(2**24, 4096)],
        tolerance=1e-4,
    ),
]
