"""Atomic operations against one lane after another in Python; CAS loops, locks, cuda::atomic_ref, Numba's atomics.

Returned values must be those of some order of the threads. The simulator takes the order of the lanes, so each is
compared exactly.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import atomics

KERNELS = """
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define BOTH(name, type, call) \\
    KERNEL name(type* a, const int* at, const type* v, type* old, int n) { \\
        if (I < n) { type* p = a + at[I]; type x = v[I]; old[I] = call; } } \\
    KERNEL name##_red(type* a, const int* at, const type* v, int n) { \\
        if (I < n) { type* p = a + at[I]; type x = v[I]; call; } } \\
    KERNEL name##_shared(type* a, const int* at, const type* v, type* old, int n) { \\
        __shared__ type s[64]; \\
        if (threadIdx.x < 64) s[threadIdx.x] = a[threadIdx.x]; \\
        __syncthreads(); \\
        if (I < n) { type* p = s + at[I]; type x = v[I]; old[I] = call; } \\
        __syncthreads(); \\
        if (threadIdx.x < 64) a[threadIdx.x] = s[threadIdx.x]; }
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
BOTH(add_s32, int, atomicAdd(p, x))
BOTH(sub_s32, int, atomicSub(p, x))
BOTH(add_u64, u64, atomicAdd(p, x))
BOTH(min_s32, int, atomicMin(p, x))
BOTH(max_u32, u32, atomicMax(p, x))
BOTH(min_s64, s64, atomicMin(p, x))
BOTH(max_s64, s64, atomicMax_system(p, x))
BOTH(and_u32, u32, atomicAnd(p, x))
BOTH(or_u64, u64, atomicOr(p, x))
BOTH(xor_u32, u32, atomicXor_system(p, x))
BOTH(inc_u32, u32, atomicInc(p, x))
BOTH(dec_u32, u32, atomicDec(p, x))
BOTH(exch_s32, int, atomicExch(p, x))
BOTH(exch_u64, u64, atomicExch(p, x))
BOTH(add_f32, float, atomicAdd(p, x))
BOTH(add_f64, double, atomicAdd(p, x))
KERNEL cas_u32(u32* a, const int* at, const u32* c, const u32* v, u32* old, int n) {
    if (I < n) old[I] = atomicCAS(a + at[I], c[I], v[I]); }
KERNEL cas_u64(u64* a, const int* at, const u64* c, const u64* v, u64* old, int n) {
    if (I < n) old[I] = atomicCAS(a + at[I], c[I], v[I]); }
KERNEL cas_u16(unsigned short* a, const int* at, const unsigned short* c, const unsigned short* v,
               unsigned short* old, int n) {
    if (I < n) old[I] = atomicCAS(a + at[I], c[I], v[I]); }
KERNEL ranks(int* counter, int* rank, float* sum, int* extremes) {
    rank[I] = atomicAdd(counter, 1);
    atomicAdd(sum, 0.1f);
    atomicMax(extremes, (int)I);
    atomicMin(extremes + 1, -(int)I);
}
KERNEL every_other(int* counter, int* rank) {
    rank[I] = -1;
    if (I % 3 == 1) rank[I] = atomicAdd(counter, 2);
}
KERNEL histogram(const int* x, int* bins, int n) {
    __shared__ int s[16];
    if (threadIdx.x < 16) s[threadIdx.x] = 0;
    __syncthreads();
    if (I < n) atomicAdd(&s[x[I]], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, s[threadIdx.x]);
}
__device__ float atomic_max(float* a, float v) {
    int old = *(int*)a, seen;  // as in the CUDA C++ Programming Guide, "Atomic Functions"
    do {
        seen = old;
        old = atomicCAS((int*)a, seen, __float_as_int(fmaxf(v, __int_as_float(seen))));
    } while (seen != old);
    return __int_as_float(old);
}
KERNEL cas_loop_shared(const float* x, float* m, int n) {
    __shared__ float s[3];
    if (threadIdx.x < 3) s[threadIdx.x] = m[threadIdx.x];
    __syncthreads();
    if (I < n) atomic_max(s + I % 3, x[I]);
    __syncthreads();
    if (threadIdx.x < 3) m[threadIdx.x] = s[threadIdx.x];
}
KERNEL cas_loop_variable(const float* x, float* m, int n) {
    __shared__ float s;
    if (threadIdx.x == 0) s = m[0];
    __syncthreads();
    if (I < n) atomic_max(&s, x[I]);
    __syncthreads();
    m[0] = s;
}
KERNEL guess_without_cas(const int* x, int* m) { int old = m[0]; if (old < x[I]) atomicMax(m, old + x[I]); }
KERNEL cas_loop(const float* x, float* m, int n) { if (I < n) atomic_max(m + I % 3, x[I]); }
KERNEL lock(int* lock, volatile int* counter) {
    while (atomicCAS(lock, 0, 1) != 0) { }
    __threadfence();
    *counter = *counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}
