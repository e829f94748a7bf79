"""Sums that nothing set to zero: refused, though the compiler happens to start them at 0."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float32

from tests.support.kernel_checks import INDEX, cuda_kernel, failure
from warplab import checks, cuda
from warplab.compile import cuda_mistakes

PAIRS = checks.elementwise(np.add, ("x", "y"), "out")
SIZES = {"sizes": [33], "launches": [(2, 32)]}


@cuda.jit
def never_set(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    if i < out.size:
        for k in range(2):
            sums[k] += x[i] if k == 0 else y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit
def set_by_a_loop(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    for k in range(2):
        sums[k] = 0
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit(device=True)
def clear(values):
    for k in range(2):
        values[k] = 0


@cuda.jit
def set_by_a_function(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    clear(sums)
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit
def set_under_another_name(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    other = sums
    other[0] = other[1] = 0
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


def test_never_set():
    error = failure(never_set, PAIRS, **SIZES)
    assert "never_set adds to what was never set." in str(error)
    assert "Nothing promises that sums starts at zero: set each element before, sums[i] = 0." in str(error)
    assert error.look_at.endswith("sums[k] += x[i] if k == 0 else y[i]")
    assert error.kind == "uninitialized"


@pytest.mark.parametrize("kernel", [set_by_a_loop, set_by_a_function, set_under_another_name])
def test_set_in_some_way(kernel):
    checks.kernel(kernel, PAIRS, **SIZES)


@pytest.mark.parametrize(
    "body",
    [
        "int s;\n for (int j = 0; j < n; j++) s = __dp4a(a[j], b[j], s);\n c[i] = s;",
        "float s, t = 1;\n if (i < n) { s += a[i]; c[i] = s; }",
        "unsigned int s; for (int j = 0; j < n; j++) if (a[j]) s++;",
        "float s; for (int j = 0; j < n; j++) s = max(s, a[j]);",
    ],
)
def test_a_number_of_cuda_never_set(body):
    found = cuda_mistakes.never_set(f"__global__ void k(int *a, int *b, int *c, int n) {{\n{INDEX}\n{body}\n}}")
    assert found == f"line 3: {body.splitlines()[0]}\ns begins as anything, not as 0."


def test_a_kernel_of_cuda_that_never_sets_its_sum():
    error = failure(cuda_kernel(f"{INDEX} float s;\n if (i < n) {{ s += a[i]; c[i] = s; }}"), PAIRS, **SIZES)
    assert (error.kind, error.got) == ("uninitialized", "s begins as anything, not as 0.")


@pytest.mark.parametrize(
    "body",
    [
        "int s = 0; s += 1;",
        "int s; if (i) s = 0; s += 1;",
        "int s; for (int j = 0; j < n; j++) s = j == 0 ? a[j] : s + a[j];",
        "int s; reset(s); s += 1;",
        "int s; take(n, a[i], s); s += 1;",
        "int s; int &r = s; r = 0; s += 1;",
        "int s; read(&s); s += 1;",
        "int s; s ^= s; s *= 0; s += 1;",
        'int s; asm("mov.u32 %0, 0;" : "=r"(s)); s += 1;',
        "int s; s = x, x = y, y = s;",
        "int s; auto clear = [&] { s = 0; }; clear(); s += 1;",
        "__shared__ int s; s += 1;",
        "static int s; s += 1;",
        "struct sum { int s; void add(int a) { s += a; } };",
        "// int s;\n s += 1;",
    ],
)
def test_a_number_of_cuda_that_may_be_set(body):
    assert cuda_mistakes.never_set(f"__device__ int s;\n__global__ void k() {{ {body} }}") == ""
