"""What the simulator catches: a defective kernel is reported with its location; its corrected twin runs silently."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ptx_harness import put
from tests.support.ptx_harness import run as run_ptx
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
extern "C" __global__ void no_guard(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i];
}
extern "C" __global__ void fours(const float4* a, float4* c) { c[threadIdx.x] = a[threadIdx.x]; }
extern "C" __global__ void guarded(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i];
}
extern "C" __global__ void before(const float* a, float* c) {
    int i = threadIdx.x;
    c[i] = a[i] + a[i - 1];
}
extern "C" __global__ void after_the_first(const float* a, float* c) {
    int i = threadIdx.x;
    c[i] = i > 0 ? a[i] + a[i - 1] : a[i];
}
extern "C" __global__ void by_four(const float* a, float* c, int shift) {
    ((float4*)c)[threadIdx.x] = *(const float4*)(a + shift + 4 * threadIdx.x);
}
extern "C" __global__ void by_two_shared(double* c, int shift) {
    __shared__ __align__(8) float before[6], s[66];
    if (threadIdx.x < 6) before[threadIdx.x] = 0;
    s[threadIdx.x] = s[threadIdx.x + 33] = 1;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = *(const double*)(s + 2 * threadIdx.x + (i == 41 ? shift : 0)) + before[threadIdx.x & 3];
}
extern "C" __global__ void shared_unwritten(float* c) {
    __shared__ float s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    c[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void shared_written(float* c) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    c[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void shared_overrun(float* c, int k) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    c[threadIdx.x] = s[threadIdx.x + k];
}
extern "C" __global__ void dynamic_overrun(float* c) {
    extern __shared__ float s[];
    s[threadIdx.x] = 1;
    c[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void barrier_in_if(float* c, int n) {
    if (threadIdx.x < n) { c[threadIdx.x] = 1; __syncthreads(); c[threadIdx.x] = 2; }
}
extern "C" __global__ void barrier_after_if(float* c, int n) {
    if (threadIdx.x < n) c[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x < n) c[threadIdx.x] = 2;
}
extern "C" __global__ void endless(float* c, int step) {
    for (int i = threadIdx.x; i < 1000; i += step) c[i] = i;
}
extern "C" __global__ void wait_for_the_last(volatile int* flag) {
    if (blockIdx.x == gridDim.x - 1) *flag = 1;
    while (*flag == 0) {}
}
extern "C" __global__ void polls(int* flag) {
    while (atomicAdd(flag, 0) == 0) {}
}
extern "C" __global__ void trap(float* c, int k) {
    if (threadIdx.x == k) __trap();
    c[threadIdx.x] = 0;
}
extern "C" __global__ void sum(const float* a, float* c) { c[0] = a[0] + a[1]; }
"""


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, args, **options)


@pytest.fixture
def device():
    return simulator.Device(64 << 20)


def line_of(text: str) -> int:
    return 1 + next(k for k, line in enumerate(SOURCE.splitlines()) if text in line)


def test_out_of_bounds():
    a, c = np.zeros(100, np.float32), np.zeros(100, np.float32)
    run("guarded", 1, 128, a, c, np.int32(100))
    with pytest.raises(simulator.IllegalAddress) as caught:
        run("no_guard", 2, 64, a, c, np.int32(100))
    error = caught.value
    assert (error.kernel, error.block, error.thread, error.array) == ("no_guard", (1, 0, 0), (36, 0, 0), "a")
    assert error.line == line_of("c[i] = a[i];")
    assert str(error) == (
        f"illegal address: a load of 4 bytes at {error.address:#x}: 4 bytes past the end of array `a` (400 bytes), "
        "element 100 (so do 27 other threads)\n"
        "  in kernel no_guard, block (1, 0, 0), thread (36, 0, 0)\n"
        f"  at kernel.cu, line {error.line}: c[i] = a[i];\n"
        "  Is a guard missing (`if (i < n)`), or is the index or the size wrong?"
    )


def test_of_two_threads_that_leave_an_array_the_other_is_one_more():
    with pytest.raises(simulator.IllegalAddress, match=r"element 62 \(so does one more\)"):
        run("no_guard", 1, 64, np.zeros(62, np.float32), np.zeros(64, np.float32), np.int32(62))


def test_threads_that_go_to_one_place_are_all_counted():
    """Of an address that is one for all lanes, NumPy holds one entry."""
    source = CudaSource('extern "C" __global__ void k(int* a, int n) { a[n] = 1; }', "k")
    with pytest.raises(simulator.IllegalAddress, match=r"element 9 \(so do 63 other threads\)"):
        simulate(source, 1, 64, (np.zeros(9, np.int32), np.int32(9)))


