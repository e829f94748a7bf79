"""Data races are found in whatever order the simulator runs the threads; the corrected kernels stay silent."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest
from numba import cuda, float32

from tests.support.race_twins import compare_races
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.check import races
from warplab.simulator.translate import machine_access, machine_compiler

SOURCE = """
#ifndef SYNC
#define SYNC __syncthreads()
#endif
KERNEL replicas(const int* a, int* out, int share) {
    __shared__ int s[2];
    int t = threadIdx.x;
    s[t / share] = a[t];
    __syncthreads();
    out[t / 32] = s[t / share];
}
KERNEL reverse(int* a) {
    __shared__ int s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = a[i];
    SYNC;
    a[i] = s[blockDim.x - 1 - t];
}
KERNEL two_tiles(const int* a, int* c, int n) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < n; k++) {
        s[t] = a[k * 64 + t];
        __syncthreads();
        sum += s[63 - t];
        SYNC;
    }
    c[t] = sum;
}
KERNEL warp_reverse(int* a) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = a[t];
    SYNC;
    a[t] = s[31 - t];
}
KERNEL warp_tree(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    s[t + 32] = a[t + 32];
    SYNC;
    for (int k = 32; k; k /= 2) {
        int v = s[t] + (t < k ? s[t + k] : 0);
        SYNC;
        s[t] = v;
        SYNC;
    }
    if (t == 0) a[0] = s[0];
}
KERNEL warp_volatile(int* a) {
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = a[t];
    SYNC;
    a[t] = s[31 - t];
}
KERNEL last_warp(int* a) {  // as reductions ended before 2017
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        volatile int* v = s;
        int sum = v[t] + v[t + 32];
        SYNC;
        v[t] = sum; SYNC;
        for (int k = 16; k; k /= 2) { sum += v[t + k]; SYNC; v[t] = sum; SYNC; }
    }
    if (t == 0) a[0] = s[0];
}
KERNEL two_warps(int* a) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    a[t] = s[63 - t];
}
KERNEL block_scan(int* a) {  // each step reads what other warps wrote
    __shared__ int s[256];
    volatile int* v = s;
    int t = threadIdx.x;
    v[t] = 0;
    t += blockDim.x;
    v[t] = a[threadIdx.x];
    for (int k = 1; k < blockDim.x; k *= 2) {
        __syncthreads();
        int sum = v[t] + v[t - k];
        SYNC;
        v[t] = sum;
    }
    a[threadIdx.x] = v[t];
}
KERNEL last_block_sums(const int* a, int* out, unsigned* count) {
    __shared__ volatile int s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * 64 + t];
    SYNC;
    if (t == 0) {
        int sum = 0;
        for (int k = 32; k < 64; k++) sum += s[k];
        out[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0)
        for (int k = 1; k < gridDim.x; k++) out[0] += ((volatile int*)out)[k];
}
KERNEL rounds_of_one_warp(int* rounds, int n) {
    __shared__ volatile int done;
    int t = threadIdx.x, k = 0;
    if (t == 0) done = 0;
    SYNC;
    while (!done) {
        k++;
        __syncthreads();
        if (t == 0 && k == n) done = 1;
        __syncthreads();
    }
    rounds[t] = k;
}
KERNEL handshake(int* out) {
    __shared__ volatile int ready, result;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncwarp();
    if (t == 0) {
        result = 42;
        __threadfence_block();
        ready = 1;
    } else {
        while (!ready) {}
    }
    out[t] = result;
}
KERNEL warp_butterfly(int* a) {  // a word's reader of one step writes it in the next
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = a[t];
    SYNC;
    for (int k = 16; k; k /= 2) {
        if (!(t & k)) {
            int v = s[t];
            s[t] = v + s[t ^ k];
            s[t ^ k] = v - s[t ^ k];
        }
        SYNC;
    }
    a[t] = s[t];
}
KERNEL shift_in_place(int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) a[i] = a[i + 1];
}
KERNEL shift(const int* a, int* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) c[i] = a[i + 1];
}
KERNEL histogram(const int* a, int* bins) { bins[a[threadIdx.x]] += 1; }
KERNEL flag(const int* a, int* found) { if (a[threadIdx.x] == 3) *found = 1; }
KERNEL flag4(int k, int4* found) { *found = make_int4(1, 2, 3, 4 + k * threadIdx.x); }
KERNEL last(const int* a, int* c) { *c = threadIdx.x; }
KERNEL neighbours(char* c, int* out) {
    __shared__ char s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    c[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL within_block(int* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.x * blockDim.x + blockDim.x - 1 - threadIdx.x;
    a[i] = i;
    __syncthreads();
    int v = a[j];
    __syncthreads();
    a[i] = v;
}
KERNEL across_blocks(int* a) {
    a[blockIdx.x] = 1;
    __syncthreads();
    if (blockIdx.x) a[blockIdx.x] = a[blockIdx.x - 1];
}
KERNEL read_then_overwrite(int* a, int* out, int victim) {  // elements 6, 9, 12, … by every third thread
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 1) out[i] = a[i + 5];
    if (i == gridDim.x * blockDim.x - 1) a[victim] = 7;
}
""".replace("KERNEL", 'extern "C" __global__ void')
NOTHING = ("-DSYNC=;",)


def run(name, grid, block, *args, options=(), **how):
    return simulate(CudaSource(SOURCE, name, options), grid, block, args, **how)


def line_of(text: str) -> int:
    return 1 + next(k for k, line in enumerate(SOURCE.splitlines()) if text in line)


@pytest.mark.parametrize("blocks", [1, 3])
def test_missing_barrier_between_store_and_load(blocks):
    a = np.arange(128 * blocks, dtype=np.int32)
    run("reverse", blocks, 128, a)
    assert a.tolist() == np.arange(128 * blocks).reshape(blocks, 128)[:, ::-1].ravel().tolist()
    with pytest.raises(simulator.DataRace) as caught:
        run("reverse", blocks, 128, a, options=NOTHING)
    error = caught.value
    assert (error.line, error.other_line) == (line_of("a[i] = s[blockDim.x"), line_of("s[t] = a[i];"))
    block, thread = error.other_thread
    assert block == error.block
    assert thread[0] == 127 - error.thread[0]
    assert str(error).startswith(
        "race: thread (0, 0, 0) of block (0, 0, 0) reads byte 508 of shared memory (element 127 of `s`), which"
    )
    assert "__syncthreads() missing" in str(error)


def test_missing_barrier_before_the_next_tile():
    a, c = np.arange(256, dtype=np.int32), np.zeros(64, np.int32)
    run("two_tiles", 1, 64, a, c, np.int32(4))
    with pytest.raises(simulator.DataRace) as caught:
        run("two_tiles", 1, 64, a, c, np.int32(4), options=NOTHING)
    assert (caught.value.line, caught.value.other_line) == (line_of("s[t] = a[k * 64"), line_of("sum += s[63 - t]"))


@pytest.mark.parametrize("kernel", ["warp_reverse", "warp_tree", "warp_butterfly"])
def test_lock_step_orders_nothing_but_syncwarp_does(kernel):
    a = np.arange(64, dtype=np.int32)
    for sync in ("__syncthreads()", "__syncwarp()"):
        run(kernel, 1, 32, a, options=(f"-DSYNC={sync}",))
    with pytest.raises(simulator.DataRace, match="shared memory"):
        run(kernel, 1, 32, a, options=NOTHING)


@pytest.mark.parametrize(("kernel", "threads"), [("warp_volatile", 32), ("last_warp", 128)])
def test_volatile_in_place_of_syncwarp(kernel, threads):
    a = np.arange(threads, dtype=np.int32)
    for volatile_orders in (True, False):
        with pytest.raises(simulator.DataRace, match="shared memory") as caught:
            run(kernel, 1, threads, a, options=NOTHING, volatile_orders=volatile_orders)
        assert "`volatile` does not make the lanes" in str(caught.value)
        run(kernel, 1, threads, a, options=("-DSYNC=__syncwarp()",), volatile_orders=volatile_orders)


@pytest.mark.parametrize("kernel", ["block_scan", "last_block_sums", "two_warps"])
@pytest.mark.parametrize("volatile_orders", [True, False])
def test_volatile_excuses_no_race_between_warps(kernel, volatile_orders):
    def launch(*options):
        arrays = [np.arange(128, dtype=np.int32)]
        if kernel == "last_block_sums":
            arrays += [np.zeros(2, np.int32), np.zeros(1, np.uint32)]
        blocks, threads = {"block_scan": (1, 128), "last_block_sums": (2, 64), "two_warps": (1, 64)}[kernel]
        run(kernel, blocks, threads, *arrays, options=options, volatile_orders=volatile_orders)
        return arrays

    with pytest.raises(simulator.DataRace, match="shared memory") as caught:
        launch(*NOTHING)
    assert "`volatile` only says" in str(caught.value)
    if kernel == "block_scan":
        assert np.array_equal(launch()[0], np.cumsum(np.arange(128)))
    if kernel == "last_block_sums":
        assert launch()[1][0] == sum(range(32, 64)) + sum(range(96, 128))


def test_volatile_words_may_be_flags_in_kernels_that_wait():
    out = np.zeros(32, np.int32)
    run("handshake", 1, 32, out, volatile_orders=True)
    assert (out == 42).all()
    with pytest.raises(simulator.DataRace, match="`ready`"):
        run("handshake", 1, 32, out)


def test_a_volatile_flag_that_its_own_lanes_write_needs_barriers():
    """The loop looks like one that waits, but its own lanes write the flag (HeCBench's `merge`)."""
    rounds = np.zeros(32, np.int32)
    run("rounds_of_one_warp", 1, 32, rounds, np.int32(3))
    assert (rounds == 3).all()
    with pytest.raises(simulator.DataRace, match="`done`"):
        run("rounds_of_one_warp", 1, 32, rounds, np.int32(3), options=NOTHING)


def test_syncwarp_does_not_order_two_warps():
    a = np.arange(128, dtype=np.int32)
    with pytest.raises(simulator.DataRace):
        run("reverse", 1, 64, a, options=("-DSYNC=__syncwarp()",))


def test_global_memory_between_threads():
    a = np.arange(300, dtype=np.int32)
    run("shift", 3, 128, a, np.zeros(300, np.int32), np.int32(300))
    for chunk in (1 << 15, 128):  # blocks together, and one after the other
        with pytest.raises(simulator.DataRace, match="of array `a`") as caught:
            run("shift_in_place", 3, 128, a.copy(), np.int32(300), chunk_lanes=chunk)
        assert caught.value.array == "a"


@pytest.mark.parametrize("chunk", [1 << 15, 64])
@pytest.mark.parametrize("victim", [6, 12, 93, 240, 309])
def test_reads_of_earlier_chunks_are_remembered(victim, chunk):
    a, out = np.arange(400, dtype=np.int32), np.zeros(320, np.int32)
    with pytest.raises(simulator.DataRace, match=rf"writes byte {4 * victim} of array `a`") as caught:
        run("read_then_overwrite", 5, 64, a, out, np.int32(victim), chunk_lanes=chunk)
    reader = victim - 5
    assert caught.value.other_thread == ((reader // 64, 0, 0), (reader % 64, 0, 0))
    run("read_then_overwrite", 5, 64, a, out, np.int32(victim + 1), chunk_lanes=chunk)


def test_the_records_of_a_launch_go_with_it(monkeypatch):
    """They take as much memory as the arrays, and Python's collector may leave them for many launches."""
    made = []

    class Noted(races.Record):
        def __init__(self, words, *more):
            super().__init__(words, *more)
            made.append((words, weakref.ref(self)))

    data = np.arange(256, dtype=np.int32)
    run("reverse", 2, 128, data)  # to compile it
    monkeypatch.setattr(races, "Record", Noted)
    gc.disable()
    try:
        run("reverse", 2, 128, data)
        left = [words for words, record in made if words and record()]
    finally:
        gc.enable()
    assert max(words for words, _ in made) >= 256
    assert left == []


def test_lost_update():
    a, bins = np.zeros(64, np.int32), np.zeros(4, np.int32)
    with pytest.raises(simulator.DataRace, match="array `bins`") as caught:
        run("histogram", 1, 64, a, bins)
    assert "__syncthreads() missing" in caught.value.reason  # the threads are of one block
    assert "That needs an atomic" in caught.value.reason
    with pytest.raises(simulator.DataRace, match="different blocks cannot wait"):
        run("histogram", 2, 32, a, bins)


def test_threads_that_write_the_same_value_are_no_race():
    found = np.zeros(4, np.int32)
    run("flag", 1, 64, np.full(64, 3, np.int32), found)
    assert found[0] == 1
    run("flag4", 1, 64, np.int32(0), found)
    assert found.tolist() == [1, 2, 3, 4]
    with pytest.raises(simulator.DataRace, match="writes"):
        run("flag4", 1, 64, np.int32(1), found)
    with pytest.raises(simulator.DataRace, match="writes"):
        run("last", 1, 64, np.zeros(1, np.int32), found)


def test_replicas_of_one_warp_may_differ_in_shared_memory_and_nowhere_else():
    a, out = np.arange(64, dtype=np.int32), np.zeros(2, np.int32)
    run("replicas", 1, 64, a, out, np.int32(32), replicas=True)
    assert (out[0] in range(32), out[1] in range(32, 64)) == (True, True)
    with pytest.raises(simulator.DataRace, match="writes byte 0 of shared memory"):
        run("replicas", 1, 64, a, out, np.int32(32))
    with pytest.raises(simulator.DataRace, match="writes byte 0 of shared memory"):  # by two warps
        run("replicas", 1, 64, a, out, np.int32(64), replicas=True)
    with pytest.raises(simulator.DataRace, match="array `c`"):
        run("last", 1, 32, np.zeros(1, np.int32), np.zeros(4, np.int32), replicas=True)


def test_neighbouring_bytes_are_not_one_word():
    c = np.zeros(64, np.int8)
    run("neighbours", 1, 64, c, np.zeros(1, np.int32))
    assert c.tolist() == list(range(63, -1, -1))


def test_a_barrier_orders_its_block_only():
    a = np.zeros(256, np.int32)
    run("within_block", 4, 64, a)
    assert a.tolist() == np.arange(256).reshape(4, 64)[:, ::-1].ravel().tolist()
    with pytest.raises(simulator.DataRace, match="different blocks cannot wait"):
        run("across_blocks", 4, 1, a)


def test_races_can_be_switched_off():
    a = np.arange(128, dtype=np.int32)
    run("reverse", 1, 128, a, options=NOTHING, races=False)


def test_numba_kernel_names_its_lines():
    @cuda.jit
    def blur(a, c):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = a[t]  # store
        c[t] = s[(t + 1) % 64]  # load

    with pytest.raises(simulator.DataRace) as caught:
        simulate(blur, 1, 64, (np.zeros(64, np.float32), np.zeros(64, np.float32)))
    assert caught.value.line == caught.value.other_line + 1
    assert caught.value.source.endswith("# load")
    assert "In Numba: cuda.syncthreads()" in caught.value.reason


def test_a_flag_that_is_not_volatile_is_called_one():
    code = """
    extern "C" __global__ void wait(%s int* flag, volatile int* out) {
        if (blockIdx.x == 1) { __threadfence(); flag[0] = 1; return; }
        while (flag[0] == 0) ;
        out[0] = 1;
    }"""
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    with pytest.raises(simulator.DataRace, match=r"Does this loop wait for a flag\?.*Make it `volatile`"):
        simulate(CudaSource(code % "", "wait"), 2, 1, (flag, out))
    simulate(CudaSource(code % "volatile", "wait"), 2, 1, (flag, out))
    assert out[0] == 1


@pytest.mark.parametrize(
    ("mask", "partner", "races"),
    [
        ("0xffffffff", "t ^ 16", False),
        ("t < 16 ? 0x0000ffff : 0xffff0000", "t ^ 16", True),
        ("t < 16 ? 0x0000ffff : 0xffff0000", "t ^ 1", False),
        ("t % 2 ? 0xaaaaaaaa : 0x55555555", "t ^ 1", True),
        ("__activemask()", "t ^ 16", False),
    ],
)
def test_syncwarp_orders_the_lanes_of_its_mask(mask, partner, races):
    code = f"""extern "C" __global__ void f(int* x) {{
        __shared__ int s[32];
        int t = threadIdx.x;
        s[t] = t;
        __syncwarp({mask});
        x[t] = s[{partner}];
    }}"""
    x = np.zeros(32, np.int32)
    if races:
        with pytest.raises(simulator.DataRace, match=r"element .* of `s`"):
            simulate(CudaSource(code, "f"), 1, 32, (x,))
    else:
        simulate(CudaSource(code, "f"), 1, 32, (x,))
    if mask == "__activemask()":
        with pytest.raises(simulator.DataRace, match=r"element .* of `s`"):
            simulate(CudaSource(code, "f"), 1, 32, (x,), lanes_apart=True)


@pytest.mark.parametrize("data", ["int*", "volatile int*"])
@pytest.mark.parametrize(("fence", "races"), [("", True), ("__threadfence();", False)])
def test_a_volatile_flag_in_global_memory_needs_a_fence(data, fence, races):
    code = """
    extern "C" __global__ void pass_on(DATA data, volatile int* flags, int* out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        data[i] = i;
        FENCE
        __syncthreads();
        if (threadIdx.x == 0) flags[blockIdx.x] = 1;
        int other = (blockIdx.x + 1) % gridDim.x;
        if (threadIdx.x == 0) while (flags[other] == 0);
        __syncthreads();
        FENCE
        out[i] = data[other * blockDim.x + threadIdx.x];
    }""".replace("DATA", data).replace("FENCE", fence)
    out = np.zeros(128, np.int32)
    launch = CudaSource(code, "pass_on"), 2, 64, (np.zeros(128, np.int32), np.zeros(2, np.int32), out)
    if races:
        with pytest.raises(simulator.DataRace) as caught:
            simulate(*launch)
        assert caught.value.array == "data"
        assert ("before the flag is set" in str(caught.value)) == (data != "int*")
    else:
        simulate(*launch)
        assert np.array_equal(out, np.roll(np.arange(128), 64))


@pytest.mark.parametrize(("fence", "here"), [("_block", True), ("_block", False), ("", False)])
def test_a_fence_of_the_block_orders_nothing_for_other_blocks(fence, here):
    code = """
    extern "C" __global__ void pass_on(int* data, int* flag, int* out) {
        int me = HERE ? threadIdx.x / 32 : blockIdx.x;
        if (threadIdx.x % 32) return;
        if (me == 0) {
            data[0] = 7;
            FENCE
            atomicExch(flag, 1);
        } else if (me == 1) {
            while (atomicAdd(flag, 0) == 0);
            FENCE
            out[0] = data[0];
            data[0] = 8;
        }
    }""".replace("HERE", str(int(here))).replace("FENCE", f"__threadfence{fence}();")
    data, flag, out = np.zeros((3, 1), np.int32)
    launch = CudaSource(code, "pass_on"), *((1, 64) if here else (2, 32)), (data, flag, out)
    if fence and not here:
        with pytest.raises(simulator.DataRace, match=r"block \(1, 0, 0\) reads .* of array `data`") as caught:
            simulate(*launch)
        assert "that the other block is done? Then put a __threadfence() before it" in caught.value.reason
    else:
        simulate(*launch)
        assert (out[0], data[0]) == (7, 8)


@pytest.mark.parametrize("before", ["", 'asm volatile("barrier.sync 1, 32;");'], ids=["epochs", "clocks"])
@pytest.mark.parametrize("fenced", [True, False])
def test_a_fence_publishes_what_its_thread_wrote_before_it(before, fenced):
    code = """
    extern "C" __global__ void pass_on(int* data, int* flag, int* out) {
        BEFORE
        if (threadIdx.x) return;
        if (blockIdx.x == 0) {
            STEPS
            atomicExch(flag, 1);
        } else {
            while (atomicAdd(flag, 0) == 0);
            __threadfence();
            out[0] = data[0];
        }
    }""".replace("BEFORE", before)
    steps = "data[0] = 7;", "__threadfence();"
    code = code.replace("STEPS", " ".join(steps if fenced else steps[::-1]))
    data, flag, out = np.zeros((3, 1), np.int32)
    launch = CudaSource(code, "pass_on"), 2, 32, (data, flag, out)
    if fenced:
        simulate(*launch)
        assert out[0] == 7
    else:
        with pytest.raises(simulator.DataRace, match=r"block \(1, 0, 0\) reads .* of array `data`"):
            simulate(*launch)


@pytest.mark.parametrize("apart", [False, True], ids=["together", "in turn"])
@pytest.mark.parametrize(("scope", "blocks"), [("_block", 4), ("_block", 1), ("", 4)])
def test_an_atomic_operation_of_the_block_races_with_those_of_other_blocks(scope, blocks, apart):
    code = """
    extern "C" __global__ void count(int* y, int apart) {
        for (int k = 0; k < (apart ? blockIdx.x : 0) * 5; k++) __nanosleep(10);
        atomicAddSCOPE(y, 1);
    }""".replace("SCOPE", scope)
    y = np.zeros(1, np.int32)
    launch = CudaSource(code, "count"), blocks, 64, (y, np.int32(apart))
    if scope and blocks > 1:
        with pytest.raises(simulator.DataRace, match=r"block .* writes byte 0 of array `y`"):
            simulate(*launch)
    else:
        simulate(*launch)
        assert y[0] == 64 * blocks


def test_volatile_words_of_the_flags_own_array_need_none():
    code = """
    struct Sum { int ready, value; };
    extern "C" __global__ void chain(volatile Sum* sums, int* out) {
        if (threadIdx.x) return;
        int sum = blockIdx.x;
        if (blockIdx.x) {
            while (sums[blockIdx.x - 1].ready == 0);
            sum += sums[blockIdx.x - 1].value;
        }
        sums[blockIdx.x].value = sum;
        sums[blockIdx.x].ready = 1;
        out[blockIdx.x] = sum;
    }"""
    out = np.zeros(20, np.int32)
    simulate(CudaSource(code, "chain"), 20, 32, (np.zeros(40, np.int32), out))
    assert np.array_equal(out, np.cumsum(np.arange(20)))


PLAIN_TESTS = """
#ifdef IN_SHARED
#define PLACE __shared__ int word; if (threadIdx.x == 0) word = *result; __syncthreads(); int* most = &word;
#define END __syncthreads(); *result = *most;
#else
#define PLACE int* most = result;
#define END
#endif
extern "C" __global__ void largest(const int* x, int* result, int* out) {
    PLACE
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > *most) atomicMax(most, x[i]);
    END
}
extern "C" __global__ void largest_of_each(const int* x, int* most, int* out) {
    for (int i = threadIdx.x; i < 128; i += blockDim.x)
        if (x[i] > *(int*)most) atomicMax(most, x[i]);
}
extern "C" __global__ void uses_the_value(const int* x, int* most, int* out) {
    int i = threadIdx.x, seen = *most;
    if (x[i] > seen) atomicMax(most, x[i]);
    out[i] = seen;
}
extern "C" __global__ void as_a_place(const int* x, int* most, int* out) {
    int i = threadIdx.x, place = *most;
    if (x[i] > 0) { atomicAdd(most, 1); out[place] = x[i]; }
}
extern "C" __global__ void too_early(const int* x, int* most, int* out) {
    atomicMax(most, x[threadIdx.x]);
    if (*most > 5) out[threadIdx.x] = 1;
}
extern "C" __global__ void on_the_other_side(const int* x, int* flag, int* out) {
    if (threadIdx.x >= 32) { if (*flag) out[threadIdx.x] = x[0]; }
    else if (threadIdx.x == 0) { out[0] = x[0]; atomicExch(flag, 1); }
}
"""


@pytest.mark.parametrize("options", [(), ("-DIN_SHARED",)])
@pytest.mark.parametrize("kernel", ["largest", "largest_of_each"])
def test_a_plain_test_before_an_atomic_operation_is_no_race(kernel, options):
    x, most = np.random.default_rng(7).permutation(128).astype(np.int32), np.zeros(1, np.int32)
    simulate(CudaSource(PLAIN_TESTS, kernel, options=options), 1, 128, (x, most, np.zeros(128, np.int32)))
    assert most[0] == 127


@pytest.mark.parametrize("kernel", ["uses_the_value", "as_a_place", "too_early", "on_the_other_side"])
def test_other_plain_loads_beside_an_atomic_operation_are_races(kernel):
    arrays = np.arange(64, dtype=np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)
    with pytest.raises(simulator.DataRace):
        simulate(CudaSource(PLAIN_TESTS, kernel), 1, 64, arrays)


BEHIND_ATOMICS = """
extern "C" __global__ void count(unsigned* out) {
    __shared__ unsigned c[2], d[64];
    unsigned t = threadIdx.x, last = blockDim.x - 1, got = 0;
    d[t] = 0;
    if (t < 2) c[t] = 0;
    __syncthreads();
    CODE
    if (got) out[t] = got;
}"""


@pytest.mark.parametrize("twins", [True, False], ids=["code and NumPy", "NumPy"])
@pytest.mark.parametrize(
    ("code", "races"),
    [
        ("atomicAdd(c, t); if (t == last) out[0] = c[0];", True),
        ("atomicAdd(c, t); if (t == last) c[0] = 0;", True),
        ("atomicAdd(c, t); __syncthreads(); if (t == last) got = c[0];", False),
        ("for (int k = 0; k < 3; k++) atomicAdd(c + k % 2, t); if (t == last) out[0] = c[0];", True),
        ("if (t == 5) atomicAdd(c, 1); if (t == 7) { atomicAdd(c, 1); got = c[0]; }", True),
        ("if (t == 5) atomicAdd(c, 1); __syncthreads(); if (t == 7) { atomicAdd(c, 1); got = c[0]; }", False),
        ("atomicAdd(out, 1); if (t == last) out[last] = out[0];", True),
        ("atomicAdd(d + t, 1); atomicAdd(d + t, 1); got = d[t];", False),
        ("atomicAdd(d + t / 2 * 2, 1); if (t % 2) got = d[t - 1];", True),
        ("atomicAdd(d + t / 2 * 2, 1); __syncwarp(); if (t % 2) got = d[t - 1];", False),
        # What an atomic operation brings back tells who came before.
        ("if (atomicAdd(c, 1) == last) { got = c[0]; c[0] = 0; }", False),
    ],
)
def test_a_thread_races_with_atomic_operations_beside_its_own(monkeypatch, code, races, twins):
    """Though its own was the last."""
    by_code = compare_races(monkeypatch) if twins else []
    source = CudaSource(BEHIND_ATOMICS.replace("CODE", code), "count")
    launch = source, 1, 64, (np.zeros(64, np.uint32),)
    if races:
        with pytest.raises(simulator.DataRace, match="which other threads wrote"):
            simulate(*launch, machine_code=twins)
    else:
        simulate(*launch, machine_code=twins)
    assert any(by_code) == twins


VOLATILE_BESIDE_ATOMICS = """
extern "C" __global__ void look(int* out) {
    __shared__ int word;
    int t = threadIdx.x, seen = 0;
    if (t == 0) word = 0;
    __syncthreads();
    if (t == PLAIN) out[128 + t] = word;  // a store, as NVRTC loads ahead of a test that guards no more than a load
    BETWEEN;
    if (t == 64) seen = *(volatile int*)&word;
    if (t == 96) atomicAdd(&word, 1);
    out[t] = seen;
}
"""


@pytest.mark.parametrize(
    ("plain", "between", "races"),
    [
        (32, "", True),  # a plain load by another thread than the one that adds
        (96, "", False),  # by the one that adds
        (128, "", False),  # by none
        (32, "__syncthreads()", False),  # before a barrier
    ],
)
def test_a_volatile_load_hides_no_plain_one_before_it(plain, between, races):
    launch = CudaSource(VOLATILE_BESIDE_ATOMICS, "look", options=(f"-DPLAIN={plain}", f"-DBETWEEN={between}")), 1, 128
    out = np.zeros(257, np.int32)
    if not races:
        simulate(*launch, (out,))
        return
    with pytest.raises(simulator.DataRace, match=r"element 0 of `word`") as caught:
        simulate(*launch, (out,))
    assert "thread (32, 0, 0)" in str(caught.value)
    assert "line 7" in str(caught.value)


@pytest.mark.parametrize(("initialising", "races"), [(1, False), (2, True), (64, True)])
def test_a_barrier_is_initialised_once(initialising, races):
    code = """
    #include <cuda/barrier>
    extern "C" __global__ void meet(int* out, int initialising) {
        __shared__ cuda::barrier<cuda::thread_scope_block> all;
        if (threadIdx.x < initialising) init(&all, blockDim.x);
        __syncthreads();
        all.arrive_and_wait();
        out[threadIdx.x] = 1;
    }"""
    out = np.zeros(64, np.int32)
    launch = CudaSource(code, "meet"), 1, 64, (out, np.int32(initialising))
    if races:
        with pytest.raises(simulator.DataRace, match="element 0 of `all`"):
            simulate(*launch)
    else:
        simulate(*launch)
        assert out.all()


def test_the_log_says_where_numpy_looks_for_races():
    source = """extern "C" __global__ void k(int* a, int wide) {
        __shared__ int word[128];
        word[threadIdx.x] = 0;
        __syncthreads();
        LOOK
        if (wide == 2) __shfl_sync(~0u, 1, 0);
        a[threadIdx.x] = word[127 - threadIdx.x];
    }"""
    volatile = "if (wide) { atomicAdd(word + threadIdx.x, 1); __syncthreads(); } wide += ((volatile int*)word)[127];"
    of_a_block = "atomicAdd_block(word + threadIdx.x, wide); __syncthreads();"
    wants = {volatile: "there are volatile accesses and atomic ones", "__syncthreads();": None}
    wants[of_a_block] = "atomic operations order their own block alone"
    for look, why in wants.items():
        launch = CudaSource(source.replace("LOOK", look), "k"), 2, 128, (np.zeros(128, np.int32), np.int32(1))
        said = [line for line in simulate(*launch).log if "races" in line]
        assert said == ([] if why is None else [f"NumPy looked for races: {why}"])
        assert simulate(*launch, machine_code=False).log == []


CLUSTER = """extern "C" __global__ void __cluster_dims__(2) k(int* a) {
    __shared__ int word[544];
    word[threadIdx.x] = 1;
    a[blockIdx.x * blockDim.x + threadIdx.x] = word[threadIdx.x];
}"""
LATE = """extern "C" __global__ void k(int* a, int* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("bar.sync 1, 32;" ::: "memory");
    if (blockIdx.x) a[i] = i; else b[i] = a[i];
}"""
BEFORE_A_BARRIER = """extern "C" __global__ void k(int* a) {
    __shared__ int word[64];
    word[threadIdx.x] = 1;
    __syncthreads();
    a[threadIdx.x] = word[63 - threadIdx.x];
}"""


@pytest.mark.parametrize(
    ("source", "block", "why"),
    [
        (CLUSTER, 544, "clusters have more than 32 warps"),
        (LATE, 32, "what earlier blocks loaded is looked at late"),
        (BEFORE_A_BARRIER, 64, "there is no compiler"),
        (BEFORE_A_BARRIER, 64, "LLVM fails"),
    ],
)
def test_the_log_says_why_machine_code_looks_for_no_races(source, block, why, monkeypatch):
    def fails():
        raise RuntimeError("LLVM fails")

    compare_races(monkeypatch)
    monkeypatch.setattr(machine_access, "examined", functools.cache(machine_access.examined.__wrapped__))
    if why == "LLVM fails":
        monkeypatch.setattr(machine_access, "addresses", fails)
    monkeypatch.setattr(machine_compiler, "available", lambda: why != "there is no compiler")
    blocks = 2 if source is not BEFORE_A_BARRIER else 1
    arrays = tuple(np.zeros(2 * block, np.int32) for _ in range(2 if source is LATE else 1))
    log = simulate(CudaSource(source, "k"), blocks, block, arrays, chunk_lanes=32).log
    assert [line for line in log if "races" in line] == [f"NumPy looked for races: {why}"]
