"""Kernels in CUDA C++, and the failures of `checks.kernel` on them, for the tests of the checks."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import checks
from warplab.checks.cases import elementwise
from warplab.launch.kernel_source import CudaSource

PRODUCT = elementwise(np.multiply, ("a", "b"), "c", length="n")
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
ONE_WARP = [(1, 32)]


def cuda_kernel(body: str, parameters: str = "const float* a, const float* b, float* c, int n") -> CudaSource:
    return CudaSource(f'extern "C" __global__ void f({parameters}) {{ {body} }}', "f")


RIGHT = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i];")


def failure(*arguments, **options) -> checks.CheckFailed:
    """The failure of `checks.kernel` with these arguments."""
    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(*arguments, **options)
    return caught.value


def doubled(rng, n):
    """The case of `out = 2 * a`, with n."""
    a = rng.integers(-8, 9, n).astype(np.float32)
    return checks.Case({"a": a, "out": None, "n": np.int32(n)}, {"out": 2 * a})


def doubled_without_size(rng, n):
    case = doubled(rng, n)
    return checks.Case({name: case.arguments[name] for name in ("a", "out")}, case.expected)


def failure_on_one_warp(
    body: str = "", kernel: object = None, make_case=doubled, n: int = 32, **options
) -> checks.CheckFailed:
    """The failure of a kernel on one block of 32 threads: `kernel`, or one with `body`, whose first line is line 3."""
    head = 'extern "C" __global__ void f(const float* a, float* out, int n)\n{\n'
    source = kernel or CudaSource(f"{head}{body}\n}}\n", "f")
    return failure(source, make_case, sizes=[n], launches=ONE_WARP, **options)
