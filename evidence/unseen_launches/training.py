"""Training: Adam, dropout, embeddings and their gradient, an activation in half precision, the gradient of a bias."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import NUMBA, Case, UnseenKernel, ceil, floats, int32, launch, random, zeros


def adam(n: int) -> Case:
    rate, unbias_m, unbias_v = np.float32(1e-3), np.float32(1 / 0.1), np.float32(1 / 0.001)

    def expected(p, m, v, g, *_):
        first, second = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return {0: p - rate * first * unbias_m / (np.sqrt(second * unbias_v) + 1e-8), 1: first, 2: second}

    return Case(
        ceil(n, 256),
        256,
        lambda: (
            *(floats(n), floats(n, seed=1), floats(n, seed=2, low=0.0), floats(n, seed=3)),
            *(*int32(n), rate, unbias_m, unbias_v),
        ),
        expected,
    )


def dropout_xorshift(n: int) -> Case:
    keep, seed = np.float32(0.9), np.uint32(77)

    def expected(x, out, *_):
        s = (np.arange(n, dtype=np.uint32) ^ seed) * np.uint32(2654435769) + np.uint32(1)
        for _ in range(2):
            s ^= s << np.uint32(13)
            s ^= s >> np.uint32(17)
            s ^= s << np.uint32(5)
        kept = (s >> np.uint32(8)).astype(np.float32) / np.float32(2**24) < keep
        return {1: np.where(kept, x / keep, 0), 2: kept}

    return Case(
        ceil(n, 256), 256, lambda: (floats(n), zeros(n), zeros(n, dtype=np.uint8), *int32(n), keep, seed), expected
    )


def _zipf(tokens: int, words: int) -> np.ndarray:
    """Numbers of words as in a text: the word of rank r about 1 / r times as often as the first."""
    return (np.exp(random().random(tokens) * np.log(words)).astype(np.int32) - 1).clip(0, words - 1)


def embedding_lookup(tokens: int, words: int, width: int) -> Case:
    def expected(table, ids, *_):
        return {2: table.reshape(words, -1)[ids].reshape(-1)}

    return Case(
        tokens,
        64,
        lambda: (
            floats(words * width).astype(np.float16).view(np.uint32),
            random().integers(0, words, tokens).astype(np.int32),
            zeros(tokens * width // 2, dtype=np.uint32),
            *int32(width // 8),
        ),
        expected,
    )


def gelu_half2(rows: int, columns: int, blocks: int) -> Case:
    def expected(x, bias, *_):
        v = (x + bias).astype(float)
        return {2: v / (1 + np.exp(-1.702 * v))}

    return Case(
        blocks,
        256,
        lambda: (
            floats(rows, columns).astype(np.float16),
            floats(columns, seed=1).astype(np.float16),
            zeros(rows, columns, dtype=np.float16),
            *int32(rows * columns // 2, columns // 2),
        ),
        expected,
    )


def bias_gradient(rows: int, columns: int) -> Case:
    def expected(g, *_):
        return {1: g.sum(0, dtype=float)}

    return Case(
        ceil(columns, 32), (32, 32), lambda: (floats(rows, columns), zeros(columns), *int32(rows, columns)), expected
    )


def embedding_gradient(tokens: int, words: int, width: int, text: bool) -> Case:
    def expected(g, ids, gradient):
        np.add.at(gradient, ids, g)
        return {2: gradient}

    def arguments():
        ids = _zipf(tokens, words) if text else random().integers(0, words, tokens).astype(np.int32)
        return floats(tokens, width), ids, zeros(words, width)

    return Case(ceil(tokens * width, 256), 256, arguments, expected)


def _lookup(tokens: int, words: int, width: int, simulated: int):
    def footprint() -> tuple[int, int]:
        rows = np.unique(random().integers(0, words, tokens)).size
        return 2 * rows * width + 4 * tokens, 2 * tokens * width

    return launch(
        {"tokens": tokens, "words": words, "width": width},
        {"tokens": simulated},
        footprint=footprint,
    )


KERNELS = [
    UnseenKernel(
        "adam",
        "training.cu",
        adam,
        {"n": 1000},
        [
            launch({"n": 2**18}),
            launch({"n": 2**23}, {"n": 2**18}),
            launch({"n": 2**26}, {"n": 2**18}),
        ],
    ),
    UnseenKernel(
        "dropout_xorshift",
        "training.cu",
        dropout_xorshift,
        {"n": 1000},
        [
            launch({"n": 2**16}),
            launch({"n": 2**22}, {"n": 2**18}),
            launch({"n": 2**27}, {"n": 2**18}),
        ],
    ),
    UnseenKernel(
        "embedding_lookup",
        "training.cu",
        embedding_lookup,
        {"tokens": 50, "words": 30, "width": 72},
        [
            _lookup(2048, 32000, 512, 2048),
            _lookup(65536, 32000, 1024, 4096),
            _lookup(262144, 128000, 768, 4096),
        ],
    ),
    UnseenKernel(
        "gelu_half2",
        "training.cu",
        gelu_half2,
        {"rows": 20, "columns": 100, "blocks": 3},
        [
            launch({"rows": 1024, "columns": 1024, "blocks": 264}),
            launch({"rows": 16384, "columns": 4096, "blocks": 1056}, {"rows": 512}, work=32),
            launch({"rows": 4096, "columns": 4096, "blocks": 32768}, {"rows": 64, "blocks": 512}),
        ],
        tolerance=1e-2,
    ),
    UnseenKernel(
        "bias_gradient",
        "training.cu",
        bias_gradient,
        {"rows": 70, "columns": 50},
        [
            launch({"rows": 4096, "columns": 1024}, {"columns": 256}),
            launch({"rows": 65536, "columns": 1024}, {"rows": 4096, "columns": 64}, work=16),
            launch({"rows": 8192, "columns": 16384}, {"rows": 1024, "columns": 512}, work=8),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "embedding_gradient",
        NUMBA,
        embedding_gradient,
        {"tokens": 50, "words": 10, "width": 24, "text": True},
        [
            launch({"tokens": 4096, "words": 32000, "width": 256, "text": True}),
            launch({"tokens": 4096, "words": 32000, "width": 256, "text": False}),
            launch({"tokens": 32768, "words": 32000, "width": 128, "text": True}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
]
