"""The second set of unseen kernels, layers: as public code for language models and detectors has them."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, floats, int32, launch, random, zeros

NUMBA = "second_numba_kernels.py"


def rotary(tokens: int, heads: int, half: int) -> Case:
    def expected(x, turn, *_):
        a, b = x[..., :half], x[..., half:]
        cosine, sine = turn[:, None, :, 0], turn[:, None, :, 1]
        return {2: np.concatenate([a * cosine - b * sine, a * sine + b * cosine], 2)}

    return Case(
        tokens,
        256,
        lambda: (
            *(floats(tokens, heads, 2 * half), floats(tokens, half, 2, seed=1)),
            *(zeros(tokens, heads, 2 * half), *int32(heads, half)),
        ),
        expected,
    )


def swiglu(rows: int, columns: int) -> Case:
    def expected(x, *_):
        x = x.view(np.float16).reshape(rows, 2, columns).astype(float)
        out = (x[:, 0] / (1 + np.exp(-x[:, 0])) * x[:, 1]).astype(np.float16)
        return {1: out.reshape(-1)}

    def arguments():
        return (
            floats(rows * 2 * columns).astype(np.float16).view(np.uint32),
            zeros(rows * columns // 2, dtype=np.uint32),
            *int32(rows, columns // 8),
        )

    return Case(ceil(rows * columns // 8, 256), 256, arguments, expected)


def group_norm(groups: int, n: int) -> Case:
    def expected(x, *_):
        x = x.astype(float)
        return {1: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)}

    return Case(groups, 512, lambda: (floats(groups, n), zeros(groups, n), *int32(n)), expected)


def quantise_rows(rows: int, n: int) -> Case:
    def expected(x, *_):
        largest = np.abs(x).max(1, keepdims=True)
        return {1: np.rint(x * (np.float32(127) / largest)), 2: largest[:, 0] / 127}

    return Case(
        rows, 256, lambda: (floats(rows, n), zeros(rows, n, dtype=np.int8), zeros(rows), *int32(n // 4)), expected
    )


def causal_softmax(rows: int, n: int) -> Case:
    def expected(x, *_):
        own = np.arange(rows) % n
        powers = np.where(np.arange(n) <= own[:, None], np.exp(x), 0)
        return {1: powers / powers.sum(1, keepdims=True)}

    return Case(ceil(rows * 32, 256), 256, lambda: (floats(rows, n), zeros(rows, n), *int32(rows, n)), expected)


def paged_copy(positions: int, pages: int, width: int) -> Case:
    """`width`: bytes of a position."""

    def expected(cache, page, *_):
        rows = cache.reshape(pages * 16, -1)
        at = np.arange(positions)
        return {2: rows[page[at // 16] * 16 + at % 16].reshape(-1)}

    return Case(
        positions,
        64,
        lambda: (
            *(random().integers(0, 2**32, pages * 16 * width // 4, dtype=np.uint32),),
            *(random().permutation(pages)[: ceil(positions, 16)].astype(np.int32),),
            *(zeros(positions * width // 4, dtype=np.uint32), *int32(width // 16)),
        ),
        expected,
    )


def overlap_mask(n: int, rows: int | None = None) -> Case:
    threshold = np.float32(0.3)

    def expected(box, *_):
        low, high = np.maximum(box[:, None, :2], box[None, :, :2]), np.minimum(box[:, None, 2:], box[None, :, 2:])
        both = np.clip(high - low, 0, None).prod(2, dtype=np.float32)
        area = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
        hit = both > threshold * (area[:, None] + area - both)
        hit = np.pad(hit, ((0, 0), (0, -n % 64)))
        return {1: np.packbits(hit, axis=1, bitorder="little").view(np.uint64)}

    def arguments():
        corner, size = floats(n, 2, low=0.0), floats(n, 2, seed=1, low=0.05, high=0.4)
        box = np.concatenate([corner, corner + size], 1).astype(np.float32)
        return box, zeros(n, ceil(n, 64), dtype=np.uint64), *int32(n), threshold

    return Case((ceil(n, 64), ceil(rows or n, 64)), 64, arguments, expected)


def dp4a_product(n: int, depth: int, rows: int | None = None) -> Case:
    rows = n if rows is None else rows

    def expected(a, b, *_):
        return {2: a.view(np.int8).astype(int) @ b.view(np.int8).astype(int).T}

    def arguments():
        a, b = (random().integers(-(2**31), 2**31, (size, depth // 4)).astype(np.int32) for size in (rows, n))
        return a, b, zeros(rows, n, dtype=np.int32), *int32(n, depth // 4)

    return Case((n // 16, rows // 16), (16, 16), arguments, expected)


def batch_norm_inference(images: int, channels: int, places: int) -> Case:
    def expected(x, mean, scale, shift, _out):
        return {4: (x - mean[:, None]) * scale[:, None] + shift[:, None]}

    shape = images, channels, places
    return Case(
        ceil(images * channels * places, 256),
        256,
        lambda: (floats(*shape), *(floats(channels, seed=k) for k in (1, 2, 3)), zeros(*shape)),
        expected,
    )


def upsample_nearest(planes: int, height: int, width: int) -> Case:
    """`height`, `width`: of the result."""

    def expected(x, _out):
        return {1: x.repeat(2, 1).repeat(2, 2)}

    return Case(
        (ceil(width, 32), ceil(height, 8), planes),
        (32, 8),
        lambda: (floats(planes, height // 2, width // 2), zeros(planes, height, width)),
        expected,
    )


def cumulative_rows(rows: int) -> Case:
    def expected(x, _out):
        return {1: x.cumsum(1)}

    return Case(rows, 256, lambda: (floats(rows, 256, low=0.0), zeros(rows, 256)), expected)


KERNELS = [
    UnseenKernel(
        "rotary",
        "second_layers.cu",
        rotary,
        {"tokens": 3, "heads": 5, "half": 16},
        [
            launch({"tokens": 256, "heads": 32, "half": 64}, {"tokens": 64}),
            launch({"tokens": 8192, "heads": 32, "half": 64}, {"tokens": 64}),
            launch({"tokens": 65536, "heads": 12, "half": 32}, {"tokens": 256}),
        ],
    ),
    UnseenKernel(
        "swiglu",
        "second_layers.cu",
        swiglu,
        {"rows": 5, "columns": 120},
        [
            launch({"rows": 128, "columns": 4096}),
            launch({"rows": 2048, "columns": 11008}, {"rows": 64}),
            launch({"rows": 16384, "columns": 8192}, {"rows": 64}),
        ],
        tolerance=2e-3,
    ),
    UnseenKernel(
        "group_norm",
        "second_layers.cu",
        group_norm,
        {"groups": 3, "n": 1300},
        [
            launch({"groups": 32, "n": 40960}, {"groups": 4}),
            launch({"groups": 1024, "n": 16384}, {"groups": 8}),
            launch({"groups": 8192, "n": 4096}, {"groups": 32}),
        ],
        tolerance=1e-3,
    ),
    UnseenKernel(
        "quantise_rows",
        "second_layers.cu",
        quantise_rows,
        {"rows": 4, "n": 1200},
        [
            launch({"rows": 128, "n": 4096}),
            launch({"rows": 4096, "n": 4096}, {"rows": 128}),
            launch({"rows": 16384, "n": 14336}, {"rows": 32}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "causal_softmax",
        "second_layers.cu",
        causal_softmax,
        {"rows": 100, "n": 70},
        [
            launch({"rows": 1024, "n": 1024}),
            launch({"rows": 32768, "n": 1024}, {"rows": 1024}),
            launch({"rows": 32768, "n": 4096}, sample=64, footprint=(2 * 32768 * 4096, 4 * 32768 * 4096)),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "paged_copy",
        "second_layers.cu",
        paged_copy,
        {"positions": 70, "pages": 9, "width": 256},
        [
            launch({"positions": 4096, "pages": 1024, "width": 2048}, {"positions": 512, "pages": 128}),
            launch({"positions": 65536, "pages": 8192, "width": 2048}, {"positions": 512, "pages": 128}),
            launch({"positions": 262144, "pages": 32768, "width": 512}, {"positions": 2048, "pages": 512}),
        ],
    ),
    UnseenKernel(
        "overlap_mask",
        "second_layers.cu",
        overlap_mask,
        {"n": 150},
        [
            launch({"n": 1024}, {"rows": 256}, footprint=(16 * 1024, 1024 * 1024 // 8)),
            launch({"n": 8192}, {"rows": 64}, footprint=(16 * 8192, 8192 * 8192 // 8)),
            launch({"n": 32768}, {"rows": 64}, footprint=(16 * 32768, 32768 * 32768 // 8)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "dp4a_product",
        "second_layers.cu",
        dp4a_product,
        {"n": 48, "depth": 128},
        [
            launch({"n": 256, "depth": 1024}, {"rows": 32}, footprint=(2 * 256 * 1024, 4 * 256 * 256)),
            launch({"n": 1024, "depth": 1024}, {"rows": 16}, footprint=(2 * 1024**2, 4 * 1024**2)),
            launch({"n": 4096, "depth": 4096}, {"n": 128, "rows": 16}, footprint=(2 * 4096**2, 4 * 4096**2)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "batch_norm_inference",
        NUMBA,
        batch_norm_inference,
        {"images": 2, "channels": 6, "places": 50},
        [
            launch({"images": 1, "channels": 64, "places": 3136}),
            launch({"images": 32, "channels": 256, "places": 784}, {"images": 1}),
            launch({"images": 128, "channels": 64, "places": 12544}, {"images": 1, "channels": 16}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "upsample_nearest",
        NUMBA,
        upsample_nearest,
        {"planes": 2, "height": 12, "width": 70},
        [
            launch({"planes": 64, "height": 56, "width": 56}),
            launch({"planes": 512, "height": 112, "width": 112}, {"planes": 16}),
            launch({"planes": 64, "height": 1080, "width": 1920}, {"planes": 1, "height": 216}),
        ],
    ),
    UnseenKernel(
        "cumulative_rows",
        NUMBA,
        cumulative_rows,
        {"rows": 3},
        [launch({"rows": 132}), launch({"rows": 8192}, {"rows": 256}), launch({"rows": 262144}, {"rows": 256})],
        tolerance=1e-4,
    ),
]
