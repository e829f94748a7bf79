"""`sass`: machine code beside the source, of kernels in either language and of launches."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import CudaSource, cuda, profile
from warplab.report.machine_code import sass

COPIES = """
extern "C" __global__ void one(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void four(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void unrolled(const float *x, float *y) {
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) sum += x[i];
    *y = sum;
}
extern "C" __global__ void rolled(const float *x, float *y) {
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < 8; i++) sum += x[i];
    *y = sum;
}
extern "C" __global__ void __launch_bounds__(1024, 2) spilled(const float *x, float *y) {
    float v[64];
    for (int i = 0; i < 64; i++) v[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; i++) y[i * 1024 + threadIdx.x] = v[63 - i] * v[i];
}
template <typename T> __global__ void scaled(T *x) { x[threadIdx.x] *= T(2); }
"""


def kernel(name):
    return CudaSource(COPIES, name, file="copies.cu")


@cuda.jit
def total(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * 2


def test_vector_loads_are_seen():
    assert dict(sass(kernel("one")).accesses) == {("global", "load", 32): 1, ("global", "store", 32): 1}
    assert dict(sass(kernel("four")).accesses) == {("global", "load", 128): 1, ("global", "store", 128): 1}


def test_an_unrolled_loop_has_no_jump_backwards():
    rolled, unrolled = sass(kernel("rolled")), sass(kernel("unrolled"))
    assert (rolled.loops, unrolled.loops) == (1, 0)
    assert (rolled.accesses["global", "load", 32], unrolled.accesses["global", "load", 32]) == (1, 8)
    assert (rolled.opcodes["FADD"], unrolled.opcodes["FADD"]) == (1, 8)


def test_spills_are_loads_and_stores_of_local_memory():
    code = sass(kernel("spilled"))
    assert code.resources.spill_bytes > 0
    assert code.accesses["local", "store", 32] > 0
    assert "bytes of spills" in code.summary()


def test_a_template_is_found_by_its_name():
    code = sass(kernel("scaled<double>"))
    assert code.kernel == "scaled<double>"
    assert code.opcodes["DADD"] + code.opcodes["DMUL"] == 1


def test_a_listing_has_source_line_and_instruction():
    code = sass(kernel("one"))
    listing, html = str(code), code._repr_html_()
    for text in (listing, html):
        assert "y[threadIdx.x] = x[threadIdx.x];" in text
        assert "LDG.E" in text
        assert "one for sm_90: " in text
    assert len(listing.splitlines()) > len(code)


def test_names_in_a_listing_are_inert():
    """A source line is whatever a learner wrote."""
    code = CudaSource('extern "C" __global__ void k(int *x) { x[0] = 1; } // <script>alert(1)</script>', "k")
    assert "<script>" not in sass(code)._repr_html_()


def test_a_numba_kernel_needs_arguments_and_a_launch_none():
    a, out = cuda.to_device(np.ones(40, np.float32)), cuda.device_array(40, np.float32)
    by_arguments = sass(total, a, out)
    with profile() as p:
        total[2, 32](a, out)
    by_launch = sass(p)
    assert by_launch.instructions == by_arguments.instructions
    assert [row.text for row in sass(p[0]).instructions] == [row.text for row in by_arguments.instructions]
    assert any("out[i] = a[i] * 2" in line for line in str(by_launch).splitlines())
    doubles = sass(total, cuda.to_device(np.ones(40)), cuda.device_array(40))
    assert ("global", "load", 64) in doubles.accesses


def test_a_card_has_its_own_machine_code():
    on_t4, on_h100 = sass(kernel("one"), card="T4"), sass(kernel("one"), card="H100")
    assert (on_t4.arch, on_h100.arch) == (75, 90)
    assert [row.text for row in on_t4.instructions] != [row.text for row in on_h100.instructions]
    assert "the oldest that CUDA 13 knows" in str(sass(kernel("one"), card="P100"))


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError):
        sass(lambda x: x)
    with pytest.raises(ValueError, match="card"):
        sass(kernel("one"), card="H1000")
