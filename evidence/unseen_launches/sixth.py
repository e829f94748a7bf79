"""The sixth set of unseen kernels, by a writer who had read neither the model nor a recorded or estimated time.

All of it was held out and sealed: recorded by `record`, but not among the launches that estimates are held to until the
model was frozen; read on 2026-11-27.
"""

from __future__ import annotations

import functools

import numpy as np

from evidence.unseen_launches.unseen import SEED, Case, UnseenKernel, ceil, distinct, floats, int32, launch, zeros

CUDA, NUMBA = "sixth.cu", "sixth_numba_kernels.py"


def whole(n: int, low: int, high: int, kind: type, seed: int = 0) -> np.ndarray:
    """Whole numbers from `low` to below `high`. Of large arrays the first 2^20 come again and again."""
    return np.resize(np.random.default_rng(SEED + seed).integers(low, high, min(n, 2**20)).astype(kind), n)


def nv12_to_rgba(frames: int, height: int, width: int) -> Case:
    """`height`, `width`: even."""
    pairs, pixels = (height // 2, width // 2), frames * height * width

    def expected(luma, chroma, *_):
        y = 298 * (luma.astype(int) - 16) + 128
        u, v = (chroma.astype(int) - 128).repeat(2, 1).repeat(2, 2).transpose(3, 0, 1, 2)
        rgb = np.stack([y + 409 * v, y - 100 * u - 208 * v, y + 516 * u], 3) >> 8
        rgba = np.pad(rgb.clip(0, 255), [(0, 0)] * 3 + [(0, 1)], constant_values=255)
        return {2: rgba.astype(np.uint8).view(np.uint32)[..., 0]}

    return Case(
        (ceil(pairs[1], 32), ceil(pairs[0], 8), frames),
        (32, 8),
        lambda: (
            whole(pixels, 0, 256, np.uint8).reshape(frames, height, width),
            whole(pixels // 2, 0, 256, np.uint8, 1).reshape(frames, *pairs, 2),
            zeros(frames, height, width, dtype=np.uint32),
            *int32(*pairs),
        ),
        expected,
    )


def _video(frames: int, height: int, width: int, simulated: int):
    pixels = frames * height * width
    timed = {"frames": frames, "height": height, "width": width}
    return launch(timed, {"frames": 1, "height": simulated}, footprint=(pixels * 3 // 2, pixels * 4))


def kahan_dot(blocks: int, rounds: int) -> Case:
    n = 256 * blocks * rounds - 77

    def expected(x, y, *_):
        products = (x.astype(float) * y).reshape(n, 4).sum(1)
        return {2: np.bincount(np.arange(n) // 256 % blocks, products, blocks)}

    return Case(
        blocks, 256, lambda: (floats(4 * n), floats(4 * n, seed=1), zeros(blocks, dtype=float), np.int32(n)), expected
    )


@functools.lru_cache(1)
def _frames() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the codes of 1024 frames of 128, the bits that each frame needs, and all in words."""
    bits = np.random.default_rng(SEED).integers(2, 15, 1024)
    codes = whole(1024 * 128, 0, 2**31, np.int64).reshape(1024, 128) % (1 << bits[:, None])
    each = [(code[:, None] >> np.arange(wide) & 1).astype(np.uint8) for code, wide in zip(codes, bits, strict=True)]
    return codes, bits, np.packbits(np.concatenate([b.ravel() for b in each]), bitorder="little").view(np.uint32)


def unpack_deltas(frames: int) -> Case:
    def arguments() -> tuple:
        _, bits, words = _frames()
        start = np.concatenate([[0], np.cumsum(np.resize(4 * bits, frames))]).astype(np.int32)
        packed = np.resize(words, start[-1] + 1)
        return (
            packed,
            start,
            whole(frames, -(10**6), 10**6, np.int32),
            zeros(frames, 128, dtype=np.int32),
            *int32(frames),
        )

    def expected(packed, start, base, *_):
        codes = np.resize(_frames()[0], (frames, 128))
        return {3: (base[:, None] + np.cumsum((codes >> 1) ^ -(codes & 1), 1)).astype(np.int32)}

    return Case(ceil(frames, 8), 256, arguments, expected)


def sort_pairs(rows: int) -> Case:
    return Case(
        ceil(rows, 8),
        256,
        lambda: (
            whole(rows * 128, 0, 2**63, np.uint64).reshape(rows, 128),
            zeros(rows, 128, dtype=np.uint64),
            np.int32(rows),
        ),
        lambda pairs, *_: {1: np.sort(pairs, 1)},
    )


def _edges(nodes: int, edges: int) -> np.ndarray:
    """Edges by their first end; some second ends have many."""
    draw = np.random.default_rng(SEED)
    first = np.sort(draw.integers(0, nodes, edges, np.int32))
    return np.stack([first, (nodes * draw.random(edges, np.float32) ** 2 * 0.999).astype(np.int32)], 1)


def sddmm_edges(nodes: int, edges: int) -> Case:
    def expected(edge, weight, left, right, *_):
        a, b = (x.view(np.float16)[edge[:, k]].astype(float) for k, x in enumerate((left, right)))
        return {4: weight * (a * b).sum(1)}

    return Case(
        ceil(edges, 32),
        256,
        lambda: (
            *(_edges(nodes, edges), floats(edges), floats(nodes, 64, seed=1).astype(np.float16).view(np.uint32)),
            *(floats(nodes, 64, seed=2).astype(np.float16).view(np.uint32), zeros(edges), np.int32(edges)),
        ),
        expected,
    )


def _scores(nodes: int, edges: int):
    def footprint() -> tuple[int, int]:
        edge = _edges(nodes, edges)
        return 12 * edges + 128 * (distinct(edge[:, 0]) + distinct(edge[:, 1])), 4 * edges

    return launch({"nodes": nodes, "edges": edges}, sample=128, footprint=footprint)


def complex_product(m: int, n: int, depth: int) -> Case:
    """`m`, `n`: multiples of 64; `depth`: of 8."""

    def expected(a, b, *_):
        product = a.astype(float).view(complex)[:, :, 0] @ b.astype(float).view(complex)[:, :, 0]
        return {2: np.stack([product.real, product.imag], 2)}

    return Case(
        (n // 64, m // 64),
        256,
        lambda: (floats(m, depth, 2), floats(depth, n, 2, seed=1), zeros(m, n, 2), *int32(n, depth)),
        expected,
    )


def _complex(m: int, n: int, depth: int):
    timed = {"m": m, "n": n, "depth": depth}
    return launch(timed, {"m": 64, "n": 128}, footprint=(8 * depth * (m + n), 8 * m * n))


def conv3x3_wmma(images: int, height: int, width: int, channels: int, outputs: int) -> Case:
    def expected(x, weight, bias, *_):
        x = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
        sums = np.einsum("nhwcij,ijck->nhwk", near, weight.reshape(3, 3, channels, outputs).astype(np.float32))
        return {3: np.maximum(sums + bias, 0).astype(np.float16)}

    return Case(
        (ceil(width, 16) * ceil(height, 4), outputs // 64, images),
        128,
        lambda: (
            floats(images, height, width, channels).astype(np.float16),
            floats(9, channels, outputs, seed=1, low=-0.1, high=0.1).astype(np.float16),
            *(floats(outputs, seed=2), zeros(images, height, width, outputs, dtype=np.float16)),
            *int32(height, width, channels, outputs),
        ),
        expected,
    )


def _layer(images: int, height: int, width: int, channels: int, outputs: int):
    timed = {"images": images, "height": height, "width": width, "channels": channels, "outputs": outputs}
    places = images * height * width
    read = 2 * places * channels + 18 * channels * outputs + 4 * outputs
    return launch(timed, {"images": 1}, footprint=(read, 2 * places * outputs))


def _rounded(x: np.ndarray) -> np.ndarray:
    """Return float32 as bfloat16, cut off."""
    return (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def retention(heads: int, steps: int) -> Case:
    def expected(query, key, value, decay, *_):
        q, k, v = ((x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(float) for x in (query, key, value))
        state, out = np.zeros((heads, 64, 64)), np.zeros((heads, steps, 64))
        for t in range(steps):
            state = decay[:, None, None] * state + k[:, t, :, None] * v[:, t, None]
            out[:, t] = np.einsum("hk,hkv->hv", q[:, t], state)
        return {4: out}

    return Case(
        heads,
        256,
        lambda: (
            *(_rounded(floats(heads, steps, 64, seed=k)) for k in range(3)),
            *(floats(heads, low=0.9, high=0.99), zeros(heads, steps, 64), np.int32(steps)),
        ),
        expected,
    )


def philox_uniforms(blocks: int, rounds: int) -> Case:
    n = 256 * blocks * rounds - 5

    def expected(out, n, low, high):
        c, key = np.zeros((4, n), np.uint64), np.array([low, high], np.uint64)
        c[0], bits = np.arange(n), np.uint64(32)
        for _ in range(10):
            p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
            c = np.stack([q >> bits ^ c[1] ^ key[0], q, p >> bits ^ c[3] ^ key[1], p]) & np.uint64(2**32 - 1)
            key = key + np.array([0x9E3779B9, 0xBB67AE85], np.uint64) & np.uint64(2**32 - 1)
        return {0: (c.T >> np.uint64(8)) / 2**24}

    return Case(blocks, 256, lambda: (zeros(n, 4), np.int32(n), np.uint32(20261127), np.uint32(6)), expected)


def tanimoto_best(n: int, queries: int) -> Case:
    def prints(rows: int, seed: int) -> np.ndarray:
        first, second = (whole(rows * 16, 0, 2**32, np.uint32, seed + k) for k in range(2))
        return (first & second).reshape(rows, 16)

    def expected(library, query, *_):
        a, b = (np.unpackbits(x.view(np.uint8), axis=1).astype(int) for x in (library, query))
        common = a @ b.T
        alike = common.astype(np.float32) / (a.sum(1)[:, None] + b.sum(1) - common).astype(np.float32)
        return {2: alike.max(1), 3: alike.argmax(1).astype(np.int32)}

    return Case(
        ceil(n, 256),
        256,
        lambda: (prints(n, 0), prints(queries, 2), zeros(n), zeros(n, dtype=np.int32), *int32(n, queries)),
        expected,
    )


def _fingerprints(n: int, queries: int):
    return launch({"n": n, "queries": queries}, {"n": 4096}, footprint=(64 * (n + queries), 8 * n))


def shallow_water(height: int, width: int) -> Case:
    def flow(a, b):
        u, v = a[1] / a[0], b[1] / b[0]
        fast = np.maximum(np.abs(u) + np.sqrt(9.81 * a[0]), np.abs(v) + np.sqrt(9.81 * b[0]))
        middle = np.stack([a[1] + b[1], a[1] * u + b[1] * v + 4.905 * (a[0] ** 2 + b[0] ** 2), a[2] * u + b[2] * v])
        return (middle - fast * (b - a)) / 2

    def expected(now, *_):
        w = np.pad(now.astype(float), ((0, 0), (1, 1), (1, 1)), mode="edge")
        across = flow(w[:, 1:-1, :-1], w[:, 1:-1, 1:])
        w = w[[0, 2, 1]]
        down = flow(w[:, :-1, 1:-1], w[:, 1:, 1:-1])[[0, 2, 1]]
        return {1: now - 0.05 * (np.diff(across, axis=2) + np.diff(down, axis=1))}

    def arguments() -> tuple:
        now = floats(3, height, width)
        now[0] += np.float32(2)
        return now, zeros(3, height, width), *int32(height, width), np.float32(0.05)

    return Case((ceil(width, 32), ceil(height, 8)), (32, 8), arguments, expected)


def _water(height: int, width: int):
    timed = {"height": height, "width": width}
    n = 12 * height * width
    return launch(timed, {"height": min(height, 64), "width": min(width, 500)}, footprint=(n, n))


def gray_scott(height: int, width: int) -> Case:
    def expected(u, v, feed, kill, *_):
        u, v = u.astype(float), v.astype(float)
        near_u, near_v = (sum(np.roll(x, by, axis) for axis in (0, 1) for by in (-1, 1)) - 4 * x for x in (u, v))
        meet = u * v * v
        return {4: u + 0.16 * near_u - meet + feed * (1 - u), 5: v + 0.08 * near_v + meet - (feed + kill) * v}

    return Case(
        (ceil(width, 16), ceil(height, 16)),
        (16, 16),
        lambda: (
            *(floats(height, width, low=0.0), floats(height, width, seed=1, low=0.0)),
            *(np.float32(0.035), np.float32(0.065), zeros(height, width), zeros(height, width)),
        ),
        expected,
    )


def _reaction(height: int, width: int):
    n = 8 * height * width
    return launch({"height": height, "width": width}, {"height": 96, "width": 480}, footprint=(n, n))


@functools.lru_cache(4)
def _neighbours(nodes: int, mean: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where nodes' lists begin, and the ends of edges from lower to higher nodes: most are near, some far."""
    draw = np.random.default_rng(SEED)
    low = np.repeat(np.arange(nodes), draw.poisson(mean * draw.random(nodes) * 2))
    far = np.where(draw.random(low.size) < 0.1, draw.integers(1, nodes, low.size), draw.integers(1, 3 * mean, low.size))
    edge = np.unique((low * nodes + low + far)[low + far < nodes])
    low, high = edge // nodes, edge % nodes
    return np.searchsorted(low, np.arange(nodes + 1)).astype(np.int32), low.astype(np.int32), high.astype(np.int32)


def triangle_counts(nodes: int, mean: int) -> Case:
    def expected(begin, source, target, _):
        linked = np.zeros((nodes, nodes), int)
        linked[source, target] = 1
        return {3: ((linked @ linked.T) * linked).sum(1).astype(np.int32)}

    return Case(
        ceil(_neighbours(nodes, mean)[1].size, 128),
        128,
        lambda: (*(x.copy() for x in _neighbours(nodes, mean)), zeros(nodes, dtype=np.int32)),
        expected,
    )


def _triangles(nodes: int, mean: int):
    def footprint() -> tuple[int, int]:
        return 4 * nodes + 8 * _neighbours(nodes, mean)[1].size, 4 * nodes

    return launch({"nodes": nodes, "mean": mean}, sample=256, footprint=footprint)


def american_put(options: int, steps: int) -> Case:
    """Return a case; `steps`: below 1024."""

    def expected(spot, strike, volatility, rate, years, *_):
        step = years / steps
        up, less = np.exp(volatility * np.sqrt(step))[:, None], np.exp(-rate * step)
        rise, j = (1 / less - 1 / up) / (up - 1 / up), np.arange(steps + 1)
        limit = strike[:, None]
        value = np.maximum(limit - spot[:, None] * up ** (2 * j - steps), 0)
        for left in range(steps - 1, -1, -1):
            value = less * (rise * value[:, 1:] + (1 - rise) * value[:, :-1])
            value = np.maximum(value, limit - spot[:, None] * up ** (2 * j[: left + 1] - left))
        return {6: value[:, 0]}

    def arguments() -> tuple:
        spot, strike = (floats(options, seed=k, low=80.0, high=120.0).astype(float) for k in range(2))
        volatility = floats(options, seed=2, low=0.1, high=0.5).astype(float)
        return spot, strike, volatility, 0.03, 0.75, np.int32(steps), zeros(options, dtype=float)

    return Case(options, 128, arguments, expected)


def dct_quantise(height: int, width: int) -> Case:
    """`height`, `width`: multiples of eight."""

    def arguments() -> tuple:
        angle = np.pi / 16 * np.arange(8)[:, None] * (2 * np.arange(8) + 1)
        cosine = np.cos(angle) / 2
        cosine[0] /= np.sqrt(2)
        table = 10.37 + 5 * np.add.outer(np.arange(8), np.arange(8))  # of which no half is met
        image = whole(height * width, 0, 256, np.uint8).reshape(height, width)
        out = zeros(height, width, dtype=np.int16)
        return image, cosine.astype(np.float32), table.astype(np.float32), out

    def expected(image, cosine, table, _):
        parts = (image.astype(float) - 128).reshape(height // 8, 8, width // 8, 8)
        found = np.einsum("yi,aibj,xj->aybx", cosine, parts, cosine) / table[:, None]
        return {3: np.floor(found + 0.5).astype(np.int16).reshape(height, width)}

    return Case((ceil(width, 32), height // 8), (8, 8, 4), arguments, expected)


def _coefficients(height: int, width: int):
    n = height * width
    return launch({"height": height, "width": width}, {"height": 64, "width": min(width, 1600)}, footprint=(n, 2 * n))


def group_sums(blocks: int, rounds: int) -> Case:
    n = 256 * blocks * rounds - 9

    def arguments() -> tuple:
        key = (512 * (whole(n, 0, 2**16, np.uint16).astype(np.float32) / 2**16) ** 3).astype(np.int32)
        return key, floats(n, seed=1), np.float32(0.5), zeros(512), zeros(512, dtype=np.int32)

    def expected(key, value, limit, *_):
        key, value = key[value < limit], value[value < limit]
        return {3: np.bincount(key, value, 512), 4: np.bincount(key, minlength=512).astype(np.int32)}

    return Case(blocks, 256, arguments, expected)


def _in_rounds(blocks: int, rounds: int, few: int, read: int, written: int, always: int = 0):
    """`read`, `written`: bytes of an element. `always`: what all blocks write together."""
    n = 256 * blocks * rounds
    return launch({"blocks": blocks, "rounds": rounds}, {"blocks": few}, footprint=(read * n, written * n + always))


KERNELS = [
    UnseenKernel(
        "nv12_to_rgba",
        CUDA,
        nv12_to_rgba,
        {"frames": 2, "height": 38, "width": 150},
        [_video(1, 2160, 3840, 160), _video(7, 1600, 2558, 160), _video(41, 1080, 1920, 160)],
    ),
    UnseenKernel(
        "kahan_dot",
        CUDA,
        kahan_dot,
        {"blocks": 3, "rounds": 5},
        [
            _in_rounds(264, 17, 8, 32, 0, 8 * 264),
            _in_rounds(528, 80, 4, 32, 0, 8 * 528),
            _in_rounds(2112, 40, 4, 32, 0, 8 * 2112),
        ],
    ),
    UnseenKernel(
        "unpack_deltas",
        CUDA,
        unpack_deltas,
        {"frames": 1100},
        [launch({"frames": n}, {"frames": 2048}) for n in (60_009, 400_000, 1_200_007)],
    ),
    UnseenKernel(
        "sort_pairs",
        CUDA,
        sort_pairs,
        {"rows": 21},
        [launch({"rows": n}, {"rows": min(n, 512)}) for n in (9_001, 100_003, 350_000)],
    ),
    UnseenKernel(
        "sddmm_edges",
        CUDA,
        sddmm_edges,
        {"nodes": 60, "edges": 501},
        [_scores(4_001, 150_001), _scores(50_021, 2_000_003), _scores(400_000, 5_000_000)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "complex_product",
        CUDA,
        complex_product,
        {"m": 128, "n": 64, "depth": 40},
        [_complex(192, 320, 256), _complex(1024, 640, 512), _complex(1536, 2048, 1024)],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "conv3x3_wmma",
        CUDA,
        conv3x3_wmma,
        {"images": 2, "height": 7, "width": 19, "channels": 32, "outputs": 64},
        [_layer(1, 56, 56, 128, 64), _layer(16, 28, 28, 128, 128), _layer(24, 56, 57, 128, 192)],
        tolerance=4e-3,
    ),
    UnseenKernel(
        "retention",
        CUDA,
        retention,
        {"heads": 2, "steps": 37},
        [
            launch({"heads": heads, "steps": steps}, {"heads": min(heads, 4)})
            for heads, steps in ((4, 200), (96, 1024), (1500, 500))
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "philox_uniforms",
        CUDA,
        philox_uniforms,
        {"blocks": 3, "rounds": 4},
        [_in_rounds(blocks, rounds, 8, 0, 16) for blocks, rounds in ((396, 31), (1056, 70), (1056, 150))],
    ),
    UnseenKernel(
        "tanimoto_best",
        CUDA,
        tanimoto_best,
        {"n": 700, "queries": 70},
        [_fingerprints(20_011, 64), _fingerprints(300_000, 100), _fingerprints(1_000_003, 128)],
    ),
    UnseenKernel(
        "shallow_water",
        CUDA,
        shallow_water,
        {"height": 19, "width": 45},
        [_water(700, 1023), _water(2500, 3000), _water(5000, 6000)],
    ),
    UnseenKernel(
        "gray_scott",
        NUMBA,
        gray_scott,
        {"height": 21, "width": 50},
        [_reaction(640, 1000), _reaction(2000, 2050), _reaction(4000, 5000)],
    ),
    UnseenKernel(
        "triangle_counts",
        NUMBA,
        triangle_counts,
        {"nodes": 90, "mean": 8},
        [_triangles(4_003, 8), _triangles(100_003, 12), _triangles(200_000, 24)],
    ),
    UnseenKernel(
        "american_put",
        NUMBA,
        american_put,
        {"options": 3, "steps": 150},
        [
            launch({"options": options, "steps": steps}, {"options": min(options, 4)})
            for options, steps in ((5, 150), (200, 512), (1500, 700))
        ],
        warm=True,
        tolerance=1e-8,
    ),
    UnseenKernel(
        "dct_quantise",
        NUMBA,
        dct_quantise,
        {"height": 24, "width": 72},
        [_coefficients(2000, 2400), _coefficients(4320, 7680), _coefficients(8000, 10_000)],
    ),
    UnseenKernel(
        "group_sums",
        NUMBA,
        group_sums,
        {"blocks": 3, "rounds": 4},
        [
            _in_rounds(132, 25, 8, 8, 0, 2**12),
            _in_rounds(528, 80, 8, 8, 0, 2**12),
            _in_rounds(1056, 200, 4, 8, 0, 2**12),
        ],
        tolerance=1e-4,
    ),
]
