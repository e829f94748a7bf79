"""Observers of a launch: a new one comes in without a change elsewhere, and each event of a launch reaches it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from warpcourse.bench import hopper
from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.memory.tensor_maps import encode_tiled
from warplab.simulator.observer import EVENTS, Observer, Observers

SOURCE = r"""
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;
#define KERNEL extern "C" __global__ void

extern "C" __global__ void ratio(const float* a, const float* b, float* out, int* done, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] / b[i];
    if (i % 2) done[i] = 1;
}
KERNEL accesses(float* x) {
    __shared__ float s[32];
    int i = threadIdx.x;
    if (i % 2) s[i] = x[i]; else s[i] = -x[i];
    __syncwarp();
    float sum = s[31 - i] + __shfl_xor_sync(0xffffffff, x[i], 1);
    __threadfence();
    __syncthreads();
    atomicAdd(x, sum);
    int* p = new int[4];
    delete[] p;
}
KERNEL copies(const float* x, float* y, int n) {
    __shared__ float s[32];
    int i = threadIdx.x;
    unsigned at = __cvta_generic_to_shared(&s[i]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at), "l"(x + i), "r"(i < n ? 4 : 0));
    asm volatile("cp.async.wait_all;");
    y[i] = s[i];
}
KERNEL bulk(float* y) {
    __shared__ __align__(16) float s[4];
    s[threadIdx.x] = 1;
    __syncthreads();
    unsigned at = __cvta_generic_to_shared(s);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" :: "l"(y), "r"(at) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
KERNEL mbarriers() {
    __shared__ unsigned long long bar;
    unsigned at = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(at) : "memory");
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(at) : "memory");
}
KERNEL product(const half* a, const half* b, float* c, int k) {
    fragment<matrix_a, 16, 16, 16, half, row_major> of_a;
    fragment<matrix_b, 16, 16, 16, half, row_major> of_b;
    fragment<accumulator, 16, 16, 16, float> sum;
    if (k > 0) fill_fragment(sum, c[0]);
    __syncthreads();
    if (k > 0) {
        load_matrix_sync(of_a, a, 16);
        load_matrix_sync(of_b, b, 16);
        mma_sync(sum, of_a, of_b, sum);
        store_matrix_sync(c, sum, 16, mem_row_major);
    }
}
"""


class StoresPerArray(Observer):
    """Counts the elements that a launch stores to each array of global memory."""

    def __init__(self) -> None:
        self.stores: Counter[str | None] = Counter()

    def store(self, site, space, addresses, lanes, values) -> None:
        if space == "global":
            allocation = self.chunk.access.allocation(site, addresses)
            self.stores[allocation.name if allocation else None] += self.chunk.group.count


class NoNaN(Observer):
    """Stops a launch that loads a NaN, as a new kind of check would."""

    def loaded(self, site, space, addresses, lanes, values) -> None:
        bad = np.isnan(np.broadcast_to(values[0], self.chunk.group.count)) if site.dtype == "f4" else np.zeros(1, bool)
        if bad.any():
            lane = int(self.chunk.group.all_lanes[np.argmax(bad)])
            raise simulator.SimulatorError("a NaN was loaded", **self.chunk.where(site, lane))


def arrays(n=100):
    rng = np.random.default_rng(5)
    a, b = rng.random((2, n)).astype(np.float32) + 1
    return a, b, np.zeros(n, np.float32), np.zeros(n, np.int32)


def run(name, grid, block, arguments, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, arguments, **options)


@pytest.mark.parametrize("options", [{}, {"checks": False, "counters": False}, {"chunk_lanes": 32}])
def test_a_new_observer_needs_nothing_else(options):
    """`StoresPerArray` is passed to a launch; nothing else knows it."""
    a, b, out, done = arrays()
    seen = StoresPerArray()
    run("ratio", 4, 32, (a, b, out, done, np.int32(100)), observers=(seen,), **options)
    assert seen.stores == {"out": 100, "done": 50}
    np.testing.assert_array_equal(out, a / b)


def test_observers_change_no_counter():
    profiles = []
    for observers in ((), (StoresPerArray(), NoNaN())):
        profiles.append(run("ratio", 4, 32, (*arrays(), np.int32(100)), observers=observers))
    plain, watched = profiles
    assert plain.counts.global_store_requests == 8
    assert (plain.counts, plain.lines, plain.footprint) == (watched.counts, watched.lines, watched.footprint)
    assert len(plain.accesses) == len(watched.accesses) > 0


def test_an_observer_may_stop_a_launch():
    a, b, out, done = arrays()
    b[70] = np.nan
    with pytest.raises(simulator.SimulatorError, match="a NaN was loaded") as caught:
        run("ratio", 4, 32, (a, b, out, done, np.int32(100)), observers=(NoNaN(),))
    assert caught.value.block == (2, 0, 0)
    assert caught.value.thread == (6, 0, 0)
    assert caught.value.profile.counts.warp_instructions > 0


def test_checks_come_before_other_observers():
    """Whoever sees an access can rely on it: an illegal one has been refused."""
    a, b, out, done = arrays()
    seen = StoresPerArray()
    with pytest.raises(simulator.IllegalAddress):
        run("ratio", 4, 32, (a, b, out[:50], done, np.int32(100)), observers=(seen,), chunk_lanes=128)
    assert not seen.stores


ON_HOPPER = r"""
#include <warplab/hopper.cuh>
extern "C" __global__ void on_hopper(const __grid_constant__ TensorMap map, float *out) {
    __shared__ alignas(1024) half tile[64 * 64];
    __shared__ alignas(16) float ones[4];
    __shared__ unsigned long long full, arrived;
    __shared__ int sent;
    const unsigned at = shared_address(tile), barrier = shared_address(&full);
    if (threadIdx.x < 4) ones[threadIdx.x] = 1;
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        barrier_init(shared_address(&arrived), 1);
        fence_barrier_init();
        barrier_expect(shared_address(&arrived), sizeof sent);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::
                     "r"(shared_address(&sent)), "r"(1), "r"(shared_address(&arrived)) : "memory");
        barrier_expect(barrier, sizeof tile);
        load_box(at, map, 0, 0, barrier);
    }
    fence_for_tma();
    __syncthreads();
    barrier_wait(barrier, 0);
    barrier_wait(shared_address(&arrived), 0);
    float sum[32];
    wgmma_fence();
    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(at, 0, 0), mn_major(at, 0, 64), 0);
    wgmma_commit();
    wgmma_wait<0>();
    settle(sum);
    if (threadIdx.x > 3) out[threadIdx.x] = sum[0];
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 16;" :: "l"(out),
                     "r"(shared_address(ones)) : "memory");
        stores_commit();
        stores_have_read<0>();
    }
}
"""


def everything(events: set[str]) -> type[Observer]:
    """A class of observers that notes which events it is told of."""

    def note(event):
        return lambda self, *arguments: events.add(event)

    return type("Everything", (Observer,), {event: note(event) for event in EVENTS})


def test_each_event_happens():
    events: set[str] = set()
    see = {"observers": (everything(events)(),)}
    x = np.ones(256, np.float32)
    run("accesses", 1, 32, (x,), **see)
    run("copies", 1, 32, (x, x.copy(), np.int32(20)), **see)
    run("bulk", 1, 4, (x.copy(),), **see)
    run("mbarriers", 1, 32, (), **see)
    run("product", 1, 32, (x.astype(np.float16), x.astype(np.float16), x, np.int32(1)), **see)

    boxes = cp.asarray(np.ones((64, 64), np.float16))
    address = boxes.__cuda_array_interface__["data"][0]
    encoded = encode_tiled(6, 2, address, (64, 64), (128,), (64, 64), (1, 1), swizzle=3)
    arguments = np.frombuffer(encoded, "V128"), np.zeros(128, np.float32)
    simulate(CudaSource(ON_HOPPER, "on_hopper", ("-arch=sm_90a", *hopper.include())), 1, 128, arguments, **see)

    @cuda.jit
    def whole_grid(out):
        cuda.cg.this_grid().sync()
        out[cuda.grid(1)] = 1

    simulate(whole_grid, 2, 32, (np.zeros(64, np.float32),), **see)
    assert events == EVENTS


def test_only_interested_observers_are_called():
    observers = Observers([Observer(), StoresPerArray(), NoNaN()])
    assert {event for event in EVENTS if getattr(observers, event)} == {"loaded", "store"}
    assert observers.see_accesses
    assert not Observers([NoNaN()]).see_accesses
    with pytest.raises(AttributeError, match="stor"):
        observers.stor  # noqa: B018
