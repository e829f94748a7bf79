"""Device functions, pointers to functions and parameters, scopes of PTX names, jumps by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ptx_harness import get, put
from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.ptx.inlining import readable

CALLS = """
#define KERNEL extern "C" __global__ void
#define APART __noinline__ __device__
struct Mixed { int a[7]; float f; double d; };
struct Triple { float x, y, z; };
struct Table { int a[64]; };

APART float steps(float x, int n) { for (int i = 0; i < n; i++) x = x * 0.5f + 1; return x; }
APART float nested(float x) { if (x > 3) return steps(x, 3); return steps(x, 5) + steps(x + 1, 2); }
APART int early(int x) { if (x < 5) return -1; if (x % 3 == 0) return x * x; return x; }
APART Mixed change(Mixed s, int k) { s.a[k] = 3; s.f += s.d; return s; }
APART Triple turn(Triple t) { return {t.y, t.z, t.x}; }
APART bool small_types(bool a, short b, unsigned char c, signed char d) { return a && b > c && d < 0; }
APART double wide(double x, long long n) { return x * n; }
APART void through_pointer(int* p, int v) { *p = v; p[1] = v + 1; }
APART int looked_up(Table t, int k) { return t.a[k]; }
APART int neighbour(int i) { __shared__ int s[64]; s[i] = i; __syncthreads(); return s[i ^ 1]; }
APART int own_array(int n, int k) { int x[8]; for (int i = 0; i < 8; i++) x[i] = n * i; return x[k]; }
APART int own_arrays(int n, int k) {
    int x[8];
    for (int i = 0; i < 8; i++) x[i] = n + i;
    return x[k] + own_array(n, k);
}
APART int warp_total(int v) { for (int k = 16; k; k /= 2) v += __shfl_xor_sync(0xffffffff, v, k); return v; }
APART void stop(int i) { if (i % 2) asm volatile("exit;"); }
__device__ int square(int x) { return x * x; }
__device__ int triple(int x) { return x * 3; }
typedef int (*Function)(int);
__device__ Function table[2] = {square, triple};
struct Shape { __device__ virtual int area(int x) { return x; } };
struct Square : Shape { __device__ int area(int x) override { return x * x; } };
APART Shape* choose(Shape* a, Shape* b, int k) { return k ? a : b; }

