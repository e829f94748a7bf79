"""What a launch does on the host it does once: typing its arguments, compiling, reading grid and block."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from warplab.compile import numba_compiler
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.dropin.numba_cuda import dispatcher
from warplab.launch import dimensions, kernel_source, numba_arguments, simulate


@pytest.fixture
def calls(monkeypatch) -> Counter:
    """Number of calls by function, wherever it was imported to."""
    counted: Counter = Counter()

    def count(function, *modules):
        def counting(*args, **kwargs):
            counted[function.__name__] += 1
            return function(*args, **kwargs)

        for module in modules:
            monkeypatch.setattr(module, function.__name__, counting)

    count(numba_arguments.types_of, numba_arguments, dispatcher)
    count(numba_compiler.compile_numba_program, numba_compiler)
    count(dimensions.dimensions, dispatcher, simulate)
    count(kernel_source.label_files, kernel_source)
    return counted


def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_a_launch_of_numba_types_and_compiles_its_arguments_once(calls):
    kernel, x = cuda.jit(add_one), np.zeros(4, np.float32)
    kernel[1, 32](x)
    assert calls == {"types_of": 1, "compile_numba_program": 1, "label_files": 1, "dimensions": 2}  # grid and block
    calls.clear()
    kernel[1, 32](x)
    assert calls == {"dimensions": 2}  # Numba's dispatcher, in C++, types the arguments of what is compiled
    calls.clear()
    configured = kernel[1, 32]
    configured(x)
    configured(x)
    assert calls == {"dimensions": 2}
    np.testing.assert_array_equal(x, 4)


def test_a_debug_kernel_with_a_signature_is_no_exception(calls):
    kernel = cuda.jit("void(float32[:])", debug=True, opt=False)(add_one)
    assert calls == {"compile_numba_program": 1, "label_files": 1}
    calls.clear()
    kernel[1, 32](cuda.to_device(np.zeros(4, np.float32)))
    assert calls == {"types_of": 1, "dimensions": 2}


def test_a_launch_of_cupy_reads_grid_and_block_once(calls):
    code = 'extern "C" __global__ void add_one(float* x) { x[threadIdx.x] += 1; }'
    kernel, x = cp.RawKernel(code, "add_one"), cp.zeros(4, np.float32)
    kernel((1,), (4,), (x,))
    calls.clear()
    kernel((1,), (4,), (x,))
    assert calls == {"dimensions": 2}
    assert x.get().tolist() == [2, 2, 2, 2]
