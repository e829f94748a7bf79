"""Recursive functions: their values, memory of their own in each activation, the call stack's end."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.ptx.recursion import STACK_BYTES

KERNELS = r"""
#define KERNEL extern "C" __global__ void
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KERNEL k_fib(int* out) { out[threadIdx.x] = fib(threadIdx.x) + fib(2); }

__device__ int even(int n);
__device__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
KERNEL k_odd(int* out) { out[threadIdx.x] = odd(threadIdx.x); }

__device__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL k_ackermann(int* out) { out[threadIdx.x] = ackermann(threadIdx.x / 4, threadIdx.x % 4); }
KERNEL k_deep(int* out, int n) { if (threadIdx.x == 5) out[0] = ackermann(1, n); }

__device__ void sort(int* a, int low, int high) {
    if (low >= high) return;
    int pivot = a[high], i = low;
    for (int j = low; j < high; j++) if (a[j] < pivot) { int t = a[i]; a[i] = a[j]; a[j] = t; i++; }
    int t = a[i]; a[i] = a[high]; a[high] = t;
    sort(a, low, i - 1);
    sort(a, i + 1, high);
}
KERNEL k_sort(int* a, int n) { sort(a + n * threadIdx.x, 0, n - 1); }

struct Six { int v[6]; };
__device__ Six mix(Six s, int depth, int k) {
    if (depth == 0) return s;
    Six c = s;
    c.v[(depth + k) % 6] += depth;
    Six r = mix(c, depth - 1, k);
    int own[4];
    for (int i = 0; i < 4; i++) own[(i + k) % 4] = r.v[i] + depth;
    r.v[5] += own[(depth + k) % 4];
    return r;
}
KERNEL k_mix(int* out, int k) {
    Six s;
    for (int i = 0; i < 6; i++) s.v[i] = i * threadIdx.x;
    Six r = mix(s, 5, k);
    for (int i = 0; i < 6; i++) out[threadIdx.x * 6 + i] = r.v[i];
}

__device__ void fill(int* above, int depth, int k) {
    int own[3];
    for (int i = 0; i < 3; i++) own[i] = above[i] + depth;
    if (depth > 0) fill(own, depth - 1, k);
    above[k] += own[(k + 1) % 3];
}
KERNEL k_fill(int* out, int depth) {
    int own[3] = {1, 2, 3};
    fill(own, depth, threadIdx.x);
    out[threadIdx.x] = own[threadIdx.x];
}

typedef int (*Function)(int);
__device__ int down(int n);
__device__ int twice(int n) { return 2 * n; }
__device__ Function table[2] = {down, twice};
__device__ int down(int n) { return n <= 0 ? 0 : 1 + table[n % 3 == 0](n - 1); }
KERNEL k_pointer(int* out) { out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x); }

__device__ double wide(double x, bool up, short n) {
    bool odd = n & 1;
    double y = n > 0 ? wide(x * 0.5, !up, n - 1) + wide(x + 1, odd, n - 2) : x;
    return odd ? y + (up ? 1 : 0.25) : y - x;
}
KERNEL k_wide(double* out) { out[threadIdx.x] = wide(threadIdx.x, threadIdx.x & 2, threadIdx.x % 7); }

