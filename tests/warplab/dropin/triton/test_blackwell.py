"""Triton's kernels for sm_100a, which multiply with tcgen05. No GPU has confirmed them. Seeds: from 35 on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="Triton is an extra: pip install triton")
tl = pytest.importorskip("triton.language")

from warplab import profile  # noqa: E402
from warplab.dropin import triton as simulated  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@pytest.fixture(scope="module", autouse=True)
def _for_blackwell(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        simulated.install(arch=100)
        yield
    simulated.install()


@triton.jit
def product_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (first + depth)[None, :])
        right = tl.load(b + (first + depth)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns, depth = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + depth[None, :])
    most, total = tl.full((M,), float("-inf"), tl.float32), tl.zeros((M,), tl.float32)
    sums = tl.zeros((M, D), tl.float32)
    for first in range(0, length, N):
        key = tl.load(k + (first + columns)[None, :] * D + depth[:, None])
        score = tl.dot(query, key) * scale
        now = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp(score - now[:, None])
        shrink = tl.exp(most - now)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + (first + columns)[:, None] * D + depth[None, :])
        sums = tl.dot(weight.to(value.dtype), value, sums * shrink[:, None])
        most = now
    tl.store(out + rows[:, None] * D + depth[None, :], sums / total[:, None])


def drawn(shape, dtype, seed) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float32])
def test_a_product_is_that_of_float64(dtype, warps):
    m, n, k = 128, 128, 128
    a, b, c = drawn((m, k), dtype, 35), drawn((k, n), dtype, 36), np.zeros((m, n), np.float32)
    arguments = a, b, c, m, n, k
    compiled = product_kernel[1, 1](*arguments, M=128, N=128, K=32 if dtype == np.float32 else 64, num_warps=warps)
    assert "tcgen05.mma" in compiled.asm["ptx"]
    right = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, right, rtol=0, atol=0.1 if dtype == np.float32 else 1e-4)


def test_attention_is_that_of_float64():
    length, d = 256, 64
    q, k, v = (drawn((length, d), np.float16, 35 + i) for i in range(3))
    out, scale = np.zeros((length, d), np.float32), 0.125
    compiled = attention_kernel[2,](q, k, v, out, length, scale, M=128, N=64, D=d, num_warps=4)
    for name in ("tcgen05.mma", "tcgen05.ld", "tcgen05.st", "tcgen05.alloc"):
        assert name in compiled.asm["ptx"]
    score = q.astype(np.float64) @ k.astype(np.float64).T * scale
    weight = np.exp(score - score.max(1, keepdims=True))
    np.testing.assert_allclose(out, weight @ v.astype(np.float64) / weight.sum(1, keepdims=True), rtol=0, atol=2e-3)


def test_products_are_counted():
    m = n = k = 128
    a, b, c = drawn((m, k), np.float16, 35), drawn((k, n), np.float16, 36), np.zeros((m, n), np.float32)
    with profile() as launches:
        product_kernel[1, 1](a, b, c, m, n, k, M=128, N=128, K=64, num_warps=4)
    assert launches[0].tensor_operations == {"m128n128k16.f32.f16": 8}