def test_the_guard_of_four_elements():
    with pytest.raises(simulator.IllegalAddress, match=r"a guard missing \(`if \(4 \* i \+ 3 < n\)`\)"):
        run("fours", 1, 32, np.zeros(101, np.float32), np.zeros(128, np.float32))


def test_before_the_array():
    a, c = np.zeros(32, np.float32), np.zeros(32, np.float32)
    run("after_the_first", 1, 32, a, c)
    with pytest.raises(simulator.IllegalAddress, match="4 bytes before the start of array `a`") as caught:
        run("before", 1, 32, a, c)
    assert caught.value.thread == (0, 0, 0)


def test_host_pointer(device):
    host = np.zeros(64, np.float32)
    target = put(device, host)
    entry = CudaSource(SOURCE, "guarded").load()
    params = [host.ctypes.data.to_bytes(8, "little"), target.to_bytes(8, "little"), (64).to_bytes(4, "little")]
    with pytest.raises(simulator.HostPointer, match="host memory, which a kernel cannot reach"):
        device.launch(entry, (1,), (64,), params)
    params[0] = put(device, host).to_bytes(8, "little")
    device.launch(entry, (1,), (64,), params)


def test_null_pointer_and_use_after_free(device):
    entry = CudaSource(SOURCE, "guarded").load()
    target, source = put(device, np.zeros(64, np.float32)), put(device, np.zeros(64, np.float32), "old")
    params = [(0).to_bytes(8, "little"), target.to_bytes(8, "little"), (64).to_bytes(4, "little")]
    with pytest.raises(simulator.IllegalAddress, match="null pointer"):
        device.launch(entry, (1,), (64,), params)
    params[0] = source.to_bytes(8, "little")
    device.launch(entry, (1,), (64,), params)
    device.memory.free(source)
    with pytest.raises(simulator.IllegalAddress, match=r"element 0 of array `old`.*which has been freed"):
        device.launch(entry, (1,), (64,), params)


def test_misaligned():
    a, c = np.zeros(200, np.float32), np.zeros(128, np.float32)
    run("by_four", 1, 32, a, c, np.int32(4))
    with pytest.raises(simulator.MisalignedAddress, match=r"a load of 16 bytes .* byte 4 of array `a`") as caught:
        run("by_four", 1, 32, a, c, np.int32(1))
    assert caught.value.line == line_of("((float4*)c)")
    c = np.zeros(66)
    run("by_two_shared", 2, 33, c, np.int32(2))
    with pytest.raises(simulator.MisalignedAddress, match=r"8 bytes at byte \d+ of shared memory \(.*`s`\)") as caught:
        run("by_two_shared", 2, 33, c, np.int32(1))
    assert (caught.value.block, caught.value.thread, caught.value.array) == ((1, 0, 0), (8, 0, 0), "s")


def test_uninitialised_global_read(device):
    entry = CudaSource(SOURCE, "guarded").load()
    source, target = device.memory.allocate(256, "a"), device.memory.allocate(256, "c")
    params = [v.to_bytes(8, "little") for v in (source, target)] + [(64).to_bytes(4, "little")]
    with pytest.raises(simulator.UninitializedRead, match=r"byte 0 of array `a`.* was never written"):
        device.launch(entry, (1,), (64,), params)
    device.memory.mark_initialized(source, 252)
    with pytest.raises(simulator.UninitializedRead, match=r"byte 252 of array `a`") as caught:
        device.launch(entry, (1,), (64,), params)
    assert caught.value.thread == (63, 0, 0)
    device.memory.mark_initialized(source + 252, 4)
    device.launch(entry, (1,), (64,), params)
    again = [v.to_bytes(8, "little") for v in (target, source)] + [(64).to_bytes(4, "little")]
    device.launch(entry, (1,), (64,), again)  # what a kernel wrote counts as written


def test_uninitialised_shared_read():
    c = np.zeros(64, np.float32)
    run("shared_written", 2, 64, c)
    with pytest.raises(
        simulator.UninitializedRead, match=r"byte 128 of shared memory \(element 32 of `s`\) was never"
    ) as caught:
        run("shared_unwritten", 2, 64, c)
    assert caught.value.thread == (32, 0, 0)


def test_a_misaligned_address_that_is_a_number_is_placed():
    body = ".shared .align 4 .b8 s[64]; st.shared.b32 [5], %a; mov.b32 %d, %a;"
    with pytest.raises(simulator.MisalignedAddress, match=r"4 bytes at byte 5 of shared memory"):
        run_ptx(body, [("b32", np.arange(128))], "b32")


