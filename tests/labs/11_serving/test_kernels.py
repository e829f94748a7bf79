"""The kernels that keep a GPU busy: right results, nothing written outside, bad input refused, work shared."""

import numpy as np
import pytest

from kernels.serving.utilisation import busy_kernels
from tests.support.random_inputs import generator
from warplab import cp, profile

SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1000)
GUARD = 32  # elements before and after the output


def guarded(n, dtype=np.float32, fill=np.nan):
    whole = cp.asarray(np.full(n + 2 * GUARD, fill, dtype))
    return whole, whole[GUARD : GUARD + n]


def outside(whole, n):
    found = cp.asnumpy(whole)
    return np.concatenate([found[:GUARD], found[GUARD + n :]])


def spun(c, rounds):
    """`spin` by NumPy: each step exact in extended precision, then rounded once."""
    z = np.zeros_like(c)
    for _ in range(rounds):
        z = (np.longdouble(z) * np.longdouble(z) + np.longdouble(c)).astype(np.float32)
    return z


@pytest.mark.parametrize("name", ["cuda_spin", "numba_spin"])
@pytest.mark.parametrize("n", SIZES)
def test_spinning_is_numpys(name, n):
    c = busy_kernels.constants(n, generator())
    whole, out = guarded(n)
    busy_kernels.spin(cp.asarray(c), 37, out, name)
    np.testing.assert_array_equal(cp.asnumpy(out), spun(c, 37))
    assert np.isnan(outside(whole, n)).all()


def test_spinning_never_comes_to_rest():
    c = busy_kernels.constants(100, generator())
    values = np.stack([spun(c, rounds) for rounds in range(200, 232)])
    assert np.abs(values).max() <= 2
    assert (np.ptp(values, axis=0) > 0.5).all()


@pytest.mark.parametrize("name", ["cuda_copy", "numba_copy"])
@pytest.mark.parametrize("n", [0, 4, 32, 1020, 1024, 1028, 4100])
def test_a_copy_is_a_copy(name, n):
    x = generator().standard_normal(n, dtype=np.float32)
    for grid in (None, 1, 3):
        whole, out = guarded(n)
        busy_kernels.copy(cp.asarray(x), out, name, grid=grid)
        np.testing.assert_array_equal(cp.asnumpy(out), x)
        assert np.isnan(outside(whole, n)).all()


@pytest.mark.parametrize(("n", "columns"), [(0, 1), (33, 1), (1024, 8), (96, 32), (100, 100), (1000, 4)])
def test_a_scatter_is_a_transpose(n, columns):
    x = generator().standard_normal(n, dtype=np.float32)
    whole, out = guarded(n)
    busy_kernels.scatter(cp.asarray(x), out, columns)
    np.testing.assert_array_equal(cp.asnumpy(out), x.reshape(columns, n // columns).T.ravel())
    assert np.isnan(outside(whole, n)).all()


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_a_chase_ends_where_numpy_does(n):
    rng = generator()
    places = busy_kernels.chain(128, rng)
    whole, out = guarded(n, np.uint32, 9999)
    busy_kernels.chase(cp.asarray(places), 50, out)
    expected = np.arange(n)
    for _ in range(50):
        expected = places[expected]
    np.testing.assert_array_equal(cp.asnumpy(out), expected)
    assert (outside(whole, n) == 9999).all()


@pytest.mark.parametrize(("n", "stride"), [(1, 1), (100, 1), (1024, 32)])
def test_a_chain_is_one_cycle(n, stride):
    places = busy_kernels.chain(n, generator(), stride)
    seen, place = [], 0
    for _ in range(-(-n // stride)):
        seen.append(place)
        place = int(places[place])
    assert place == 0
    assert sorted(seen) == list(range(0, n, stride))


def test_threads_share_the_work():
    c, out = cp.zeros(1024, np.float32), cp.zeros(1024, np.float32)
    with profile() as p:
        busy_kernels.spin(c[:1], 8, out[:1])
        busy_kernels.spin(c, 8, out)
        busy_kernels.copy(c, out)
    one, many, copied = p.launches
    assert (one.grid, many.grid, copied.grid) == ((1, 1, 1), (4, 1, 1), (1, 1, 1))
    assert many.counts.flops_f32 == 1024 * one.counts.flops_f32 == 1024 * 16
    assert copied.counts.global_load_requests == copied.counts.global_store_requests == 8
    assert copied.counts.load_efficiency == 1


def test_what_does_not_fit_is_refused():
    x = cp.zeros(8, np.float32)
    with pytest.raises(ValueError, match="there is no kernel 'cuda_copy'; choose one of cuda_spin, numba_spin"):
        busy_kernels.spin(x, 1, x, "cuda_copy")
    with pytest.raises(ValueError, match=r"out has shape \(3,\); it must be \(8,\)"):
        busy_kernels.spin(x, 1, cp.zeros(3, np.float32))
    with pytest.raises(ValueError, match="rounds is -1; the kernel counts them with 32 bits"):
        busy_kernels.spin(x, -1, x)
    with pytest.raises(TypeError, match="c is a ndarray in host memory"):
        busy_kernels.spin(np.zeros(4, np.float32), 1, x)
    with pytest.raises(ValueError, match="out has 6 elements; cuda_copy moves four at a time"):
        busy_kernels.copy(cp.zeros(6, np.float32), cp.zeros(6, np.float32))
    with pytest.raises(ValueError, match="starts 4 bytes past a multiple of 16"):
        busy_kernels.copy(cp.zeros(9, np.float32)[1:], x)
    with pytest.raises(ValueError, match="x and out overlap"):
        busy_kernels.copy(x, x)
    with pytest.raises(ValueError, match="8 elements do not fill rows of 3"):
        busy_kernels.scatter(x, cp.zeros(8, np.float32), 3)
    with pytest.raises(ValueError, match="x and out overlap"):
        busy_kernels.scatter(x, x, 2)
    with pytest.raises(ValueError, match="steps is -1"):
        busy_kernels.chase(cp.zeros(4, np.uint32), -1, cp.zeros(4, np.uint32))
    with pytest.raises(ValueError, match="out has 9 elements, one per thread, and places only 8"):
        busy_kernels.chase(cp.zeros(8, np.uint32), 1, cp.zeros(9, np.uint32))
    with pytest.raises(ValueError, match="a chain has 1 to 4294967295 places, not 0"):
        busy_kernels.chain(0, generator())
