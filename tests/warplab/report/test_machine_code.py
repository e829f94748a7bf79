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


CALLS = """
__device__ float inverse(float x) {
    return 1.0f / x;
}
__device__ __noinline__ float polynomial(float x) {
    return (x * x + 0.5f) * x;
}
extern "C" __global__ void roots(const float *x, float *y) {
    float a = x[threadIdx.x];
    y[threadIdx.x] = sqrtf(a);
    y[threadIdx.x + 32] = inverse(a + 1);
    y[threadIdx.x + 64] = polynomial(a);
}
"""


@pytest.fixture(scope="module")
def roots():
    return sass(CudaSource(CALLS, "roots", file="roots.cu"))


def by_line(code):
    return {row[0]: row for row in code.by_line.rows}


def test_a_slow_path_stands_at_the_line_that_needs_it(roots):
    inside = {row.inside: row.line for row in roots.instructions if "slowpath" in row.inside}
    assert {("sqrt" in name, line) for name, line in inside.items()} == {(True, 10), (False, 3)}
    assert "slow path of a square root, called from line 10:" in str(roots)
    assert "slow path of a square root, called from line 10:" in roots._repr_html_()
    lines = by_line(roots)
    slow = sum("sqrt" in row.inside for row in roots.instructions)
    assert f"{slow} more in the slow path of a square root" in lines["10"][3]
    assert int(lines["10"][1]) < slow  # the line's own instructions alone


def test_an_inlined_function_says_where_it_was_called(roots):
    (row,) = [row for row in roots.instructions if row.opcode == "MUFU.RCP" and not row.inside]
    assert (row.line, [line for _, line in row.callers]) == (3, [11])
    assert "inlined in line 11" in by_line(roots)["3"][3]
    assert "3 in 11  return 1.0f / x;" in str(roots)


def test_a_function_that_is_called_has_its_name_and_its_own_lines(roots):
    assert {row.line for row in roots.instructions if row.inside.endswith("polynomialf")} >= {6}
    assert "polynomial(), called from line 12:" in str(roots)
    assert "calls polynomial()" in by_line(roots)["12"][3]


def test_the_overview_says_what_each_line_became():
    assert "8 × global load of 32 bits, 8 × FADD" in by_line(sass(kernel("unrolled")))["7"][3]
    assert "jump back: a loop" in by_line(sass(kernel("rolled")))["13"][3]
    assert by_line(sass(kernel("four")))["3"][3] == "global load of 128 bits, global store of 128 bits"
    spilled = sass(kernel("spilled")).by_line.rows
    assert any("spill store of" in what for *_, what in spilled)
    assert any("spill load of" in what for *_, what in spilled)
    assert sum(int(number) for _, number, *_ in spilled) == len(sass(kernel("spilled")))


def test_predicated_instructions_are_counted_without_exits_and_branches():
    code = """extern "C" __global__ void k(const float *x, float *y, int n) {
    if (threadIdx.x >= n) return;
    float a = x[threadIdx.x];
    if (a > 0) a = a * 3 + 1;
    y[threadIdx.x] = a;
}"""
    found = by_line(sass(CudaSource(code, "k", file="k.cu")))
    assert "predicated" in found["4"][3]
    assert "predicated" not in found["2"][3]
