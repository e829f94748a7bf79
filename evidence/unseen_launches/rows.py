"""Rows of matrices: softmax, norms, cross-entropy, the largest elements, and one row of attention."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import NUMBA, Case, UnseenKernel, ceil, floats, int32, launch, random, zeros


def softmax_rows(rows: int, n: int) -> Case:
    def expected(x, out, *_):
        powers = np.exp(x - x.max(1, keepdims=True))
        return {1: powers / powers.sum(1, keepdims=True)}

    return Case(rows, 256, lambda: (floats(rows, n), zeros(rows, n), *int32(n)), expected)


def layer_norm(rows: int, n: int) -> Case:
    def expected(x, scale, shift, *_):
        x = x.astype(float)
        centred = x - x.mean(1, keepdims=True)
        return {3: centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + shift}

    return Case(
        ceil(rows, 4),
        128,
        lambda: (floats(rows, n), floats(n, seed=1), floats(n, seed=2), zeros(rows, n), *int32(rows, n)),
        expected,
    )


def rms_norm(rows: int, n: int) -> Case:
    def expected(x, scale, *_):
        x, scale = x.astype(float), scale.astype(float)
        return {2: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * scale}

    return Case(
        rows,
        128,
        lambda: (
            *(floats(rows, n).astype(np.float16), floats(n, seed=1).astype(np.float16)),
            *(zeros(rows, n, dtype=np.float16), *int32(n // 2)),
        ),
        expected,
    )


def argmax_rows(rows: int, n: int) -> Case:
    def expected(x, place, *_):
        return {1: x.argmax(1)}

    return Case(
        ceil(rows * 32, 128), 128, lambda: (floats(rows, n), zeros(rows, dtype=np.int32), *int32(rows, n)), expected
    )


def top_8_rows(rows: int, n: int) -> Case:
    def expected(x, *_):
        return {1: -np.sort(-x, 1)[:, :8]}

    return Case(ceil(rows, 128), 128, lambda: (floats(rows, n), zeros(rows, 8), *int32(rows, n)), expected)


def attention_row(heads: int, n: int) -> Case:
    def expected(query, keys, values, *_):
        score = np.einsum("hd,hnd->hn", query, keys) * np.float32(0.08838835)
        powers = np.exp(score - score.max(1, keepdims=True))
        return {3: np.einsum("hn,hnd->hd", powers / powers.sum(1, keepdims=True), values)}

    return Case(
        heads,
        128,
        lambda: (
            *(floats(heads, 128), floats(heads, n, 128, seed=1), floats(heads, n, 128, seed=2)),
            *(zeros(heads, 128), *int32(n)),
        ),
        expected,
        shared_bytes=4 * n,
    )


def cross_entropy(rows: int, n: int) -> Case:
    def expected(logits, labels, loss):
        best = logits.max(1)
        total = np.log(np.exp(logits - best[:, None]).sum(1)) + best
        return {2: total - logits[np.arange(rows), labels]}

    return Case(
        rows,
        128,
        lambda: (floats(rows, n), random().integers(0, n, rows).astype(np.int32), zeros(rows)),
        expected,
    )


KERNELS = [
    UnseenKernel(
        "softmax_rows",
        "rows.cu",
        softmax_rows,
        {"rows": 5, "n": 700},
        [
            launch({"rows": 128, "n": 1024}),
            launch({"rows": 16384, "n": 1024}, {"rows": 128}),
            launch({"rows": 4096, "n": 32768}, {"rows": 16}),
            launch({"rows": 131072, "n": 128}, {"rows": 512}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "layer_norm",
        "rows.cu",
        layer_norm,
        {"rows": 6, "n": 1000},
        [
            launch({"rows": 512, "n": 768}),
            launch({"rows": 16384, "n": 768}, {"rows": 512}, footprint=(4 * (16384 + 2) * 768, 4 * 16384 * 768)),
            launch({"rows": 131072, "n": 1024}, {"rows": 512}, footprint=(4 * (2**17 + 2) * 1024, 4 * 2**27)),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "rms_norm",
        "rows.cu",
        rms_norm,
        {"rows": 3, "n": 1000},
        [
            launch({"rows": 64, "n": 4096}),
            launch({"rows": 2048, "n": 4096}, {"rows": 64}, footprint=(2 * 2049 * 4096, 2 * 2048 * 4096)),
            launch({"rows": 32768, "n": 8192}, {"rows": 64}, footprint=(2 * 32769 * 8192, 2 * 32768 * 8192)),
        ],
        warm=True,
        tolerance=2e-3,
    ),
    UnseenKernel(
        "argmax_rows",
        "rows.cu",
        argmax_rows,
        {"rows": 9, "n": 300},
        [
            launch({"rows": 1024, "n": 1000}),
            launch({"rows": 65536, "n": 1000}, {"rows": 1024}),
            launch({"rows": 256, "n": 50257}, {"rows": 16}),
        ],
    ),
    UnseenKernel(
        "top_8_rows",
        "rows.cu",
        top_8_rows,
        {"rows": 200, "n": 50},
        [launch({"rows": 8192, "n": 256}, {"rows": 1024}), launch({"rows": 131072, "n": 512}, {"rows": 512})],
    ),
    UnseenKernel(
        "attention_row",
        "rows.cu",
        attention_row,
        {"heads": 3, "n": 70},
        [
            launch({"heads": 32, "n": 1024}),
            launch({"heads": 256, "n": 2048}, {"heads": 16}),
            launch({"heads": 1024, "n": 4096}, {"heads": 8}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "cross_entropy",
        NUMBA,
        cross_entropy,
        {"rows": 5, "n": 300},
        [
            launch({"rows": 1024, "n": 1000}, {"rows": 256}),
            launch({"rows": 2048, "n": 50257}, {"rows": 8}),
            launch({"rows": 65536, "n": 10}, {"rows": 1024}),
        ],
        tolerance=1e-4,
    ),
]
