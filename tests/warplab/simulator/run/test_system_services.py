"""What a kernel asks of the system: clocks, special registers, assert, heap memory, clusters, hints."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SYSTEM = """
#define KERNEL extern "C" __global__ void
__constant__ int constants[4] = {1, 2, 3, 4};
#ifndef REGISTERS
#define REGISTERS 64
#endif
template <class T> __device__ T kept(T x) { asm volatile("" : "+l"(x)); return x; }

KERNEL clocks(long long* out, int n) {
    long long start = clock64();
    int x = n;
    for (int i = 0; i < n; i++) x = x * 3 + out[0];
    out[1] = clock64() - start;
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
    out[2] = after - before;
    out[3] = before;
    unsigned low = clock();
    out[4] = clock() - low;
    out[5] = x;
}
KERNEL clock_of_block(long long* out) { if (threadIdx.x == 0) out[blockIdx.x] = clock64(); }
KERNEL registers(unsigned* out) {
    extern volatile __shared__ int dynamic[];
    volatile __shared__ int fixed[8];
    unsigned x;
    fixed[threadIdx.x] = dynamic[threadIdx.x] = 1;
    unsigned* mine = out + 8 * blockIdx.x;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(x)); mine[0] = x;
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(x)); mine[1] = x;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(x)); mine[2] = x;
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(x)); mine[3] = x;
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(x)); mine[4] = x;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(x)); mine[5] = x;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(x)); mine[6] = x;
    asm volatile("{ .reg .u64 g; mov.u64 g, %%gridid; cvt.u32.u64 %0, g; }" : "=r"(x)); mine[7] = x;
}
KERNEL spaces(int* out) {
    __shared__ int s[2];
    int local[4];
    local[out[0]] = 1;
    s[out[0]] = 2;
    const void* pointers[4] = {kept((const void*)out), kept((const void*)s), kept((const void*)local),
                               kept((const void*)constants)};
    for (int i = 0; i < 4; i++)
        out[i] = __isGlobal(pointers[i]) + 2 * __isShared(pointers[i]) + 4 * __isLocal(pointers[i])
                 + 8 * __isConstant(pointers[i]);
    out[4] = local[0] + s[0];
}
KERNEL hints(int* out) {
    asm volatile("prefetch.global.L2 [%0];" :: "l"(out));
    asm volatile("discard.global.L2 [%0], 128;" :: "l"(out));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" :: "l"(out));
    asm volatile("griddepcontrol.wait;");
    asm volatile("griddepcontrol.launch_dependents;");
    out[0] = 1;
}
KERNEL policies(const int* x, int* out) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(out[0]) : "l"(x), "l"(policy));
}
KERNEL counters(unsigned long long* out) {
    unsigned x;
    asm volatile("mov.u32 %0, %%pm3;" : "=r"(x)); out[0] = x;
    asm volatile("mov.u64 %0, %%pm7_64;" : "=l"(out[1]));
    asm volatile("mov.u64 %0, %%current_graph_exec;" : "=l"(out[2]));
}
KERNEL stops_for_a_debugger(int* out) { out[0] = 1; __brkpt(); out[0] = 2; }
KERNEL more_registers(int* out) { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(REGISTERS)); out[0] = 1; }
KERNEL checked(const int* x) {
    assert(x[threadIdx.x] > 0);
}
"""


def test_clocks_count_on():
    short, long = np.zeros(6, "i8"), np.zeros(6, "i8")
    simulate(CudaSource(SYSTEM, "clocks"), 1, 32, (short, np.int32(40)), races=False)
    simulate(CudaSource(SYSTEM, "clocks"), 1, 32, (long, np.int32(400)), races=False)
    assert 0 < short[1] < long[1]
    assert short[2] >= 1000
    assert long[3] > short[3]  # the timer goes on from launch to launch
    assert 0 < short[4] < 10


def test_clocks_go_on_from_launch_to_launch():
    """Also in the blocks that the simulator runs later than others."""
    device, last = simulator.Device(64 << 20), 0
    for chunk_lanes in (32, 128, 32):
        out = np.zeros(4, "i8")
        options = {"device": device, "chunk_lanes": chunk_lanes}
        simulate(CudaSource(SYSTEM, "clock_of_block"), 4, 32, (out,), **options)
        assert min(out) > last
        assert (np.diff(out) > 0).all() == (chunk_lanes == 32)
        last = max(out)


def test_special_registers():
    out = np.zeros((3, 8), "u4")
    simulate(CudaSource(SYSTEM, "registers"), 3, 8, (out.reshape(-1),), shared_bytes=32, races=False)
    launches = out[:, 7].copy()
    simulate(CudaSource(SYSTEM, "registers"), 3, 8, (out.reshape(-1),), shared_bytes=32, races=False)
    np.testing.assert_array_equal(out[:, 0], [0, 1, 2])
    assert (out[:, 1] >= 3).all()
    assert (out[:, 2] == 32).all()
    assert (out[:, 3] == 128).all()  # in units of 128 bytes
    assert (out[:, 4] == 0).all()
    np.testing.assert_array_equal(out[:, 5], [0, 1, 2])
    assert (out[:, 6] == 1).all()
    np.testing.assert_array_equal(out[:, 7], launches + 1)


def test_the_space_of_an_address():
    out = np.zeros(5, "i4")
    simulate(CudaSource(SYSTEM, "spaces"), 1, 1, (out,))
    assert out.tolist() == [1, 2, 4, 8, 3]


def test_hints_do_nothing():
    out = np.zeros(32, "i4")
    simulate(CudaSource(SYSTEM, "hints"), 1, 1, (out,))
    assert out[0] == 1


def test_cache_policies_are_hints():
    out = np.zeros(1, "i4")
    simulate(CudaSource(SYSTEM, "policies"), 1, 1, (np.array([7], "i4"), out))
    assert out[0] == 7


def test_registers_that_nobody_sets_are_zero():
    out = np.ones(3, "u8")
    simulate(CudaSource(SYSTEM, "counters"), 1, 1, (out,))
    assert out.tolist() == [0, 0, 0]


def test_a_breakpoint_ends_the_kernel():
    """As on an H200 without a debugger."""
    out = np.zeros(1, "i4")
    with pytest.raises(simulator.SimulatorError, match=r"breakpoint[^$]* print values by printf, and remove it\.$"):
        simulate(CudaSource(SYSTEM, "stops_for_a_debugger"), 1, 1, (out,))


def test_a_breakpoint_of_python_ends_the_kernel():
    def stops(out):
        breakpoint()
        out[0] = 1

    with pytest.raises(simulator.SimulatorError, match=r"breakpoint\(\)\n.* \(in Numba print\(\)\), and remove it"):
        simulate(stops, 1, 1, (np.zeros(1, "i4"),))


def test_register_reallocation():
    def run(target: str, registers: int) -> int:
        out, options = np.zeros(1, "i4"), (f"-arch={target}", f"-DREGISTERS={registers}")
        simulate(CudaSource(SYSTEM, "more_registers", options), 1, 128, (out,))
        return int(out[0])

    assert run("compute_90a", 64) == 1
    with pytest.raises(simulator.UnsupportedInstruction, match=r"setmaxnreg.*compile with -arch=sm_90a"):
        run("compute_90", 64)
    with pytest.raises(simulator.UnsupportedInstruction, match="a multiple of 8 from 24 to 256"):
        run("compute_90a", 20)


def test_device_assert():
    with pytest.raises(
        simulator.AssertFailed, match=r"assertion failed: x\[threadIdx.x\] > 0 \(in .*checked"
    ) as caught:
        simulate(CudaSource(SYSTEM, "checked"), 1, 4, (np.array([1, 2, 0, 0], "i4"),))
    error = caught.value
    assert error.expression == "x[threadIdx.x] > 0"
    assert error.thread == (2, 0, 0)
    assert (error.file, SYSTEM.splitlines()[error.line - 1].strip()) == ("kernel.cu", "assert(x[threadIdx.x] > 0);")
    assert not [a for a in simulator.default_device().memory._allocations if a.name == "x"]
    simulate(CudaSource(SYSTEM, "checked"), 1, 4, (np.ones(4, "i4"),))


# -- memory that a kernel allocates --------------------------------------------------------------------------------

HEAP = """
#define KERNEL extern "C" __global__ void
struct Node { int value; Node* next; };
KERNEL lists(int* out) {
    Node* head = nullptr;
    for (int i = 0; i <= threadIdx.x; i++) head = new Node{i, head};
    int sum = 0;
    while (head) { sum += head->value; Node* next = head->next; delete head; head = next; }
    out[threadIdx.x] = sum;
}
KERNEL keep(float** out, int n) {
    float* p = (float*)malloc(n * sizeof(float));
    out[threadIdx.x] = p;
    if (p) for (int i = n - 50; i < n; i++) p[i] = i + threadIdx.x;
}
KERNEL take(float** kept, float* out, int n) { out[threadIdx.x] = kept[threadIdx.x][n - 1]; free(kept[threadIdx.x]); }
KERNEL past_the_end(int* out) { int* p = new int[10]; p[threadIdx.x + 8] = 1; delete[] p; }
KERNEL after_free(int* out) { int* p = (int*)malloc(4); *p = 1; free(p); out[0] = *p; }
KERNEL twice(int* out) { void* p = malloc(4); free(p); free(p); }
KERNEL elsewhere(int* out) { free(nullptr); free(out); }
KERNEL unwritten(int* out) { int* p = new int[4]; p[out[0]] = 3; out[1] = p[out[0] + 1]; delete[] p; }
"""


def heap(name: str, threads: int, *args):
    return simulate(CudaSource(HEAP, name), 1, threads, args)


def test_linked_lists():
    out = np.zeros(40, "i4")
    used = simulator.default_device().heap.used_bytes
    heap("lists", 40, out)
    assert out.tolist() == [n * (n + 1) // 2 for n in range(40)]
    assert simulator.default_device().heap.used_bytes == used


def test_memory_outlives_its_kernel():
    pointers, out = np.zeros(33, "u8"), np.zeros(33, "f4")
    heap("keep", 33, pointers, np.int32(50))
    assert len(set(pointers.tolist())) == 33
    heap("take", 33, pointers, out, np.int32(50))
    assert out.tolist() == [49 + k for k in range(33)]


def test_the_heap_ends():
    pointers = np.zeros(3, "u8")
    heap("keep", 3, pointers, np.int32(900_000))  # of 8 MiB, two blocks of 3.6 MB
    assert (pointers != 0).tolist() == [True, True, False]
    for address in pointers[:2].tolist():
        simulator.default_device().heap.free(address)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("past_the_end", simulator.IllegalAddress, r"4 bytes past the end of array `malloc, line 17` \(40 bytes\)"),
        (
            "after_free",
            simulator.IllegalAddress,
            r"array `malloc, line 18` .*which has been freed(.|\n)*\(free, delete\)",
        ),
        ("twice", simulator.IllegalAddress, "free of 0x.*, which has been freed before"),
        ("elsewhere", simulator.IllegalAddress, "free of 0x.*, which malloc did not return"),
        ("unwritten", simulator.UninitializedRead, "byte 4 of array `malloc, line 21`"),
    ],
)
def test_mistakes_with_memory(name, error, message):
    with pytest.raises(error, match=message) as caught:
        heap(name, 3 if name == "past_the_end" else 1, np.zeros(2, "i4"))
    assert f"KERNEL {name}(" in caught.value.source


# -- clusters of one block -----------------------------------------------------------------------------------------

CLUSTERS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
KERNEL neighbours(int* out) {
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = threadIdx.x;
    cluster.sync();
    int* mine = cluster.map_shared_rank(s, 0);
    out[blockIdx.x * 64 + threadIdx.x] = mine[63 - threadIdx.x] + 100 * cluster.num_blocks() + cluster.block_rank();
}
KERNEL arrive_and_wait(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x >= 48) return;  // those who have ended are not waited for
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    int own = 2 * threadIdx.x;
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    out[threadIdx.x] = own + s[47 - threadIdx.x];
}
KERNEL without_a_wait(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    out[threadIdx.x] = s[63 - threadIdx.x];
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
KERNEL only_a_wait() { asm volatile("barrier.cluster.wait;"); }
KERNEL some_arrive() {
    if (threadIdx.x < 32) asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    else asm volatile("bar.sync 1, 64;");
}
KERNEL another_rank(int* out) {
    __shared__ int s;
    out[0] = *cg::this_cluster().map_shared_rank(&s, 1);
}
"""


def cluster(name: str, *args, blocks: int = 1):
    return simulate(CudaSource(CLUSTERS, name), blocks, 64, args)


def test_every_block_is_a_cluster_unless_the_kernel_says_otherwise():
    out = np.zeros(128, "i4")
    cluster("neighbours", out, blocks=2)
    assert out.tolist() == [163 - k for k in range(64)] * 2
    out = np.zeros(48, "i4")
    cluster("arrive_and_wait", out)
    assert out.tolist() == [2 * k + 47 - k for k in range(48)]


def test_mistakes_with_clusters():
    with pytest.raises(simulator.DataRace, match="shared memory"):
        cluster("without_a_wait", np.zeros(64, "i4"))
    with pytest.raises(simulator.SimulatorError, match=r"barrier\.cluster\.wait without an arrive"):
        cluster("only_a_wait")
    with pytest.raises(simulator.DivergentBarrier, match="have ended or wait elsewhere"):
        cluster("some_arrive")
    with pytest.raises(simulator.SimulatorError, match="block 1 of a cluster of one block"):
        cluster("another_rank", np.zeros(1, "i4"))
