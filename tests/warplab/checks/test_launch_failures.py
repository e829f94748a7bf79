"""Failures of launches that end with an error: races, parameters, compilers, the simulator's own faults."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float32

from tests.support.kernel_checks import (
    INDEX,
    PRODUCT,
    RIGHT,
    cuda_kernel,
    doubled_without_size,
    failure,
    failure_on_one_warp,
)
from warplab import checks, cuda, simulator
from warplab.checks import Case
from warplab.checks.cases import distinct


def test_a_race_fails_even_if_the_result_is_right():
    """In the simulator's order the neighbour is read before it is written."""

    def make_case(rng, n):
        a = distinct(rng, n)
        return Case({"a": a}, {"a": np.append(a[1:], a[-1:])})

    def shift(between):
        body = f"int i = threadIdx.x, j = min(i + 1, blockDim.x - 1); float x = a[j]; {between} a[i] = x;"
        return cuda_kernel(body, "float* a")

    launch = {"sizes": [32], "launches": [(1, 32)]}
    checks.kernel(shift("__syncthreads();"), make_case, **launch)
    error = failure(shift(""), make_case, **launch)
    assert error.problem == "f has a data race."
    assert "thread" in error.got


def test_wrong_parameters_and_compile_errors():
    assert "cannot be launched with (a, b, c, n)" in str(failure(cuda_kernel("", "float* a"), PRODUCT))
    error = failure(cuda_kernel("c[0] = d;"), PRODUCT)
    assert "does not compile" in str(error)
    assert error.kind == "compile"
    error = failure(cuda_kernel(INDEX + "c[i] = 1;", "const double* a, const double* b, double* c, int n"), PRODUCT)
    assert error.got.endswith("points to float64, but the array holds float32")
    assert error.look_at == "the declared type of that parameter: it must be float*"


def test_a_failure_of_the_simulator_is_not_the_kernels(monkeypatch):
    def fail(*arguments, **options):
        raise IndexError("lane 7")

    monkeypatch.setattr(simulator.Device, "launch", fail)
    told = r"^the course's simulator failed on f: IndexError: lane 7 \(test_launch_failures.py, line \d+\)\n.*bug"
    with pytest.raises(simulator.SimulatorFailure, match=told) as caught:
        checks.kernel(RIGHT, PRODUCT)
    assert not isinstance(caught.value, simulator.SimulatorError)
    monkeypatch.setattr(simulator.Device, "launch", lambda *a, **o: bytearray(1 << 62))
    with pytest.raises(MemoryError):
        checks.kernel(RIGHT, PRODUCT)


TILE = 32


def test_an_expression_as_size_of_a_shared_array_is_named():
    @cuda.jit
    def f(a, out):
        tile = cuda.shared.array((TILE, TILE + 1), float32)
        tile[0, cuda.threadIdx.x] = a[cuda.threadIdx.x]
        out[cuda.threadIdx.x] = 2 * tile[0, cuda.threadIdx.x]

    error = failure_on_one_warp(kernel=f, make_case=doubled_without_size)
    assert error.kind == "compile"
    assert "tile = cuda.shared.array((TILE, TILE + 1), float32)\nThe size must be known" in error.look_at


def test_other_errors_of_a_compiler_speak_for_themselves():
    error = failure_on_one_warp("    out[threadIdx.x] = b[0];")
    assert (error.kind, error.look_at) == ("compile", "")
