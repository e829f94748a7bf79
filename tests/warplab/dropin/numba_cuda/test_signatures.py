"""Which explicit signature a launch takes, and what is kept of compiled kernels, as numba.cuda has it."""

from __future__ import annotations

import numpy as np
import pytest
from numba.cuda import types

from warplab.dropin import numba_cuda as cuda

TWO = ["void(int64[::1], float32)", "void(int64[::1], float64)"]


def which(out, x):
    out[0] = 4 if x == np.float32(0.1) else 8


@pytest.mark.parametrize("signatures", [TWO, TWO[::-1]])
@pytest.mark.parametrize(("x", "expected"), [(np.float32(0.1), 4), (0.1, 8), (np.float64(0.1), 8)])
def test_the_exact_type_wins_in_any_order(signatures, x, expected):
    out = np.zeros(1, np.int64)
    cuda.jit(signatures)(which)[1, 1](out, x)
    assert out[0] == expected


def test_an_integer_becomes_float64_as_numba_has_it():
    @cuda.jit(["void(float64[::1], float32)", "void(float64[::1], float64)"])
    def store(out, x):
        out[0] = x

    out = np.zeros(1)
    store[1, 1](out, 16_777_217)  # 2**24 + 1, which float32 does not have
    assert out[0] == 16_777_217


def test_two_signatures_that_fit_equally_well():
    @cuda.jit(["void(float64[::1], float32, float64)", "void(float64[::1], float64, float32)"])
    def add(out, x, y):
        out[0] = x + y

    out = np.zeros(1)
    with pytest.raises(TypeError, match=r"(?s)Ambiguous overloading for .*add.*such as np\.float32"):
        add[1, 1](out, 1.0, 2.0)
    add[1, 1](out, np.float32(1), 2.0)
    assert out[0] == 3


def test_integers_wrap_round_as_in_ctypes():
    @cuda.jit("void(int32, uint8, int64[::1])")
    def store(a, b, out):
        out[0], out[1] = a, b

    out = np.zeros(2, np.int64)
    store[1, 1](0xFFFFFFFF, -1, out)
    assert out.tolist() == [-1, 255]


def test_empty_tuples():
    @cuda.jit
    def lengths(t, out):
        out[0], out[1] = len(t), len(t[1])

    out = np.zeros(2, np.int64)
    lengths[1, 1](((), (), ()), out)
    assert out.tolist() == [3, 0]


def test_what_was_compiled_is_listed():
    @cuda.jit
    def fill(out, x):
        out[0] = x

    assert dict(fill.overloads) == {}
    out = np.zeros(1)
    fill[1, 1](out, 1.0)
    fill[1, 1](out, 2)
    assert list(fill.overloads) == fill.signatures
    assert len(fill.overloads) == 2
    assert fill.specializations == {}
    special = fill.specialize(out, 1.0)
    assert fill.specialize(out, 2.0) is special
    assert list(fill.specializations.values()) == [special]


def test_device_functions_are_compiled_without_a_gpu():
    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    compiled = twice.compile_device((types.float32,))
    assert compiled.signature.return_type in (types.float32, types.float64)
    assert list(twice.overloads) == [(types.float32,)]
    assert "fmul" in twice.inspect_llvm((types.float32,))


@pytest.mark.parametrize("axis", [0, 1])
def test_arrays_that_repeat_themselves_are_copied(axis):
    cores = [np.arange(6).reshape((2, 3), order=order) for order in "CF"]
    shape = (*(2, 3)[:axis], 4, *(2, 3)[axis:])
    first, second = (np.broadcast_to(np.expand_dims(core, axis), shape) for core in cores)
    for old, new in ((first, second), (second, first)):
        array = cuda.to_device(old)
        array.copy_to_device(new)
        assert np.array_equal(array.copy_to_host(), new)


def test_one_signature_takes_integers_of_its_width():
    @cuda.jit("void(int32[:])")
    def negate(x):
        x[0] = -1

    x = np.zeros(1, np.uint32)
    negate[1, 1](x)
    assert x[0] == 0xFFFFFFFF
    with pytest.raises(TypeError, match=r"`x` is int64\[::1\] where it takes int32\[:\]"):
        negate[1, 1](np.zeros(1, np.int64))