KERNEL k_nested(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = nested(x[i]);
}
KERNEL k_loop(int* out, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += early(i + threadIdx.x);
    out[threadIdx.x] = s;
}
KERNEL k_struct(Mixed s, int k, float* f, int* a) {
    Mixed r = change(s, k);
    f[0] = r.f; f[1] = r.d;
    for (int i = 0; i < 7; i++) a[i] = r.a[i];
}
KERNEL k_triple(Triple t, float* out) { Triple r = turn(turn(t)); out[0] = r.x; out[1] = r.y; out[2] = r.z; }
KERNEL k_small(const short* b, int* out) { int i = threadIdx.x; out[i] = small_types(i & 1, b[i], b[i], -b[i]); }
KERNEL k_wide(double* x) { x[threadIdx.x] = wide(x[threadIdx.x], 1ll << 33); }
KERNEL k_pointer(int* out) { int x[2]; through_pointer(x, 5); through_pointer(out, x[0] + x[1]); }
KERNEL k_by_value(int* out, Table t, int k) { out[threadIdx.x] = looked_up(t, k + threadIdx.x); }
KERNEL k_constant(int* out, const __grid_constant__ Table t, int k) {
    const int* p = t.a + k;
    out[threadIdx.x] = t.a[threadIdx.x + k] - p[threadIdx.x] + p[out[threadIdx.x]];
}
KERNEL k_neighbour(int* out) { out[threadIdx.x] = neighbour(threadIdx.x); }
KERNEL k_arrays(int* out) { out[threadIdx.x] = own_arrays(threadIdx.x, threadIdx.x % 8) + own_array(1, 2); }
KERNEL k_warp(const int* x, int* out) { out[threadIdx.x] = warp_total(x[threadIdx.x]); }
KERNEL k_stop(int* out) { stop(threadIdx.x); out[threadIdx.x] = 1; }
KERNEL k_table(int* out, int k) { int i = threadIdx.x; out[i] = table[(i + k) % 2](i + 10); }
KERNEL k_chosen(int* out, int k) { Function f = threadIdx.x >= k ? square : triple; out[threadIdx.x] = f(threadIdx.x); }
KERNEL k_virtual(int* out) {
    Shape line; Square square;
    out[threadIdx.x] = choose(&line, &square, threadIdx.x & 1)->area(threadIdx.x + 5);
}
KERNEL k_null(Function* f, int* out) { out[0] = f[0](3); }
extern "C" __device__ void* alloca(size_t);
KERNEL k_alloca(int* out) { int* p = (int*)alloca(4 * out[0]); p[0] = 1; out[1] = p[out[2]]; }
KERNEL k_wrong(int* out) { through_pointer(out + 1, 4); }
"""


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(CALLS, name), grid, block, args, **options)


def line_of(text: str) -> int:
    return next(k for k, line in enumerate(CALLS.splitlines(), 1) if text in line)


def ints(n) -> np.ndarray:
    return np.zeros(n, "i4")


# -- device functions ----------------------------------------------------------------------------------------------


def steps(x: np.float32, n: int) -> np.float32:
    for _ in range(n):
        x = np.float32(x * np.float32(0.5) + 1)
    return x


def test_nested_calls_on_divergent_lanes():
    x, out = np.random.default_rng(0).uniform(0, 6, 100).astype("f4"), np.zeros(100, "f4")
    profile = run("k_nested", 4, 32, x, out, np.int32(100))
    expected = [steps(v, 3) if v > 3 else steps(v, 5) + steps(np.float32(v + 1), 2) for v in x]
    np.testing.assert_array_equal(out, np.array(expected, "f4"))
    lines = {line for _, line in profile.lines}
    assert {line_of("APART float steps"), line_of("APART float nested"), line_of("out[i] = nested")} <= lines


def test_early_returns_and_calls_in_a_loop():
    out = ints(40)
    run("k_loop", 1, 40, out, np.int32(9))
    early = [-1 if x < 5 else x * x if x % 3 == 0 else x for x in range(60)]
    np.testing.assert_array_equal(out, [sum(early[i : i + 9]) for i in range(40)])


def test_structs_by_value():
    mixed = np.zeros(1, np.dtype([("a", "i4", 7), ("f", "f4"), ("d", "f8")], align=True))[0]
    mixed["a"], mixed["f"], mixed["d"] = np.arange(7), 2.5, 10
    f, a = np.zeros(2, "f4"), ints(7)
    run("k_struct", 1, 1, mixed, np.int32(4), f, a)
    assert f.tolist() == [12.5, 10]
    assert a.tolist() == [0, 1, 2, 3, 3, 5, 6]
    triple = np.zeros(1, np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")]))[0]
    triple["x"], triple["y"], triple["z"] = 1, 2, 3
    out = np.zeros(3, "f4")
    run("k_triple", 1, 1, triple, out)
    assert out.tolist() == [3, 1, 2]


def test_narrow_and_wide_arguments():
    b = np.array([1, 300, -3, -200, 0, 40, 77, 255], "i2")
    out = ints(8)
    run("k_small", 1, 8, b, out)
    byte = b.astype("u1").astype(int)
    np.testing.assert_array_equal(out, (np.arange(8) % 2 == 1) & (b > byte) & ((-b).astype("i1") < 0))
    x = np.array([1.5, -2.25])
    run("k_wide", 1, 2, x)
    assert x.tolist() == [1.5 * 2**33, -2.25 * 2**33]


def test_pointers_to_arrays_of_the_caller():
    out = ints(2)
    run("k_pointer", 1, 1, out)
    assert out.tolist() == [11, 12]


def test_structs_indexed_at_run_time():
    table = np.zeros(1, np.dtype([("a", "i4", 64)]))[0]
    table["a"] = np.random.default_rng(1).integers(0, 999, 64)
    out = ints(40)
    run("k_by_value", 1, 40, out, table, np.int32(7))
    np.testing.assert_array_equal(out, table["a"][7:47])
    out = np.arange(20, dtype="i4")[::-1].copy()
    run("k_constant", 1, 20, out, table, np.int32(30))
    np.testing.assert_array_equal(out, table["a"][30:50][::-1])
    with pytest.raises(simulator.IllegalAddress, match="past the end of array `kernel parameters`"):
        run("k_constant", 1, 1, np.array([50], "i4"), table, np.int32(30))
    assert not [a for a in simulator.default_device().memory._allocations if a.name == "kernel parameters"]


def test_memory_of_functions():
    out = ints(64)
    run("k_neighbour", 1, 64, out)
    np.testing.assert_array_equal(out, np.arange(64) ^ 1)
    out = ints(33)
    run("k_arrays", 1, 33, out)
    i = np.arange(33)
    np.testing.assert_array_equal(out, i + i % 8 + i * (i % 8) + 2)


def test_warp_wide_instructions_and_exit_in_functions():
    x, out = np.arange(64, dtype="i4"), ints(64)
    run("k_warp", 1, 64, x, out)
    np.testing.assert_array_equal(out, np.repeat(x.reshape(2, 32).sum(1), 32))
    out = ints(8)
    run("k_stop", 1, 8, out)
    assert out.tolist() == [1, 0] * 4


def test_an_error_in_a_function_names_its_line():
    with pytest.raises(simulator.IllegalAddress) as caught:
        run("k_wrong", 1, 1, ints(2))
    assert caught.value.line == line_of("APART void through_pointer")


def test_pointers_to_functions():
    out = ints(8)
    run("k_table", 1, 8, out, np.int32(1))
    assert out.tolist() == [f(i + 10) for i, f in enumerate([lambda x: 3 * x, lambda x: x * x] * 4)]
    run("k_chosen", 1, 8, out, np.int32(3))
    assert out.tolist() == [3 * i if i < 3 else i * i for i in range(8)]
    run("k_virtual", 1, 8, out)
    assert out.tolist() == [i + 5 if i & 1 else (i + 5) ** 2 for i in range(8)]
    with pytest.raises(simulator.SimulatorError, match="call through a pointer that holds no function"):
        run("k_null", 1, 1, np.zeros(1, "u8").view("u1"), out)


def test_what_is_refused():
    with pytest.raises(simulator.UnsupportedInstruction, match="a size known only at run time"):
        run("k_alloca", 1, 1, np.ones(3, "i4"))


def test_names_as_a_reader_knows_them():
    assert readable("_Z3fibi") == "fib"
    assert readable("_ZNK5model6Square4areaEi") == "model::Square::area"
    assert readable("__internal_accurate_pow") == "__internal_accurate_pow"


MATHS = """
extern "C" __global__ void doubles(const double* x, double* out) {
    int i = threadIdx.x, n = blockDim.x;
    double v = x[i];
    out[i] = sin(v); out[i + n] = pow(fabs(v), 1.37); out[i + 2 * n] = exp(v / 1e8); out[i + 3 * n] = log(fabs(v));
    out[i + 4 * n] = 1 / v; out[i + 5 * n] = sqrt(fabs(v)); out[i + 6 * n] = fmod(v, 3.7); out[i + 7 * n] = erf(v);
}
extern "C" __global__ void floats(const float* x, float* out) {
    int i = threadIdx.x, n = blockDim.x;
    float v = x[i];
    out[i] = sinf(v); out[i + n] = powf(fabsf(v), 1.37f); out[i + 2 * n] = expf(v / 1e8f);
    out[i + 3 * n] = logf(fabsf(v)); out[i + 4 * n] = 1 / v; out[i + 5 * n] = sqrtf(fabsf(v));
    out[i + 6 * n] = fmodf(v, 3.7f); out[i + 7 * n] = tanhf(v);
}
"""


@pytest.mark.parametrize(("name", "dtype", "last"), [("doubles", "f8", math.erf), ("floats", "f4", math.tanh)])
def test_maths_by_way_of_slow_paths(name, dtype, last):
    """Large arguments take the slow path of the trigonometric reduction; pow calls a helper."""
    x = np.random.default_rng(2).uniform(-50, 50, 128)
    x[::3] *= 1e7
    x = x.astype(dtype)
    out = np.zeros((8, 128), dtype)
    simulate(CudaSource(MATHS, name), 1, 128, (x, out.reshape(-1)))
    v = x.astype("f8")
    power, divisor = (float(np.array(c, dtype)) for c in (1.37, 3.7))
    expected = [
        np.sin(v),
        np.abs(v) ** power,
        np.exp((x / np.array(1e8, dtype)).astype("f8")),
        np.log(np.abs(v)),
        1 / v,
        np.sqrt(np.abs(v)),
        np.fmod(v, divisor),
        [last(a) for a in v],
    ]
    ulps = 4 if dtype == "f4" else 3  # CUDA C++ Programming Guide, "Mathematical Functions": at most 4 and 2
    for row, values in zip(out, expected, strict=True):
        np.testing.assert_array_max_ulp(row, np.array(values).astype(dtype), ulps)


@cuda.jit(device=True)
def numba_sums(a, n):
    total = 0.0
    for k in range(n):
        total += a * k
    return total, a + n


@cuda.jit(opt=False)  # without optimisation Numba calls its functions instead of inlining them
def numba_calls(x, n):
    i = cuda.grid(1)
    if i < n:
        total, shifted = numba_sums(x[i], i)
        x[i] = total + shifted


@cuda.jit
def numba_maths(x, out):
    i = cuda.grid(1)
    out[i] = math.sin(x[i]) + math.pow(abs(x[i]), 1.5) + math.exp(x[i] / 9) + math.erf(x[i]) + math.lgamma(x[i])


def test_numba_device_functions():
    x = np.arange(10.0) + 1
    expected = [v * sum(range(i)) + v + i for i, v in enumerate(x)]
    numba_calls[1, 16](x, 10)
    np.testing.assert_array_equal(x, expected)


def test_numba_maths():
    x, out = np.random.default_rng(3).normal(size=64) * 10, np.zeros(64)
    numba_maths[1, 64](x, out)
    expected = [math.sin(v) + abs(v) ** 1.5 + math.exp(v / 9) + math.erf(v) + math.lgamma(v) for v in x]
    np.testing.assert_allclose(out, expected, rtol=1e-14)


# -- PTX by hand ---------------------------------------------------------------------------------------------------

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def launch(ptx: str, n: int, threads: int = 1) -> np.ndarray:
    """What kernel `k(out)` leaves in `n` uint32."""
    device = simulator.Device(64 << 20)
    out = put(device, np.zeros(n, "u4"), "out")
    entry = simulator.load(HEADER + ptx).entries["k"]
    device.launch(entry, (1,), (threads,), [out.to_bytes(8, "little")])
    return get(device, out, n, "u4")


def test_parts_of_parameters_that_overlap():
    out = launch(
        """
        .func (.param .align 8 .b8 r[8]) f (.param .align 8 .b8 p[16]) {
            .reg .b32 %r<4>; .reg .b16 %h; .reg .b64 %d, %a;
            ld.param.u8 %r0, [p+1];            // a byte of a stored word
            ld.param.b64 %d, [p+8];            // two stored words
            mov.b64 %a, p;
            ld.param.u16 %h, [%a+2];           // through a pointer
            cvt.u32.u16 %r1, %h;
            shl.b32 %r1, %r1, 8;
            or.b32 %r0, %r0, %r1;
            st.param.b32 [r], %r0;
            cvt.u32.u64 %r2, %d;
            shr.u64 %d, %d, 32;
            cvt.u32.u64 %r3, %d;
            sub.u32 %r2, %r3, %r2;
            st.param.b32 [r+4], %r2;
            ret;
        }
        .entry k(.param .u64 out) {
            .reg .b32 %r<8>; .reg .b64 %rd1;
            ld.param.u64 %rd1, [out];
            {
                .param .align 8 .b8 p[16];
                .param .align 8 .b8 r[8];
                st.param.b32 [p], 0x11223344;
                st.param.v2.b32 [p+8], {1000, 1234};
                call (r), f, (p);
                ld.param.v2.b32 {%r1, %r2}, [r];
            }
            st.global.v2.u32 [%rd1], {%r1, %r2};
            ret;
        }""",
        2,
    )
    assert out.tolist() == [0x112233, 234]


def test_guarded_calls_and_returns():
    out = launch(
        """
        .func (.param .b32 r) f (.param .b32 p) {
            .reg .b32 %r<2>; .reg .pred %p;
            ld.param.u32 %r0, [p];
            st.param.b32 [r], 7;
            setp.gt.u32 %p, %r0, 5;
            @%p ret;
            st.param.b32 [r], %r0;
            ret;
        }
        .entry k(.param .u64 out) {
            .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
            ld.param.u64 %rd1, [out];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd2, %r0, 4;
            add.u64 %rd1, %rd1, %rd2;
            setp.ne.u32 %p, %r0, 3;
            {
                .param .b32 p;
                .param .b32 r;
                st.param.b32 [p], %r0;
                st.param.b32 [r], 99;
                @%p call (r), f, (p);
                ld.param.b32 %r1, [r];
            }
            st.global.u32 [%rd1], %r1;
            ret;
        }""",
        8,
        8,
    )
    assert out.tolist() == [0, 1, 2, 99, 4, 5, 7, 7]


def test_scopes_have_names_of_their_own():
    out = launch(
        """
        .entry k(.param .u64 out) {
            .reg .b32 a, %r<3>; .reg .b64 %rd1;
            ld.param.u64 %rd1, [out];
            mov.u32 a, 5;
            { .reg .pred p; .reg .b32 t; mov.u32 t, 0;
            LOOP: add.u32 t, t, a; setp.lt.u32 p, t, 12; @p bra LOOP; mov.u32 %r1, t; }
            { .reg .pred p; .reg .b64 t; mov.u64 t, 100;
            LOOP: sub.u64 t, t, 7; setp.gt.u64 p, t, 50; @!p bra DONE; bra LOOP;
            DONE: cvt.u32.u64 %r2, t; }
            st.global.v2.u32 [%rd1], {%r1, %r2};
            st.global.u32 [%rd1+8], a;
            ret;
        }""",
        3,
    )
    assert out.tolist() == [15, 44, 5]


def test_an_unknown_function_is_named():
    with pytest.raises(simulator.UnsupportedInstruction, match="function elsewhere has no body"):
        launch(".extern .func elsewhere;\n.entry k(.param .u64 out) { call elsewhere; ret; }", 1)


SWITCH = """
.entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
    ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 4;
    add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r1, 50;
    setp.ne.u32 %p, %r0, 7;
    TABLE: .branchtargets ZERO, TWO, ONE, TWO;
    @%p brx.idx %r0, TABLE;
    bra END;
    ZERO: mov.u32 %r1, 10; bra END;
    ONE: mov.u32 %r1, 11;
    TWO: add.u32 %r1, %r1, 2;
    END: st.global.u32 [%rd1], %r1;
    ret;
}"""


def test_jumps_by_number():
    assert launch(SWITCH, 4, 4).tolist() == [10, 52, 13, 52]
    assert launch(SWITCH.replace("%tid.x", "7"), 8)[7] == 50
    with pytest.raises(simulator.SimulatorError, match="beyond its list of labels"):
        launch(SWITCH, 8, 5)
    with pytest.raises(simulator.UnsupportedInstruction, match=r"no \.branchtargets before .*brx\.idx"):
        launch(SWITCH.replace("TABLE:", "OTHER:"), 4)
