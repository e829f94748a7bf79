"""Lab 08's kernels on the active backend: right results, nothing written outside, bad input refused, bytes counted."""

import numpy as np
import pytest

from kernels.recomputation import silu
from tests.support.random_inputs import generator
from warplab import cp, profile

SIZES = (0, 1, 3, 31, 32, 33, 127, 128, 129, 1023, 1027)
GUARD = 32  # elements before and after an output
VARIANTS = list(silu.KERNELS["silu"])


def guarded(n):
    """(all of the memory, the n elements in its middle), full of NaN."""
    whole = cp.asarray(np.full(n + 2 * GUARD, np.nan, np.float32))
    return whole, whole[GUARD : GUARD + n]


def inside(whole, n):
    found = cp.asnumpy(whole)
    assert np.isnan(found[:GUARD]).all()
    assert np.isnan(found[GUARD + n :]).all()
    return found[GUARD : GUARD + n]


def expected(x, dy):
    x = x.astype(np.float64)
    s = 1 / (1 + np.exp(-x))
    return x * s, s, dy * s * (1 + x * (1 - s))


@pytest.mark.parametrize("stored", [False, True], ids=["recomputing", "storing"])
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("n", SIZES)
def test_both_passes_are_those_of_float64(name, n, stored):
    rng = generator()
    x, dy = (rng.uniform(-8, 8, n).astype(np.float32) for _ in range(2))
    wholes, views = zip(*(guarded(n) for _ in range(3)), strict=True)
    y, s, dx = views
    silu.forward(cp.asarray(x), y, s if stored else None, name)
    silu.backward(cp.asarray(dy), cp.asarray(x), dx, s if stored else None, name)
    for whole, right, made in zip(wholes, expected(x, dy), (True, stored, True), strict=True):
        found = inside(whole, n)
        if made:
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
        else:
            assert np.isnan(found).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_numbers_far_from_zero_neither_overflow_nor_become_nan(name):
    x = np.array([-200, -90, 90, 200], np.float32)
    y, dx = cp.zeros(4, np.float32), cp.zeros(4, np.float32)
    silu.forward(cp.asarray(x), y, kernel=name)
    silu.backward(cp.asarray(np.ones(4, np.float32)), cp.asarray(x), dx, kernel=name)
    np.testing.assert_allclose(cp.asnumpy(y), [0, 0, 90, 200], atol=1e-6)
    np.testing.assert_allclose(cp.asnumpy(dx), [0, 0, 1, 1], atol=1e-6)


def test_the_gradient_is_that_of_finite_differences():
    x, h = np.linspace(-4, 4, 33), 1e-5
    up, down = (expected(x + d, 1)[0] for d in (h, -h))
    np.testing.assert_allclose(expected(x, 1)[2], (up - down) / (2 * h), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("stored", [False, True], ids=["recomputing", "storing"])
def test_the_bytes_that_move_are_those_of_the_header(name, stored):
    n = 4096
    x, dy, y, dx, s = (cp.zeros(n, np.float32) for _ in range(5))
    with profile() as p:
        silu.forward(x, y, s if stored else None, name)
        silu.backward(dy, x, dx, s if stored else None, name)
    entries = ("silu_storing", "silu_storing_backward") if stored else ("silu", "silu_backward")
    for launch, entry in zip(p, entries, strict=True):
        moved = 32 * (launch.counts.global_load_sectors + launch.counts.global_store_sectors)
        assert moved == silu.nbytes(entry, n)
    assert sum(silu.nbytes(entry, 1) for entry in entries) == (28 if stored else 20)


def test_what_does_not_fit_is_refused():
    x = cp.zeros(8, np.float32)
    with pytest.raises(ValueError, match="there is no kernel 'fast'; choose one of numba, cuda, cuda_float4"):
        silu.forward(x, x, kernel="fast")
    with pytest.raises(ValueError, match=r"y has shape \(3,\); it must be \(8,\)"):
        silu.forward(x, cp.zeros(3, np.float32))
    with pytest.raises(ValueError, match="s is float64"):
        silu.backward(x, x, x, cp.zeros(8, np.float64))
    with pytest.raises(TypeError, match="dy is a ndarray in host memory"):
        silu.backward(np.zeros(8, np.float32), x, x)
    with pytest.raises(ValueError, match="x starts 4 bytes past a multiple of 16"):
        silu.forward(cp.zeros(9, np.float32)[1:], x, kernel="cuda_float4")