extern "C" __global__ void past_the_end(int* a, int n) { atomicAdd(a + n + threadIdx.x, 1); }
KERNEL misaligned(char* a) { atomicAdd((int*)(a + 1), 1); }
KERNEL uninitialised(int* a) { __shared__ int s; atomicAdd(&s, 1); __syncthreads(); a[0] = s; }
KERNEL exchanged_first(int* a) { __shared__ int s; atomicExch(&s, 5); __syncthreads(); a[0] = s; }
KERNEL on_the_stack(int* a, int k) { int x[8]; x[k] = 1; atomicAdd(k ? x + k : a, 1); a[0] = x[k]; }
extern "C" __global__ void traced(int* a) { a[16] = atomicAdd(a + threadIdx.x % 4, 1); }
"""
OPERATIONS = {
    "add": lambda old, x: old + x,
    "sub": lambda old, x: old - x,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "inc": lambda old, x: 0 if old >= x else old + 1,
    "dec": lambda old, x: x if old == 0 or old > x else old - 1,
    "exch": lambda old, x: x,
}
DTYPES = {"u16": "u2", "u32": "u4", "s32": "i4", "u64": "u8", "s64": "i8", "f32": "f4", "f64": "f8"}
NAMES = [
    *("add_s32", "sub_s32", "add_u64", "min_s32", "max_u32", "min_s64", "max_s64", "and_u32", "or_u64", "xor_u32"),
    *("inc_u32", "dec_u32", "exch_s32", "exch_u64", "add_f32", "add_f64"),
]


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(KERNELS, name), grid, block, args, **options)


def one_after_another(function, memory, at, *values):
    """Return memory after the lanes, and what each of them found."""
    memory, old = memory.copy(), np.empty(len(at), memory.dtype)
    with np.errstate(over="ignore"):
        for lane, (place, *inputs) in enumerate(zip(at, *values, strict=True)):
            old[lane] = memory[place]
            memory[place] = function(old[lane], *inputs)
    return memory, old


def numbers(random, dtype, n, low=0, high=100):
    if dtype[0] == "f":
        return random.normal(size=n).astype(dtype)
    if low == 0 and high == 100:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    return random.integers(low, high, n).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["", "_shared"])
def test_values_left_and_returned(name, where):
    operation, kind = name.split("_")
    function, dtype = OPERATIONS[operation], DTYPES[kind]
    random = np.random.default_rng(3)
    for n, places in ((1, 1), (33, 1), (200, 3), (256, 64)):  # one address, few, many
        limits = (0, 9) if operation in ("inc", "dec") else (0, 100)
        a, at = numbers(random, dtype, 64, *limits), random.integers(0, places, n).astype("i4")
        v, old = numbers(random, dtype, n, *limits), np.zeros(n, dtype)
        left, found = one_after_another(function, a, at, v)
        run(name + where, 1, 256, a, at, v, old, np.int32(n))
        np.testing.assert_array_equal(old, found, strict=True)
        np.testing.assert_array_equal(a, left, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_returned_value(name):
    operation, kind = name.split("_")
    random = np.random.default_rng(4)
    limits = (0, 9) if operation in ("inc", "dec") else (0, 100)
    a, v = numbers(random, DTYPES[kind], 64, *limits), numbers(random, DTYPES[kind], 300, *limits)
    at = random.integers(0, 64, 300).astype("i4")
    left, _ = one_after_another(OPERATIONS[operation], a, at, v)
    run(name + "_red", 3, 100, a, at, v, np.int32(300))
    np.testing.assert_array_equal(a, left, strict=True)


@pytest.mark.parametrize("kind", ["u16", "u32", "u64"])
def test_compare_and_swap(kind):
    random = np.random.default_rng(5)
    for places, values in ((1, 2), (1, 5), (7, 3), (64, 4)):
        a, at = numbers(random, DTYPES[kind], 64, 0, values), random.integers(0, places, 250).astype("i4")
        c, v = (numbers(random, DTYPES[kind], 250, 0, values) for _ in range(2))
        left, found = one_after_another(lambda old, c, v: v if old == c else old, a, at, c, v)
        old = np.zeros(250, DTYPES[kind])
        run(f"cas_{kind}", 2, 128, a, at, c, v, old, np.int32(250))
        np.testing.assert_array_equal(old, found, strict=True)
        np.testing.assert_array_equal(a, left, strict=True)


def test_a_chain_of_swaps():
    n = 1 << 12
    lanes = np.arange(n, dtype="u4")
    a, old = np.zeros(1, "u4"), np.zeros(n, "u4")
    run("cas_u32", n // 256, 256, a, np.zeros(n, "i4"), lanes, lanes + 1, old, np.int32(n))
    assert a[0] == n
    np.testing.assert_array_equal(old, lanes)


HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define KERNEL extern "C" __global__ void
KERNEL f16(__half* a, const __half* v, __half* old) { int i = threadIdx.x; old[i] = atomicAdd(a + i % 3, v[i]); }
KERNEL bf16(__nv_bfloat16* a, const __nv_bfloat16* v, __nv_bfloat16* old) {
    int i = threadIdx.x; old[i] = atomicAdd(a + i % 3, v[i]); }
KERNEL f16x2(__half2* a, const __half2* v, __half2* old) { int i = threadIdx.x; old[i] = atomicAdd(a + i % 3, v[i]); }
KERNEL bf16x2(__nv_bfloat162* a, const __nv_bfloat162* v, __nv_bfloat162* old) {
    int i = threadIdx.x; old[i] = atomicAdd(a + i % 3, v[i]); }
KERNEL f32x4(float4* a, const float4* v, float4* old) { int i = threadIdx.x; old[i] = atomicAdd(a + i % 3, v[i]); }
"""


