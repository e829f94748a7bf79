"""Compile errors as a learner sees them."""

import re

import pytest

from warplab.compile import errors
from warplab.compile.errors import CompileError
from warplab.compile.nvrtc import compile_cuda

SCALE = """extern "C" __global__ void scale(float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""


def test_a_compile_error_shows_file_line_source_and_caret():
    with pytest.raises(CompileError) as caught:
        compile_cuda(SCALE.replace("threadIdx", "threadIdy"), "cell [5]")
    lines = str(caught.value).splitlines()
    assert lines[0] == 'cell [5], line 2: error: identifier "threadIdy" is undefined'
    assert lines[1].strip() == "int i = blockIdx.x * blockDim.x + threadIdy.x;"
    assert lines[2].index("^") == lines[1].index("threadIdy")
    assert "cell [5](2): error" in caught.value.log


def test_many_errors_are_cut_and_warnings_left_out_beside_them():
    body = "".join(f"  x{i} = 1;\n" for i in range(7))
    with pytest.raises(CompileError) as caught:
        compile_cuda(f'extern "C" __global__ void f() {{\n  int unused;\n{body}}}')
    text = str(caught.value)
    assert text.count("error:") == errors.MOST_ERRORS
    assert text.endswith("4 more errors")
    assert "warning" not in text


def test_functions_of_a_header_that_do_not_match_are_left_out():
    source = """\
#include <mma.h>
using namespace nvcuda::wmma;
__device__ void mine(int x, int y);
extern "C" __global__ void f() {
    __shared__ alignas(32) half tile[16][16];
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    load_matrix_sync(a, tile, 16);
    mine(1);
}"""
    with pytest.raises(CompileError) as caught:
        compile_cuda(source)
    text = str(caught.value)
    assert "half [16][16]" in text
    assert "declarations in mma.hpp matches" in text
    assert "&tile[0][0]" in text
    assert "too few arguments" in text
    assert "/crt/" not in text
    assert len(text.splitlines()) < 15


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("#include <stdio.h>\n__global__ void f() {}", "no host headers"),
        ("#include <curand_none.h>\n__global__ void f() {}", 'pip install "warplab[curand]"'),
        ("__global__ void f(int *x) { *x = __shfl_down(*x, 1); }", "__shfl_down_sync(0xffffffff, x, 16)"),
        ("__global__ void f() { cudaDeviceSynchronize(); }", "dynamic parallelism"),
        ("__global__ void f() { int i = cuda.grid(1); }", "cuda.grid(1) is blockIdx.x * blockDim.x + threadIdx.x"),
        ("int twice(int x) { return 2 * x; }", "__device__ in front"),
        (
            'extern "C" __global__ void f(int n) {\n  for i in range(0, n, 16) { }\n}',
            "This cell is C++: for (int i = 0; i < n; i++)",
        ),
        ('extern "C" __global__ void f(int n) {\n  if n > 0:\n    n = 1;\n}', "This cell is C++: if (i < n)"),
        ("__global__ void f(const float *a, float *out) { out[0] = a.size; }", "their number as an argument"),
        ("__global__ void f(float *a, float s) {\n  a[0] = s ** a[1];\n}", "powf(a, b)"),
        ("__global__ void f(const float *a) {\n  a[0] = 1;\n}", "may only be read"),
        ("__global__ void f(float *a) {\n  int i = 0\n  a[i] = 1;\n}", "missing before this line"),
        ("__global__ void f(float4 *v, float s) { *v = s * *v; }", "the members x, y, z, w"),
        ("__global__ void f(float2 *v) { v[0] += v[1]; }", "the members x, y, z, w"),
        (
            "#include <mma.h>\nusing namespace nvcuda::wmma;\n__global__ void f(half *d) {\n"
            "  fragment<matrix_a, 16, 16, 16, half, row_major> a;\n"
            "  fragment<matrix_b, 16, 16, 16, half, row_major> b;\n"
            "  fragment<accumulator, 16, 16, 16, half> sum;\n  mma_sync(sum, b, a, sum);\n}",
            "mma_sync(sum, fa, fb, sum)",
        ),
    ],
)
def test_common_mistakes_get_a_hint(source, hint):
    with pytest.raises(CompileError, match=re.escape(hint)):
        compile_cuda(source)


def test_a_missing_nvrtc_is_reported_with_the_doctor(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    monkeypatch.delattr("cuda.bindings.nvrtc", raising=False)
    with pytest.raises(errors.CompilerNotFound, match="doctor"):
        compile_cuda('extern "C" __global__ void never_compiled_before() {}')
