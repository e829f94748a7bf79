"""Compare-and-swap: the plain load that begins a loop, with and without optimisation, and 128 bits.

The load is no race, as the swap finds out if its value was out of date. Loads of other places are.
"""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
__device__ float atomic_max(float* a, float v, float* guess) {
    int old = *(int*)guess, seen;
    do {
        seen = old;
        old = atomicCAS((int*)a, seen, __float_as_int(fmaxf(v, __int_as_float(seen))));
    } while (seen != old);
    return __int_as_float(old);
}
KERNEL by_pointer(const float* x, float* m) { float* a = m + I % 3; atomic_max(a, x[I], a); }
KERNEL computed_twice(const float* x, float* m) { atomic_max(m + I % 3, x[I], m + I % 3); }
KERNEL elsewhere(const float* x, float* m) { atomic_max(m + I % 3, x[I], m + (I + 1) % 3); }
KERNEL in_shared(const float* x, float* m) {
    __shared__ float s[3], t[3];
    if (threadIdx.x < 3) s[threadIdx.x] = t[threadIdx.x] = -10;
    __syncthreads();
    atomic_max(&s[1], x[I], &s[1]);
    if (threadIdx.x < 3) atomic_max(&t[threadIdx.x], 0, &t[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < 3) m[threadIdx.x] = s[threadIdx.x];
}
KERNEL other_variable(const float* x, float* m) {
    __shared__ float s, t;
    if (threadIdx.x == 0) s = t = 0;
    __syncthreads();
    atomic_max(&s, x[I], &s);
    atomicMax((int*)&t, 1);
    if (t > 5) m[0] = s;
}
"""
WIDE = """
extern "C" __global__ void sums(unsigned __int128* sum, unsigned __int128* seen) {
    unsigned __int128 old = *sum, before;
    do { before = old; old = atomicCAS(sum, before, before + ((unsigned __int128)threadIdx.x << 64) + 1); }
    while (before != old);
    seen[threadIdx.x] = old;
}
extern "C" __global__ void last(unsigned __int128* place, unsigned __int128* seen) {
    __shared__ unsigned __int128 s;
    if (threadIdx.x == 0) s = *place;
    __syncthreads();
    seen[threadIdx.x] = atomicExch(&s, (unsigned __int128)(threadIdx.x + 1) * 3 << 90);
    __syncthreads();
    if (threadIdx.x == 0) *place = s;
}
extern "C" __global__ void own(unsigned __int128* a) {  // every lane an address of its own
    a[threadIdx.x] = atomicCAS(a + threadIdx.x, (unsigned __int128)threadIdx.x << 70, (unsigned __int128)5) >> 70;
}
"""
OPTIMISED, DEBUG = (), ("-G",)


@pytest.mark.parametrize("options", [OPTIMISED, DEBUG])
@pytest.mark.parametrize("name", ["by_pointer", "computed_twice", "in_shared"])
def test_the_first_guess_is_no_race(name, options):
    x, m = np.random.default_rng(0).normal(size=96).astype("f4"), np.full(3, -10, "f4")
    simulate(CudaSource(SOURCE, name, options), 1, 96, (x, m))
    want = [-10, x.max(), -10] if name == "in_shared" else [x[k::3].max() for k in range(3)]
    np.testing.assert_array_equal(m, want)


@pytest.mark.parametrize("options", [OPTIMISED, DEBUG])
@pytest.mark.parametrize("name", ["elsewhere", "other_variable"])
def test_a_plain_load_of_another_place_is_one(name, options):
    with pytest.raises(simulator.DataRace):
        simulate(CudaSource(SOURCE, name, options), 1, 96, (np.ones(96, "f4"), np.zeros(3, "f4")))


@cuda.jit(opt=False)
def numba_loop(x, m):
    old = m[1]
    while True:
        seen = old
        old = cuda.atomic.cas(m, 1, seen, max(seen, x[cuda.grid(1)]))
        if old == seen:
            break


def test_a_loop_by_numba_without_optimisation():
    x, m = np.random.default_rng(1).integers(0, 999, 64).astype("i4"), np.zeros(2, "i4")
    numba_loop[2, 32](x, m)
    assert m.tolist() == [0, x.max()]


def numbers(bits: np.ndarray) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in bits.view("u8").reshape(-1, 2)]


def wide(name: str, threads: int, *args):
    simulate(CudaSource(WIDE, name, ("--device-int128",)), 1, threads, args)
    return [numbers(a) for a in args]


def test_128_bits():
    (total,), seen = wide("sums", 40, np.zeros(16, "u1"), np.zeros(16 * 40, "u1"))
    assert total == 40 + (sum(range(40)) << 64)
    assert sorted(n & (1 << 64) - 1 for n in seen) == list(range(40))
    start = np.frombuffer((1 << 127 | 5).to_bytes(16, "little"), "u1").copy()
    (last,), seen = wide("last", 33, start, np.zeros(16 * 33, "u1"))
    assert [last, *seen] == [33 * 3 << 90, 1 << 127 | 5, *(3 * k << 90 for k in range(1, 33))]
    values = np.concatenate([np.frombuffer((k // 2 * 2 << 70).to_bytes(16, "little"), "u1") for k in range(32)])
    assert wide("own", 32, values)[0] == [k // 2 * 2 for k in range(32)]