@pytest.mark.parametrize("blocks", [1, 3])
def test_shared_overrun(blocks):
    c = np.zeros(64, np.float32)
    run("shared_overrun", blocks, 64, c, np.int32(0))
    with pytest.raises(simulator.IllegalAddress, match=r"byte 256 of shared memory \(element 64 of `s`\), of which"):
        run("shared_overrun", blocks, 64, c, np.int32(1))
    with pytest.raises(simulator.IllegalAddress, match=r"array too large\? Each block has its own\.$"):
        run("shared_overrun", blocks, 64, c, np.int32(1))
    with pytest.raises(simulator.IllegalAddress, match=r"too large, or was too little dynamic shared memory given"):
        run("dynamic_overrun", blocks, 64, c)


@pytest.mark.parametrize("n", [16, 32, 33])
def test_divergent_barrier(n):
    c = np.zeros(64, np.float32)
    run("barrier_after_if", 1, 64, c, np.int32(n))
    run("barrier_in_if", 1, 64, c, np.int32(64))
    with pytest.raises(simulator.DivergentBarrier) as caught:
        run("barrier_in_if", 2, 64, c, np.int32(n))
    assert caught.value.line == line_of("if (threadIdx.x < n) { c[threadIdx.x] = 1; __syncthreads()")
    assert "Every thread of the block must reach" in str(caught.value)


def test_endless_loop():
    c = np.zeros(1000, np.float32)
    run("endless", 1, 32, c, np.int32(32), path_limit=10_000)
    with pytest.raises(simulator.InstructionLimit, match="does not end: stopped after") as caught:
        run("endless", 1, 32, c, np.int32(0), path_limit=10_000)
    assert caught.value.line == line_of("i += step")
    assert caught.value.one_path
    assert "simulate(..., path_limit=100000)" in caught.value.reason


def test_a_launch_with_too_much_to_do_is_told_from_an_endless_one():
    c = np.zeros(1000, np.float32)
    with pytest.raises(simulator.InstructionLimit, match="the launch is too long: stopped after") as caught:
        run("endless", 1, 32, c, np.int32(1), instruction_limit=40_000, races=False)
    assert not caught.value.one_path
    assert "warplab.simulate(kernel, grid, block, args, instruction_limit=2**40)" in caught.value.reason
    run("endless", 1, 32, c, np.int32(1), instruction_limit=4_000_000, races=False)


def test_only_what_works_for_long_without_getting_on_is_too_long(monkeypatch):
    monkeypatch.setattr("warplab.simulator.run.device.CHUNK_SHARE", 20_000)
    c = np.zeros(1000, np.float32)
    run("endless", 1, 32, c, np.int32(1))
    run("endless", 1, 32, c, np.int32(1), instruction_limit=2**40)  # an explicit limit wins
    with pytest.raises(simulator.InstructionLimit, match=r"too long: .* of its threads, [\d,]+ on one path") as caught:
        run("endless", 1, 32, c, np.int32(1), max_seconds=0)
    assert not caught.value.one_path
    assert "warplab.simulate(kernel, grid, block, args, max_seconds=600)." in caught.value.reason


def test_ten_thousand_rounds_of_all_threads_are_not_too_long():
    code = """extern "C" __global__ void mix(unsigned* out, int n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
        for (int j = 0; j < n; j++) { x = x * 1664525u + 1013904223u; x ^= x >> 7; }
        out[i] = x;
    }"""
    out, expected = np.zeros(32768, np.uint32), np.arange(32768, dtype=np.uint32)
    source = CudaSource(code, "mix")
    few = {"checks": False, "counters": False, "max_seconds": 0}
    with pytest.raises(simulator.InstructionLimit, match="too long"):  # so it needs more than a chunk's share
        simulate(source, 128, 256, (out, np.int32(12_000)), **few)
    simulate(source, 128, 256, (out, np.int32(12_000)), **few | {"max_seconds": None})
    for _ in range(12_000):
        expected = expected * np.uint32(1664525) + np.uint32(1013904223)
        expected ^= expected >> np.uint32(7)
    np.testing.assert_array_equal(out, expected)


def test_a_launch_whose_threads_go_on_ending_is_not_too_long(monkeypatch):
    code = """
    extern "C" __global__ void longer_and_longer(int* c, int last) {
        int t = threadIdx.x, sum = 0;
        for (int k = 0; k < 64; k++) {
            if (k == t) { c[t] = sum; return; }
            for (int i = 0; i < (k == last ? 1000 : 10); i++) sum = sum * 3 + (sum >> 3) + i;
        }
    }"""
    # Less than the chunk takes, but more than it takes from one end to the next.
    monkeypatch.setattr("warplab.simulator.run.device.CHUNK_SHARE", 25_000)
    c = np.zeros(64, np.int32)
    few = {"max_seconds": 0, "counters": False}
    simulate(CudaSource(code, "longer_and_longer"), 1, 64, (c, np.int32(-1)), **few)
    assert c[1:].all()
    with pytest.raises(simulator.InstructionLimit, match="the launch is too long"):
        simulate(CudaSource(code, "longer_and_longer"), 1, 64, (c, np.int32(3)), **few)


