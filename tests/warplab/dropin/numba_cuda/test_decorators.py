"""`cuda.jit`: signatures, device functions, options."""

import numpy as np
import pytest
from numba.cuda.core.errors import NumbaInvalidConfigWarning

from warplab.dropin import numba_cuda as cuda
from warplab.launch.errors import ArgumentError


@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor


def test_a_device_function_with_a_signature():
    @cuda.jit("float32(float32)", device=True)
    def half(v):
        return v / 2

    @cuda.jit
    def run(x):
        x[0] = half(x[0])

    x = np.array([5], np.float32)
    run[1, 1](x)
    assert x[0] == 2.5


@pytest.mark.parametrize(
    "signature", ["void(float32[:], float32)", ["void(float64[:], float64)", "void(float32[:], float32)"]]
)
def test_explicit_signatures(signature):
    kernel = cuda.jit(signature)(scale.py_func)
    x = np.arange(5, dtype=np.float32)
    kernel[1, 32](x, 2)
    np.testing.assert_array_equal(x, 2 * np.arange(5))
    with pytest.raises(ArgumentError, match=r"`x` is int32\[::1\] where it takes float"):
        kernel[1, 32](x.astype(np.int32), 2)
    assert len(kernel.signatures) == (1 if isinstance(signature, str) else 2)


def test_a_kernel_returns_nothing():
    with pytest.raises(TypeError, match="void"):
        cuda.jit("float32(float32[:])")(lambda x: x[0])


@cuda.jit(debug=True, opt=False)
def checked(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] == 7:
            raise IndexError("seven")
        if x[i] == 5:
            raise AssertionError  # as `assert` does, which pytest rewrites
        out[i] = 10 // x[i]


def test_debug_wants_unoptimised_code():
    with pytest.warns(NumbaInvalidConfigWarning, match="opt=False"):
        cuda.jit(debug=True)(checked.py_func)


def test_a_debug_kernel_has_what_a_debugger_reads():
    @cuda.jit(device=True, debug=True, opt=False)
    def plus_one(v):
        return v + 1

    @cuda.jit(device=True, debug=True, opt=False)
    def twice(v):
        return 2 * plus_one(v)

    @cuda.jit(debug=True, opt=False, _dbg_optnone=True)
    def run(x):
        x[0] = twice(x[0]) + plus_one(x[0])

    x = np.array([5])
    run[1, 1](x)
    assert x[0] == 18
    (signature,) = run.signatures
    assert "emissionKind: FullDebug" in run.inspect_llvm(signature)
    assert ".debug_info" in run.inspect_asm(signature)
    assert run.get_regs_per_thread(signature) > 0  # the assembler takes the three modules as one
