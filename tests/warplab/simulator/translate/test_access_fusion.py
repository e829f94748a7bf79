"""Shared-memory accesses that `ptxas` fuses, counted as in the machine code.

Expected: the LDS instructions that NVRTC 13.0 makes of each kernel for sm_90, read with cuobjdump.
"""

from __future__ import annotations

import numpy as np
import pytest

from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

_ONE_ARRAY = """
extern "C" __global__ void kernel(float *o) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = o[t];
    __syncthreads();
    o[t] = EXPRESSION;
}
"""
_BEFORE = """
extern "C" __global__ void kernel(float *o) {
    ARRAYS
    int t = threadIdx.x;
    a[t] = o[t + 5], s[t] = o[t];
    __syncthreads();
    o[t] = s[4 * t] * s[4 * t + 1] + s[4 * t + 2] * s[4 * t + 3] + a[31 - t];
}
"""
_SMALL = """
extern "C" __global__ void kernel(float *o) {
    __shared__ float a[3], b[8], c[5], d[4];
    int t = threadIdx.x;
    if (t < 3) a[t] = o[t];
    if (t < 8) b[t] = o[t + 3];
    if (t < 5) c[t] = o[t + 20];
    if (t < 4) d[t] = o[t + 30];
    __syncthreads();
    o[t] = a[0] + a[1] + a[2] + b[0] + b[1] * b[2] + b[3] * 3 + b[4] + b[5] + b[6] + b[7] + c[0] + c[1] + c[2] * c[3]
         + c[4] + d[0] + d[1] + d[2] + d[3];
}
"""
_MIXED = """
extern "C" __global__ void kernel(float *o) {
    __shared__ float b[4];
    __shared__ double g;
    __shared__ float c[4];
    __shared__ int x;
    int t = threadIdx.x;
    if (t < 4) b[t] = o[t + 3], c[t] = o[t + 20];
    if (t == 0) g = o[9], x = o[8];
    __syncthreads();
    o[t] = b[0] + b[1] * b[2] + b[3] * 3 + c[0] + c[1] + c[2] * c[3] + g + x;
}
"""


def loads(source):
    x = np.ones(100, np.float32)
    return simulate(CudaSource(source, "kernel"), 1, 16, (x,), checks=False).counts.shared_load_requests


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("s[0] * s[1]", 1),
        ("s[1] * s[2]", 2),  # not at a multiple of 8
        ("s[0] * s[2]", 2),
        ("s[0] * s[1] + s[2]", 1),
        ("s[0] * s[1] + s[3]", 1),
        ("s[0] * s[2] + s[3]", 1),
        ("s[1] * s[2] + s[3]", 1),
        ("s[4 * t + 1] * s[4 * t + 2] + s[4 * t + 3]", 1),
    ],
)
def test_neighbouring_words(expression, expected):
    assert loads(_ONE_ARRAY.replace("EXPRESSION", expression)) == expected


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ("__shared__ float a[33]; __shared__ float s[64];", 5),  # s begins at 132
        ("__shared__ float a[34]; __shared__ float s[64];", 4),  # at 136
        ("__shared__ float s[64]; __shared__ double a[34];", 3),  # at 0
    ],
)
def test_variables_lie_one_after_another_at_their_alignment(arrays, expected):
    assert loads(_BEFORE.replace("ARRAYS", arrays)) == expected


@pytest.mark.parametrize(("source", "expected"), [(_SMALL, 5), (_MIXED, 4)])
def test_words_of_several_variables_are_loaded_together(source, expected):
    assert loads(source) == expected
