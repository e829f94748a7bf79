"""Barriers with numbers and counts, `__syncwarp` across branches, locks, and the two scheduling policies."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
KERNEL counts(const int* a, int* out, int n) {
    int t = threadIdx.x, v = a[t];
    out[t] = __syncthreads_count(v > 3);
    out[n + t] = __syncthreads_and(v >= 0);
    out[2 * n + t] = __syncthreads_or(v > 100);
}
KERNEL halves(int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, half = t / 64;
    s[t] = t;
    asm volatile("bar.sync %0, 64;" :: "r"(half + 1) : "memory");
    out[t] = s[half * 64 + 63 - t % 64];
}
KERNEL producer(int* out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = t * 3;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t - 32] = s[63 - t];
    }
}
KERNEL odd_count() { asm volatile("bar.sync 1, 48;" ::: "memory"); }
KERNEL axby(int* log, int* order) {
    // The order A X B Y: B reads what X wrote, Y reads what A wrote.
    __shared__ int a, x;
    if (threadIdx.x < 4) {
        if (threadIdx.x == 0) a = 1;
        __syncwarp();
        log[threadIdx.x] = x;
    } else {
        if (threadIdx.x == 4) x = 2;
        __syncwarp();
        log[threadIdx.x] = a;
    }
    __syncwarp();
}
KERNEL tasks(int* next, int* out, int n) {  // lanes without work go straight back to the head of the loop
    __shared__ int start;
    while (true) {
        if (threadIdx.x == 0) start = atomicAdd(next, 32);
        __syncthreads();
        int first = start;
        __syncthreads();
        if (first >= n) break;
        int i = first + threadIdx.x;
        if (i < n) out[i] = i * i;
    }
}
KERNEL from_the_end(int* out) {  // the index of some lanes is negative before a constant is added
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 8) { __syncwarp(0xff); out[t] = s[7 - t]; }
    else { __syncwarp(0xffffff00); out[t] = s[39 - t]; }
}
KERNEL lock_in_loop(int* lock, int* count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *(volatile int*)count = *(volatile int*)count + 1;
    __threadfence();
    atomicExch(lock, 0);
}
KERNEL lock_with_exit(int* lock, int* count) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)count = *(volatile int*)count + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
KERNEL flag_between_blocks(volatile int* flag, volatile int* data, int* out) {
    if (blockIdx.x == 0) {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;
    } else {
        *data = 42;
        __threadfence();
        *flag = 1;
    }
}
KERNEL chain(volatile int* sums, int* out) {
    int tries = 0, before = 0;
    while (blockIdx.x > 0) {
        before = sums[blockIdx.x - 1];
        if (before) break;
        tries++;
        if (threadIdx.x & 1) out[blockIdx.x * 32 + threadIdx.x] = tries;  // lanes part and meet again as they wait
    }
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = before + blockIdx.x + 1;
    out[blockIdx.x * 32 + threadIdx.x] = before;
}
KERNEL relay(const int* x, int* out) {  // the last warp works, the one before waits for it, the first for that one
    __shared__ int a[32], b[32];
    __shared__ volatile int a_ready, b_ready;
    int t = threadIdx.x % 32, v = x[t];
    if (threadIdx.x == 0) a_ready = b_ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        while (!b_ready) {}
        __threadfence_block();
        out[t] = b[31 - t];
    } else if (threadIdx.x < 64) {
        while (!a_ready) {}
        __threadfence_block();
        b[t] = 2 * a[t ^ 1];
        __threadfence_block();
        __syncwarp();
        if (t == 0) b_ready = 1;
    } else {
        for (int k = 0; k < 40; k++) v = v & 1 ? 3 * v + 1 : v / 2;
        a[t] = v;
        __threadfence_block();
        __syncwarp();
        if (t == 0) a_ready = 1;
    }
}
KERNEL in_turn(const float* parts, volatile float* sum, volatile int* turn, int n) {  // blocks add one after another
    int i = threadIdx.x;
    if (i == 0) while (*turn != blockIdx.x) {}
    __syncthreads();
    sum[i] = sum[i] + parts[blockIdx.x * n + i];
    __threadfence();
    __syncthreads();
    if (i == 0) *turn = blockIdx.x + 1;
}
KERNEL ring(volatile int* places, volatile int* filled, volatile int* taken, int* out, int n) {  // four places
    if (blockIdx.x == 0) {
        for (int k = 0; k < n; k++) {
            while (k - *taken >= 4) {}
            places[k % 4] = k * k;
            __threadfence();
            *filled = k + 1;
        }
    } else {
        for (int k = 0; k < n; k++) {
            while (*filled <= k) {}
            out[k] = places[k % 4];
            __threadfence();
            *taken = k + 1;
        }
    }
}
KERNEL swap_branches(const int* a, int* out) {
    int t = threadIdx.x;
    if (a[t] & 1) for (int k = 0; k < a[t]; k++) out[t] += out[t] + k % 3; else out[t] = 2;
    out[t] += 10;
}
""".replace("KERNEL", 'extern "C" __global__ void')


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, args, **options)


