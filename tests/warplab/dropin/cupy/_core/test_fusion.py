"""`fuse` on the simulator: one kernel for a function of elementwise operations, with NumPy's results and types."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from tests.warplab.dropin.cupy.arrays import DTYPES, random_array
from warplab import profile, simulator
from warplab.dropin import cupy as cp

UNARY = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conjugate cos cosh deg2rad degrees exp exp2 expm1
    fabs floor invert isfinite isinf isnan log log10 log1p log2 logical_not negative positive rad2deg radians reciprocal
    rint sign signbit sin sinh sqrt square tan tanh trunc
"""
BINARY = """
    add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide fmax fmin fmod greater
    greater_equal hypot left_shift less less_equal logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal power remainder right_shift subtract
"""


def cases(names: str, dtypes: list[str]) -> list[tuple[str, str]]:
    """Return the functions with the dtypes for which NumPy has a loop. Float16 is rounded otherwise in CuPy."""
    found = []
    for name in names.split():
        ufunc = getattr(np, name)
        for dtype in dtypes:
            with contextlib.suppress(TypeError):
                if ufunc.resolve_dtypes((*[np.dtype(dtype)] * ufunc.nin, None))[-1] != np.float16:
                    found.append((name, dtype))
    return found


def same(found: np.ndarray, expected: np.ndarray, rtol: float) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol if expected.dtype.kind in "fc" else 0)


@pytest.mark.parametrize(("name", "dtype"), cases(UNARY, ["?", "i4", "f4", "f8"]))
def test_functions_of_one_array(name, dtype):
    x = random_array((90,), dtype, 1)
    if name in ("exp", "exp2", "expm1", "cosh", "sinh") and dtype in ("i4", "u2"):
        x %= 9  # within range of the result
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    found = cp.fuse(lambda a: getattr(cp, name)(a), kernel_name="one")(cp.asarray(x))
    if name == "reciprocal" and dtype in ("i4", "u2"):
        x, expected, found = x[x != 0], expected[x != 0], found[cp.asarray(x != 0)]
    same(found.get(), expected, 1e-5 if expected.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(("name", "dtype"), cases(BINARY, ["i4", "u2", "f4"]))
def test_functions_of_two_arrays(name, dtype):
    x, y = random_array((90,), dtype, 2), random_array((90,), dtype, 3)
    if dtype in ("i4", "u2"):
        y = np.abs(y % 7).astype(dtype)  # shifts and exponents
        y[y == 0] = 1
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    found = cp.fuse(lambda a, b: getattr(cp, name)(a, b), kernel_name="two")(cp.asarray(x), cp.asarray(y))
    same(found.get(), expected, 1e-5 if expected.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", ["u1", "f4"])
def test_types_are_numpy_s(left, right):
    x, y = random_array((5,), left, 4), random_array((5,), right, 5)
    found = cp.fuse(lambda a, b: a * b + a, kernel_name="mixed")(cp.asarray(x), cp.asarray(y)).get()
    with np.errstate(all="ignore"):
        same(found, x * y + x, 1e-2 if found.dtype == np.float16 else 1e-5)


def test_numbers_are_weak():
    @cp.fuse()
    def scaled(x, s):
        return (x + 1) * s / 2.5

    for dtype in ("u1", "i4", "f4", "f8"):
        x = random_array((9,), dtype, 6)
        for s in (2, 0.5, np.float32(0.5)):
            same(scaled(cp.asarray(x), s).get(), (x + 1) * s / 2.5, 1e-6)


def test_one_launch_for_many_operations():
    @cp.fuse(kernel_name="normal")
    def density(x, mean, deviation):
        z = (x - mean) / deviation
        return cp.exp(-(z**2) / 2) / (deviation * np.sqrt(2 * np.pi)), cp.where(z > 0, z, 0).astype(np.float32)

    x, mean = random_array((7, 1), "f8", 7), random_array((5,), "f8", 8)
    with profile() as p:
        found, positive = density(cp.asarray(x), cp.asarray(mean), 1.5)
        density(cp.asarray(x), cp.asarray(mean), 2.5)
    assert p.kernels == ["normal"]
    assert len(p) == 2
    z = (x - mean) / 1.5
    np.testing.assert_allclose(found.get(), np.exp(-(z**2) / 2) / (1.5 * np.sqrt(2 * np.pi)), rtol=1e-13)
    same(positive.get(), np.where(z > 0, z, 0).astype(np.float32), 0)


def test_arguments_can_be_changed():
    @cp.fuse
    def update(x, y):
        x += y * 2
        x *= 3
        y -= x
        return x

    x, y = cp.arange(6.0), cp.ones(6)
    assert update(x, y) is x
    assert x.tolist() == [6, 9, 12, 15, 18, 21]
    assert y.tolist() == [-5, -8, -11, -14, -17, -20]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_a_reduction_at_the_end(name):
    x, y = random_array((6, 9), "i4", 9) % 3 - 1, random_array((9,), "i4", 10) % 2
    reduce = getattr(cp, name)

    @cp.fuse()
    def whole(a, b):
        return reduce(a + b)

    @cp.fuse()
    def by_row(a, b):
        return reduce(a - b, axis=1)

    with profile() as p:
        found = whole(cp.asarray(x), cp.asarray(y)), by_row(cp.asarray(x), cp.asarray(y))
    assert len(p) == 2
    same(found[0].get(), np.asarray(getattr(np, name)(x + y)), 0)
    same(found[1].get(), np.asarray(getattr(np, name)(x - y, axis=1)), 0)


def test_without_arrays_it_is_the_function():
    clip = cp.fuse(lambda x: np.clip(x, 1, 3))
    assert clip(np.arange(5)).tolist() == [1, 1, 2, 3, 3]
    assert clip(7) == 3
    assert cp.fuse(lambda x: cp.clip(x, 1, 3))(cp.arange(5)).tolist() == [1, 1, 2, 3, 3]

    @cp.fuse()
    def inner(x):
        return x * 2

    assert cp.fuse(lambda x: inner(x) + 1)(cp.arange(3)).tolist() == [1, 3, 5]


def test_checks_see_the_kernel():
    with pytest.raises(simulator.UninitializedRead, match="in kernel twice"):
        cp.fuse(lambda x: x + x, kernel_name="twice")(cp.empty(8))


def test_mistakes():
    with pytest.raises(TypeError, match=r"use cupy.where\(condition, a, b\)"):
        cp.fuse(lambda x: x if x > 0 else -x)(cp.ones(3))
    with pytest.raises(NotImplementedError, match=r"cupy\.fuse does not know sort"):
        cp.fuse(lambda x: cp.sort(x))(cp.ones(3))
    with pytest.raises(TypeError, match="Unsupported type"):
        cp.fuse(lambda x: x + "1")(cp.ones(3))
    with pytest.raises(TypeError, match="fuse takes kernel_name"):
        cp.fuse(name="x")

    @cp.fuse
    def narrowed(x, y):
        x += y

    with pytest.raises(TypeError, match="could not be coerced"):
        narrowed(cp.ones(3, "i4"), cp.ones(3, "f8"))
