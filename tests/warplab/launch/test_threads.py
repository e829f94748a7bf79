"""Several threads that compile, launch, allocate and profile at the same time; docs/simulator.md says what is safe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from warplab import profile, simulator, virtual_devices
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.run.device import Device, default_device, using_device

THREADS, ROUNDS = 4, 25

# The index is known at run time only, so the compiler takes the address of the parameter.
PICK = CudaSource(
    """struct Table { int a[64]; };
    extern "C" __global__ void pick(int* out, const __grid_constant__ Table t, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = t.a[out[i] & 63];
    }""",
    "pick",
)


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(work: Callable[[int], None]) -> None:
    """Run work(k) in `THREADS` threads that begin together. Raises what the first one to fail raised."""
    failed: list[BaseException] = []
    together = threading.Barrier(THREADS)

    def run(k: int) -> None:
        together.wait()
        try:
            work(k)
        except BaseException as error:  # pytest sees only those of its own thread
            failed.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def picked(k: int, n: int, observers: tuple = ()) -> None:
    """Launch `pick` with a table of thread k's own, and compare."""
    rng = np.random.default_rng(k)
    index = rng.integers(-(2**31), 2**31, n, dtype=np.int32)
    table = np.zeros(1, [("a", "<i4", 64)])
    table["a"] = rng.integers(-(2**31), 2**31, 64)
    out = index.copy()
    simulate(PICK, -(-n // 128), 128, (out, table, np.int32(n)), chunk_lanes=256, observers=observers)
    np.testing.assert_array_equal(out, table["a"][0][index & 63])


def test_each_launch_has_its_own_parameters():
    def work(k: int) -> None:
        for number in range(ROUNDS):
            picked(100 * k + number, 700 + k)

    in_threads(work)


def test_a_launch_inside_another_one_has_its_own_parameters():
    class Launches(simulator.Observer):
        done = 0

        def store(self, *event) -> None:
            self.done += 1
            picked(self.done, 30)

    observer = Launches()
    picked(7, 700, (observer,))
    assert observer.done >= 3


def test_a_kernel_that_threads_compile_at_once_is_one_program():
    code = f"""__device__ int counter;  // {{}} {id(object())}
    extern "C" __global__ void count(int* seen) {{{{ seen[0] = atomicAdd(&counter, 1); }}}}"""

    for number in range(3):
        sources = [CudaSource(code.format(number), "count") for _ in range(THREADS)]
        seen: list[int] = []

        def work(k: int, sources=sources, seen=seen) -> None:
            out = np.zeros(1, np.int32)
            simulate(sources[k], 1, 1, (out,))
            seen.append(int(out[0]))

        in_threads(work)
        assert sorted(seen) == list(range(THREADS))  # one counter, not one per thread


def test_a_numba_kernel_is_compiled_once():
    @cuda.jit
    def scale(x, factor):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= factor

    def work(k: int) -> None:
        x = cuda.to_device(np.arange(100, dtype=np.float32))
        scale[4, 32](x, np.float32(k))
        np.testing.assert_array_equal(x.copy_to_host(), np.arange(100, dtype=np.float32) * k)

    in_threads(work)
    assert len(scale.overloads) == 1


def test_threads_allocate_and_free():
    memory = simulator.default_device().memory
    used = memory.used_bytes

    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        kept = []
        for _ in range(40 * ROUNDS):
            values = rng.integers(0, 256, int(rng.integers(1, 300)), dtype=np.uint8)
            kept.append((values, cp.asarray(values)))
            if len(kept) > 5:
                values, array = kept.pop(int(rng.integers(len(kept))))
                np.testing.assert_array_equal(array.get(), values)

    in_threads(work)
    cp.zeros(1)  # frees what was given up while another thread allocated
    assert memory.used_bytes == used


def test_memory_that_is_given_up_while_the_lists_change_is_freed_later():
    memory = DeviceMemory(1 << 20)
    address = memory.allocate(100)
    with memory._lock:  # Python can collect an array at any moment, in the thread that allocates
        memory.release(address)
        assert memory.used_bytes == 100
    memory.allocate(50)
    assert memory.used_bytes == 50


def test_what_another_thread_writes_meanwhile_is_not_undone():
    memory = DeviceMemory(1 << 20)
    ours, theirs, gone = (memory.allocate(4) for _ in range(3))
    before = memory.contents()
    memory.view(ours, 4)[:] = 1
    with memory.host_write(theirs):
        memory.view(theirs, 4)[:] = 2
    memory.free(gone)
    assert not memory.same(before)
    memory.replace(before)
    assert memory.view(ours, 4).tolist() == [0] * 4
    assert memory.view(theirs, 4).tolist() == [2] * 4
    assert memory.same(before)


def test_a_profile_has_the_launches_of_its_own_thread():
    def work(k: int) -> None:
        with profile() as mine:
            for _ in range(k + 1):
                recorded()
        assert len(mine) == k + 1

    in_threads(work)


def test_a_profile_has_the_launches_of_threads_without_one():
    with profile() as everyone:
        in_threads(lambda k: recorded())
    assert len(everyone) == THREADS
    assert everyone.counts.warp_instructions > 0


def recorded() -> None:
    cp.RawKernel(PICK.code, "pick")((1,), (32,), (cp.zeros(32, np.int32), np.zeros(1, [("a", "<i4", 64)]), np.int32(9)))


def test_a_thread_takes_back_its_own_device_alone():
    own = [Device() for _ in range(THREADS)]

    def work(k: int) -> None:
        for _ in range(5000):
            with using_device(own[k]):
                assert default_device() is own[k]

    in_threads(work)


def test_each_thread_has_its_current_device():
    with virtual_devices(THREADS):

        def work(k: int) -> None:
            assert cp.cuda.Device().id == 0
            for _ in range(ROUNDS):
                with cp.cuda.Device(k):
                    assert cp.zeros(1).device.id == k
            cuda.select_device((k + 1) % THREADS)
            assert cp.zeros(1).device.id == (k + 1) % THREADS

        in_threads(work)
        assert cp.cuda.Device().id == 0