def bf16(values) -> np.ndarray:
    """Bits of float64 values rounded to bfloat16, by way of the distances to its neighbours."""
    bits = (np.asarray(values, "f4").view("u4") >> 16).astype("i8")
    near = np.stack([bits + k for k in (-1, 0, 1)]).astype("u4")
    distance = np.abs((near << 16).view("f4").astype("f8") - values)
    distance *= 1 + 1e-9 * (near & 1)  # ties to even
    return np.take_along_axis(near, distance.argmin(0)[None], 0)[0].astype("u2")


def bf16_value(bits) -> np.ndarray:
    return (np.asarray(bits, "u4") << 16).view("f4").astype("f8")


@pytest.mark.parametrize("name", ["f16", "bf16", "f16x2", "bf16x2", "f32x4"])
def test_small_floats_and_vectors(name):
    lanes, parts = 40, int(name[-1]) if "x" in name else 1
    values = np.random.default_rng(6).uniform(0.1, 10, (3 + lanes, parts))
    if name.startswith("b"):
        stored = bf16(values.ravel()).reshape(values.shape)
        add = lambda old, x: bf16(np.array([bf16_value(old) + bf16_value(x)]))[0]  # noqa: E731
    else:
        stored = values.astype("f2" if name.startswith("f16") else "f4")
        add = lambda old, x: old + x  # noqa: E731
    a, v = stored[:3].copy(), stored[3:].copy()
    old, expected, found = np.zeros_like(v), a.copy(), np.zeros_like(v)
    for part in range(parts):
        expected[:, part], found[:, part] = one_after_another(add, a[:, part], np.arange(lanes) % 3, v[:, part])
    simulate(CudaSource(HALVES, name), 1, lanes, tuple(x.reshape(-1).view("u1") for x in (a, v, old)))
    np.testing.assert_array_equal(old, found)
    np.testing.assert_array_equal(a, expected)