def test_a_block_cannot_wait_for_one_that_has_not_begun():
    flag = np.zeros(1, np.int32)
    run("wait_for_the_last", 4, 32, flag)
    with pytest.raises(simulator.InstructionLimit, match="does not end") as caught:
        run("wait_for_the_last", 4, 32, np.zeros(1, np.int32), chunk_lanes=64, path_limit=10_000)
    assert "The loop waits for memory that another thread must change" in caught.value.reason
    assert "2 of the 4 blocks at a time (option chunk_lanes)" in caught.value.reason


def test_an_atomic_that_changes_nothing_waits_for_memory():
    run("polls", 1, 32, np.ones(1, np.int32))
    with pytest.raises(simulator.InstructionLimit) as caught:
        run("polls", 1, 32, np.zeros(1, np.int32), path_limit=10_000)
    assert "The loop waits for memory that another thread must change" in caught.value.reason


def test_trap():
    c = np.zeros(32, np.float32)
    run("trap", 1, 32, c, np.int32(99))
    with pytest.raises(simulator.SimulatorError, match="stopped itself") as caught:
        run("trap", 1, 32, c, np.int32(5))
    assert caught.value.thread == (5, 0, 0)


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "block dimension x is 1,025; it must be from 1 to 1,024"),
        (1, (32, 33), "a block of 32 × 33 × 1 = 1,056 threads; a GPU runs at most 1,024"),
        (0, 32, "grid dimension x is 0"),
        ((1, 70000), 32, "grid dimension y is 70,000; it must be from 1 to 65,535"),
        (1, (1, 1, 65), "block dimension z is 65"),
    ],
)
def test_launches_that_no_gpu_accepts(grid, block, message):
    c = np.zeros(32, np.float32)
    with pytest.raises(simulator.InvalidLaunch, match=message):
        run("shared_written", grid, block, c)


def test_wrong_parameters(device):
    entry = CudaSource(SOURCE, "guarded").load()
    with pytest.raises(simulator.InvalidLaunch, match="takes 3 parameters, 1 were given"):
        device.launch(entry, (1,), (1,), [bytes(8)])
    with pytest.raises(simulator.InvalidLaunch, match=r"parameter 2 .* has 4 bytes \(\.u32\), 8 were given"):
        device.launch(entry, (1,), (1,), [bytes(8), bytes(8), bytes(8)])
    with pytest.raises(simulator.InvalidLaunch, match="shared memory"):
        device.launch(entry, (1,), (1,), [bytes(8), bytes(8), bytes(4)], shared_bytes=300_000)


def test_unsupported_instruction_names_its_line():
    source = """extern "C" __global__ void k(int* a) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 64;");
    a[0] = 1;
}"""
    with pytest.raises(simulator.UnsupportedInstruction) as caught:
        simulate(CudaSource(source, "k"), 1, 1, (np.zeros(1, np.int32),))
    assert "does not know the PTX instruction `setmaxnreg.inc.sync.aligned.u32 64`" in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("kernel.cu", 2)


def test_unreadable_ptx():
    with pytest.raises(simulator.UnsupportedInstruction, match="ends before"):
        simulator.load(".version 9.0\n.target sm_90\n.visible .entry k() { ret")
    with pytest.raises(simulator.UnsupportedInstruction, match="cannot read"):
        simulator.load(".version 9.0\n.global nonsense;")


def test_memory_is_limited_and_reused(device):
    with pytest.raises(MemoryError, match="out of device memory: asked for"):
        device.memory.allocate(1 << 40)
    for _ in range(40):  # 40 × 32 MiB does not fit without reuse
        address = device.memory.allocate(32 << 20)
        device.memory.view(address, 4)[:] = 1
        device.memory.free(address)
    assert device.memory.used_bytes == 0
    with pytest.raises(ValueError, match="not the address of an allocation"):
        device.memory.free(12345)
    address = device.memory.allocate(64)
    assert not device.memory.view(address, 64).any()


def test_checks_can_be_switched_off(device):
    entry = CudaSource(SOURCE, "guarded").load()
    source, target = device.memory.allocate(256), device.memory.allocate(256)
    params = [v.to_bytes(8, "little") for v in (source, target)] + [(64).to_bytes(4, "little")]
    profile = device.launch(entry, (1,), (64,), params, options=simulator.Options(checks=False, counters=False))
    assert profile.counts == simulator.Counts()