__device__ int warp_total(int v, int k) {
    return k == 0 ? v : warp_total(v + __shfl_xor_sync(0xffffffff, v, k), k / 2) + fib(k % 2);
}
KERNEL k_warp(int* out) { out[threadIdx.x] = warp_total(threadIdx.x, 16); }
"""


def run(name: str, threads: int, *args):
    return simulate(CudaSource(KERNELS, name), 1, threads, args)


def ints(n: int) -> np.ndarray:
    return np.zeros(n, "i4")


@functools.cache
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.cache
def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def test_one_function_and_two_that_call_each_other():
    out = ints(40)
    run("k_fib", 14, out)
    assert out.tolist() == [fib(n) + 1 for n in range(14)] + [0] * 26
    run("k_odd", 40, out)
    assert out.tolist() == [0, 1] * 20
    out = ints(12)
    run("k_ackermann", 12, out)
    assert out.tolist() == [ackermann(n // 4, n % 4) for n in range(12)]


def test_a_sort_in_each_thread():
    rows = np.random.default_rng(1).integers(0, 100, (40, 17)).astype("i4")
    a = rows.reshape(-1).copy()
    profile = run("k_sort", 40, a, np.int32(17))
    np.testing.assert_array_equal(a.reshape(40, 17), np.sort(rows, 1))
    assert profile.counts.local_store_requests > 0  # the call stack's


def test_each_activation_has_its_own_arrays_structs_and_registers():
    def mix(s, depth, k):
        if depth == 0:
            return list(s)
        c = list(s)
        c[(depth + k) % 6] += depth
        r = mix(c, depth - 1, k)
        own = [0] * 4
        for i in range(4):
            own[(i + k) % 4] = r[i] + depth
        r[5] += own[(depth + k) % 4]
        return r

    out = ints(48)
    run("k_mix", 8, out, np.int32(3))
    assert out.reshape(8, 6).tolist() == [mix([i * t for i in range(6)], 5, 3) for t in range(8)]

    def fill(above, depth, k):
        own = [value + depth for value in above]
        if depth > 0:
            fill(own, depth - 1, k)
        above[k] += own[(k + 1) % 3]

    expected = []
    for k in range(3):
        own = [1, 2, 3]
        fill(own, 4, k)
        expected.append(own[k])
    out = ints(3)
    run("k_fill", 3, out, np.int32(4))
    assert out.tolist() == expected

    def wide(x, up, n):
        odd = bool(n & 1)
        y = wide(x * 0.5, not up, n - 1) + wide(x + 1, odd, n - 2) if n > 0 else x
        return y + (1 if up else 0.25) if odd else y - x

    out = np.zeros(30)
    run("k_wide", 30, out)
    np.testing.assert_array_equal(out, [wide(float(t), bool(t & 2), t % 7) for t in range(30)])


def test_recursion_through_pointers():
    def down(n):
        return 0 if n <= 0 else 1 + (2 * (n - 1) if n % 3 == 0 else down(n - 1))

    out = ints(20)
    run("k_pointer", 20, out)
    assert out.tolist() == [2 * t if t & 1 else down(t) for t in range(20)]


def test_recursion_that_this_kernel_does_not_use():
    """What belongs to another kernel of the module changes nothing."""
    code = """
    __device__ __noinline__ int square(int n) { int s = 0; for (int i = 0; i < n; i++) s += n; return s; }
    __device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    extern "C" __global__ void squares(int* out) { out[threadIdx.x] = square(square(threadIdx.x)); }
    extern "C" __global__ void fibs(int* out) { out[threadIdx.x] = fib(square(threadIdx.x)); }
    """
    out = ints(4)
    simulate(CudaSource(code, "squares"), 1, 4, (out,))
    assert out.tolist() == [0, 1, 16, 81]
    simulate(CudaSource(code, "fibs"), 1, 4, (out,))
    assert out.tolist() == [fib(n * n) for n in range(4)]


def test_a_shuffle_in_a_recursive_function():
    out = ints(32)
    run("k_warp", 32, out)
    assert out.tolist() == [31 * 16 + 1] * 32


@cuda.jit
def numba_fib(n):
    if n < 2:
        return n
    return numba_fib(n - 1) + numba_fib(n - 2)


@cuda.jit
def numba_kernel(out):
    i = cuda.grid(1)
    out[i] = numba_fib(i)


def test_recursion_in_numba():
    out = np.zeros(14, "i8")
    numba_kernel[1, 14](out)
    assert out.tolist() == [fib(n) for n in range(14)]


def test_the_end_of_the_call_stack():
    out = ints(1)
    run("k_deep", 32, out, np.int32(100))
    assert out[0] == 102
    with pytest.raises(
        simulator.SimulatorError, match=r"call stack overflow: the thread is ([\d,]+) calls deep"
    ) as caught:
        run("k_deep", 32, out, np.int32(5000))
    assert caught.value.thread == (5, 0, 0)
    depth = int(str(caught.value).split(" calls deep")[0].rsplit(" ", 1)[1].replace(",", ""))
    assert 32 <= STACK_BYTES / depth < 512  # bytes of a frame
    assert depth < 5000