def test_float_sums_round_after_every_lane():
    n = 1 << 12
    rank, total, counter = np.zeros(n, "i4"), np.zeros(1, "f4"), np.array([7], "i4")
    run("ranks", n // 256, 256, counter, rank, total, np.zeros(2, "i4"))
    np.testing.assert_array_equal(rank, np.arange(n) + 7)
    assert total[0] == np.add.accumulate(np.full(n, 0.1, "f4"))[-1]
    assert total[0] != np.full(n, 0.1, "f4").sum()  # NumPy's pairwise sum is another number


def test_subnormal_float_sums():
    """PTX ISA, "atom": add.f32 flushes subnormals to zero in global memory and keeps them in shared memory.

    An H200 does so: (2**-126) + (-1.5 * 2**-126) gave -0 in global and 0x80400000 in shared memory.
    """
    tiny = np.float32(2.0**-130)
    for where, expected in (("", 0), ("_shared", 3 * tiny)):
        a, old = np.zeros(64, "f4"), np.zeros(3, "f4")
        run("add_f32" + where, 1, 64, a, np.zeros(3, "i4"), np.full(3, tiny), old, np.int32(3))
        assert a[0] == expected
    # 1 + (2**-125 - 1): the sum of normal numbers may be subnormal, too
    values = np.array([2.0**-126, -1.5 * 2.0**-126, 1], "f4")
    a, old = np.zeros(64, "f4"), np.zeros(3, "f4")
    run("add_f32", 1, 64, a, np.zeros(3, "i4"), values, old, np.int32(3))
    np.testing.assert_array_equal(old, np.array([0, 2.0**-126, 0], "f4"))


@pytest.mark.parametrize("where", ["", "_shared"])
def test_nan_has_one_bit_pattern(where):
    """An H200 leaves 0x7fffffff for each of these sums."""
    a, old = np.array([0x7F812345, 0xFFC00001, 0x3F800000, 0x7F800000], "u4").view("f4"), np.zeros(4, "f4")
    values = np.array([0x3F800000, 0x3F800000, 0x7F812345, 0xFF800000], "u4").view("f4")
    memory = np.zeros(64, "f4")
    memory[:4] = a
    run("add_f32" + where, 1, 64, memory, np.arange(4, dtype="i4"), values, old, np.int32(4))
    assert (memory.view("u4")[:4] == 0x7FFFFFFF).all()
    np.testing.assert_array_equal(old.view("u4"), a.view("u4"))


def test_divergent_lanes_and_partial_warps():
    rank, counter = np.zeros(75, "i4"), np.zeros(1, "i4")
    run("every_other", 3, 25, counter, rank)
    mine = np.arange(75) % 3 == 1
    np.testing.assert_array_equal(rank[mine], 2 * np.arange(mine.sum()))
    assert (rank[~mine] == -1).all()


def test_histogram():
    x, bins = np.random.default_rng(7).integers(0, 16, 3000).astype("i4"), np.zeros(16, "i4")
    profile = run("histogram", 12, 256, x, bins, np.int32(3000))
    np.testing.assert_array_equal(bins, np.bincount(x))
    # 93 whole warps and one of 24 threads in shared memory, one warp a block in global memory.
    assert profile.counts.atomics == 94 + 12


@pytest.mark.parametrize(
    ("name", "blocks", "places"), [("cas_loop", 2, 3), ("cas_loop_shared", 1, 3), ("cas_loop_variable", 1, 1)]
)
def test_cas_loop(name, blocks, places):
    """The plain load before the loop is no race, as the CAS detects whether it was out of date."""
    x, m = np.random.default_rng(8).normal(size=250 * blocks).astype("f4"), np.full(places, -10, "f4")
    run(name, blocks, 256, x, m, np.int32(250 * blocks))
    np.testing.assert_array_equal(m, [x[k::places].max() for k in range(places)])


def test_other_plain_loads_of_what_atomics_write_are_races():
    with pytest.raises(simulator.DataRace):
        run("guess_without_cas", 2, 32, np.arange(64, dtype="i4"), np.zeros(1, "i4"))


def test_spin_lock():
    counter = np.zeros(1, "i4")
    run("lock", 2, 20, np.zeros(1, "i4"), counter)
    assert counter[0] == 40


ATOMIC_REF = """
#include <cuda/atomic>
extern "C" __global__ void refs(int* c, float* f, unsigned char* bytes, short* half, int* seen) {
    int i = threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> counter(*c);
    seen[i] = counter.fetch_add(2, cuda::memory_order_relaxed);
    cuda::atomic_ref<float, cuda::thread_scope_block> most(*f);
    most.fetch_max(float(i));
    cuda::atomic_ref<unsigned char> byte(bytes[i % 3]);  // a CAS loop on the word around it
    byte.fetch_add(1);
    cuda::atomic_ref<short> word(half[i % 2]);
    word.fetch_sub(3);
    int expected = 2 * i;
    cuda::atomic_ref<int> turn(c[1]);
    while (!turn.compare_exchange_weak(expected, 2 * i + 2)) expected = 2 * i;  // one thread after another
}
"""


def test_atomic_ref():
    c, f, seen = np.zeros(2, "i4"), np.zeros(1, "f4"), np.zeros(50, "i4")
    bytes_, half = np.array([250, 0, 0, 77], "u1"), np.array([5, -5], "i2")
    simulate(CudaSource(ATOMIC_REF, "refs"), 1, 50, (c, f, bytes_, half, seen))
    assert c.tolist() == [100, 100]
    assert f[0] == 49
    assert bytes_.tolist() == [(250 + 17) % 256, 17, 16, 77]
    assert half.tolist() == [5 - 75, -5 - 75]
    np.testing.assert_array_equal(np.sort(seen), 2 * np.arange(50))


@cuda.jit
def numba_integers(x, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.add(x, 0, 1)
    cuda.atomic.sub(x, 1, 2)
    cuda.atomic.max(x, 2, i)
    cuda.atomic.min(x, 3, i - 5)
    cuda.atomic.xor(x, 4, i)
    cuda.atomic.or_(x, 5, i)
    cuda.atomic.and_(x, 6, i + 8)
    cuda.atomic.exch(x, 7, i)
    cuda.atomic.cas(x, 8, 0, i + 1)


@cuda.jit
def numba_wrapping(x):
    cuda.atomic.inc(x, 0, 6)
    cuda.atomic.dec(x, 1, 6)


@cuda.jit
def numba_floats(values, x):
    i = cuda.grid(1)
    cuda.atomic.add(x, 0, values[i])
    cuda.atomic.max(x, 1, values[i])
    cuda.atomic.min(x, 2, values[i])
    cuda.atomic.nanmax(x, 3, values[i])


def test_numba_integers():
    x, old = np.zeros(9, "i4"), np.zeros(40, "i4")
    x[6] = 0xFF
    numba_integers[2, 20](x, old)
    lanes = range(40)
    both = [0xFF, *(i + 8 for i in lanes)]
    xor, conjunction = (list(itertools.accumulate(v, f))[-1] for v, f in ((lanes, int.__xor__), (both, int.__and__)))
    assert x.tolist() == [40, -80, 39, -5, xor, 63, conjunction, 39, 1]
    np.testing.assert_array_equal(old, lanes)


@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_numba_wraps_around(dtype):
    x = np.zeros(2, dtype)
    numba_wrapping[1, 40](x)
    assert x.tolist() == [40 % 7, (-40) % 7]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numba_floats(dtype):
    values, x = np.random.default_rng(9).normal(size=64).astype(dtype), np.zeros(4, dtype)
    numba_floats[2, 32](values, x)
    total = np.add.accumulate(np.concatenate((np.zeros(1, dtype), values)))[-1]
    assert x.tolist() == [total, values.max(), values.min(), values.max()]


# -- what is wrong is told -----------------------------------------------------------------------------------------


def test_errors_name_the_atomic():
    a = np.zeros(8, "i4")
    with pytest.raises(simulator.IllegalAddress, match=r"an atomic operation of 4 bytes .* past the end of array `a`"):
        run("past_the_end", 1, 2, a, np.int32(8))
    with pytest.raises(simulator.MisalignedAddress, match="an atomic operation of 4 bytes"):
        run("misaligned", 1, 1, np.zeros(8, "u1"))
    with pytest.raises(simulator.UninitializedRead, match=r"shared memory .* was never written"):
        run("uninitialised", 1, 1, a)


def test_an_exchange_may_write_first():
    a = np.zeros(1, "i4")
    run("exchanged_first", 1, 1, a)
    assert a[0] == 5


def test_local_memory_by_a_generic_address():
    """As on an H200."""
    a = np.zeros(1, "i4")
    run("on_the_stack", 1, 40, a, np.int32(3), races=False)
    assert a[0] == 2


def test_accesses_are_traced():
    profile = run("traced", 1, 32, np.zeros(17, "i4"), races=False)
    (access,) = [access for access in profile.accesses if access.op == "atomic"]
    assert access.array == "a"
    np.testing.assert_array_equal((access.address - access.array_start) // 4, np.arange(32) % 4)


# -- the functions by themselves -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", [*atomics.OPERATIONS, "cas"])
def test_random_groups_of_lanes(operation):
    """Any order of addresses, one address for all lanes, one value for all lanes, with and without results."""
    random = np.random.default_rng(10)
    kinds = {"f": ["f2", "f4", "f8"], "i": ["i4", "u4", "u8"]}["f" if operation[0] == "f" else "i"]
    for trial in range(150):
        dtype = "u2" if "bf16" in operation else "f4" if "ftz" in operation else kinds[trial % 3]
        if operation in ("inc", "dec"):
            dtype = "u4"
        n, size = int(random.integers(1, 90)), int(random.choice([1, 2, 9, 600]))
        if dtype[0] == "f":
            memory, b = ((random.normal(size=k) * 10.0 ** random.integers(-3, 3)).astype(dtype) for k in (size, n))
        else:
            low, high = (0x3F00, 0x4200) if "bf16" in operation else (0, 6)
            memory, b = (random.integers(low, high, k).astype(dtype) for k in (size, n))
        index = random.integers(0, size, 1 if trial % 5 == 0 else n)
        if trial % 4 == 0:
            index.sort()
        compare = random.integers(0, 6, n).astype(dtype)
        step = atomics.OPERATIONS[operation].step if operation != "cas" else None
        values = (b[:1] if trial % 7 == 0 else b,)
        operands = (compare, *values) if operation == "cas" else values[0]
        expected, found = memory.copy(), np.empty(n, dtype)
        for lane, place in enumerate(np.broadcast_to(index, n)):
            found[lane] = expected[place]
            value = np.broadcast_to(values[0], n)[lane : lane + 1]
            if operation == "cas":
                expected[place] = value[0] if found[lane] == compare[lane] else found[lane]
            else:
                expected[place] = step(found[lane : lane + 1], value)[0]
        wanted = trial % 3 > 0
        result = atomics.apply(memory, index, operation, operands, n, wanted)
        np.testing.assert_array_equal(memory, expected)
        if wanted:
            np.testing.assert_array_equal(np.broadcast_to(result, n), found)


@pytest.mark.parametrize(
    ("operation", "dtype"), [("add", "u4"), ("min", "i4"), ("max", "u8"), ("xor", "u4"), ("fadd", "f4"), ("cas", "u4")]
)
def test_no_loop_over_the_lanes(operation, dtype):
    """2**15 lanes on one address take far less processor time together than one after another."""
    n, few = 1 << 15, 1 << 10
    b = np.random.default_rng(11).integers(0, 9, n).astype(dtype)
    together = min(_seconds(operation, dtype, b) for _ in range(3))
    alone = min(sum(_seconds(operation, dtype, b[k : k + 1]) for k in range(few)) for _ in range(3))
    assert together < alone * (n // few) / 4


def _seconds(operation: str, dtype: str, b: np.ndarray) -> float:
    operands, start = (b, b) if operation == "cas" else b, time.process_time()
    atomics.apply(np.ones(4, dtype), np.zeros(1, np.int64), operation, operands, b.shape[0], True)
    return time.process_time() - start


@pytest.mark.parametrize("operation", ["fadd.bf16", "fmin.bf16", "fmax.bf16"])
def test_bf16_of_many_lanes_on_one_word_rounds_after_each(operation):
    """All at once as one after another: ones that get stuck at 256, values of all sizes, NaN and infinities."""
    rng = np.random.default_rng(11)
    ones = np.full(600, 0x3F80, np.uint16)
    near = 0x3E00 + rng.integers(0, 0x300, 600).astype(np.uint16)
    any_bits = rng.integers(0, 1 << 16, 600).astype(np.uint16)
    finite = np.where(any_bits & 0x7F80 == 0x7F80, np.uint16(3), any_bits)
    special = finite.copy()
    special[[100, 200, 300]] = 0x7F80, 0xFF80, 0xFFC1
    of = atomics.OPERATIONS[operation]
    with np.errstate(all="ignore"):
        for bits in (ones, near, finite, special):
            found = bits.copy()
            for k in range(1, bits.size):
                found[k : k + 1] = of.step(found[k - 1 : k], bits[k : k + 1])
            assert np.array_equal(of.accumulate(bits), found[1:])
            word = np.array([0x4000], np.uint16)
            atomics.apply(word, np.zeros(1, np.int64), operation, bits, bits.size, wanted=False)
            lane_by_lane = np.array([0x4000], np.uint16)
            for one in bits:
                atomics.apply(lane_by_lane, np.zeros(1, np.int64), operation, np.array([one]), 1, wanted=False)
            assert word[0] == lane_by_lane[0]