@pytest.mark.parametrize("threads", [32, 100, 256])
def test_barriers_that_reduce(threads):
    a = np.random.default_rng(20).integers(0, 8, threads, dtype=np.int32)
    out = np.full(3 * threads, -1, np.int32)
    run("counts", 1, threads, a, out, np.int32(threads))
    count, every, some = out.reshape(3, threads)
    assert set(count.tolist()) == {int((a > 3).sum())}
    assert all(every)
    assert not any(some)
    a[-1] = -1
    a[0] = 101
    run("counts", 1, threads, a, out, np.int32(threads))
    count, every, some = out.reshape(3, threads)
    assert not any(every)
    assert all(some)


def test_numbered_barriers():
    out = np.zeros(128, np.int32)
    run("halves", 2, 128, out)
    assert out.tolist() == [*range(63, -1, -1), *range(127, 63, -1)]
    run("producer", 1, 64, out)
    assert out[:32].tolist() == [(31 - k) * 3 for k in range(32)]
    with pytest.raises(simulator.DivergentBarrier, match="for 48 threads: the number must be a multiple of 32"):
        run("odd_count", 1, 64)


def test_syncwarp_orders_the_sides_of_a_branch():
    log = np.zeros(32, np.int32)
    run("axby", 1, 32, log, np.zeros(1, np.int32))
    assert log.tolist() == [2] * 4 + [1] * 28
    with pytest.raises(simulator.DivergentWarp, match="`__syncwarp` waits for lanes") as caught:
        run("axby", 1, 32, log, np.zeros(1, np.int32), scheduling="pascal")
    assert "one program counter per warp" in str(caught.value)


def test_a_spin_lock_finishes_on_volta_and_hangs_on_pascal():
    for kernel in ("lock_in_loop", "lock_with_exit"):
        count = np.zeros(1, np.int32)
        run(kernel, 1, 8, np.zeros(1, np.int32), count)
        assert count[0] == 8
    count = np.zeros(1, np.int32)
    run("lock_with_exit", 1, 8, np.zeros(1, np.int32), count, scheduling="pascal")
    assert count[0] == 8
    with pytest.raises(simulator.InstructionLimit, match="one program counter per warp") as caught:
        run("lock_in_loop", 1, 8, np.zeros(1, np.int32), count, scheduling="pascal", path_limit=10_000)
    assert "lock" in str(caught.value)


@pytest.mark.parametrize("policy", ["volta", "pascal"])
def test_a_block_may_wait_for_another(policy):
    flag, data, out = (np.zeros(1, np.int32) for _ in range(3))
    run("flag_between_blocks", 2, 1, flag, data, out, scheduling=policy)
    assert out[0] == 42


def test_lanes_that_part_while_they_wait():
    blocks = 12
    sums, out = np.zeros(blocks, np.int32), np.zeros((blocks, 32), np.int32)
    run("chain", blocks, 32, sums, out, path_limit=200_000)
    assert sums.tolist() == np.cumsum(np.arange(blocks) + 1).tolist()
    assert (out == np.cumsum(np.arange(blocks))[:, None]).all()


@pytest.mark.parametrize("policy", ["volta", "pascal"])
def test_two_that_wait_do_not_keep_the_third_from_running(policy):
    x, out = np.arange(1, 33, dtype=np.int32), np.zeros(32, np.int32)
    run("relay", 1, 96, x, out, scheduling=policy, path_limit=20_000, volatile_orders=True)
    a = x.tolist()
    for _ in range(40):
        a = [3 * v + 1 if v & 1 else v // 2 for v in a]
    assert out.tolist() == [2 * a[(31 - t) ^ 1] for t in range(32)]


@pytest.mark.parametrize("policy", ["volta", "pascal"])
def test_one_thread_waits_for_its_block(policy):
    parts, total = np.arange(256, dtype=np.float32).reshape(4, 64), np.zeros(64, np.float32)
    run("in_turn", 4, 64, parts, total, np.zeros(1, np.int32), np.int32(64), scheduling=policy, path_limit=20_000)
    assert total.tolist() == parts.sum(axis=0).tolist()


@pytest.mark.parametrize("policy", ["volta", "pascal"])
def test_two_that_wait_for_each_other_by_turns(policy):
    out, one = np.zeros(30, np.int32), np.zeros(1, np.int32)
    run("ring", 2, 1, np.zeros(4, np.int32), one, one.copy(), out, np.int32(30), scheduling=policy, path_limit=50_000)
    assert out.tolist() == [k * k for k in range(30)]


@pytest.mark.parametrize("policy", ["volta", "pascal"])
def test_both_policies_give_the_same_result(policy):
    a = np.arange(64, dtype=np.int32)
    out = np.zeros(64, np.int32)
    want = np.full(64, 2)
    for t in range(1, 64, 2):
        want[t] = 0
        for k in range(min(t, 19)):
            want[t] += want[t] + k % 3
    a[1::2] = np.minimum(a[1::2], 19)
    profile = run("swap_branches", 1, 64, a, out, scheduling=policy)
    assert out.tolist() == (want + 10).tolist()
    assert profile.counts.warp_efficiency < 1


def test_unknown_policy():
    with pytest.raises(ValueError, match="scheduling must be one of"):
        run("odd_count", 1, 64, scheduling="kepler")


def test_lanes_that_go_back_early_wait_at_the_barrier():
    out = np.zeros(300, np.int32)
    run("tasks", 4, 32, np.zeros(1, np.int32), out, np.int32(300))
    assert (out == np.arange(300) ** 2).all()


def test_addresses_whose_base_lies_before_the_memory():
    out = np.zeros(32, np.int32)
    run("from_the_end", 1, 32, out)
    assert out.tolist() == [*range(7, -1, -1), *range(31, 7, -1)]


def test_a_lock_in_a_loop_is_handed_on():
    """What releases the lock is an atomic operation, too, in the same loop; it does not look at memory."""
    code = """extern "C" __global__ void lock(int* lock, int* x, int rounds) {
        for (int r = 0; r < rounds; r++) {
            while (atomicCAS(lock, 0, 1) != 0);
            __threadfence();
            x[0] = x[0] + 1;
            __threadfence();
            atomicExch(lock, 0);
        }
    }"""
    x, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    simulate(CudaSource(code, "lock"), 8, 1, (lock, x, np.int32(5)))
    assert x[0] == 40


def test_warps_that_hand_on_a_turn_and_look_elsewhere_too():
    """The loop of rounds looks at memory as well; the warp that spins in the inner one must not starve the other."""
    code = """extern "C" __global__ void turns(volatile int* flags, int* looks, int rounds) {
        if (threadIdx.x % 32) return;
        int own = threadIdx.x / 32;
        for (int r = 1; r <= rounds; r++) {
            while (flags[own] < r);
            if (flags[2] == 99) looks[own] = r;
            flags[1 - own] = own ? r + 1 : r;
        }
    }"""
    flags, looks = np.array([1, 0, 0], np.int32), np.zeros(2, np.int32)
    simulate(CudaSource(code, "turns"), 1, 64, (flags, looks, np.int32(10)))
    assert flags.tolist() == [11, 10, 0]
