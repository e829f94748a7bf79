"""Kernels of several devices at the same time: nobody starves, a wait without end is told, each device has its own."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.dropin.virtual_devices import virtual_devices
from warplab.launch.kernel_source import CudaSource
from warplab.launch.profiling import RecordedLaunches, collect, stop
from warplab.simulator import (
    DeviceDeadlock,
    DeviceRace,
    DivergentBarrier,
    IllegalAddress,
    InvalidLaunch,
    SimulatorError,
)

SOURCE = r"""
#define FENCE __threadfence_system()
KERNEL ring(volatile unsigned* mine, volatile unsigned* next, unsigned starter) {
    if (threadIdx.x == 0) {
        if (blockIdx.x != starter) while (mine[blockIdx.x] < 1);
        FENCE;
        next[blockIdx.x] = 1;
    }
    __syncthreads();
}
KERNEL ping(volatile int* ball, volatile int* other, int rounds, int first) {
    for (int r = 1; r <= rounds; r++) {
        if (first) *other = r;
        while (*ball < r);
        if (!first) *other = r;
    }
}
KERNEL patient(volatile int* flag, int* looks, int most) {
    int i = 0;
    while (*flag == 0 && i < most) i++;
    *looks = i;
}
KERNEL counting(volatile int* flag, int* looks) { int i = 0; while (*flag == 0) i++; *looks = i; }
KERNEL set(volatile int* flag) { *flag = 1; }
KERNEL set_late(volatile int* flag, int n) {
    __shared__ volatile int x;
    x = 0;
    for (int i = 0; i < n; i++) x = x + 1;
    *flag = x;
}
KERNEL plain(int* flag, int* out) { while (*flag == 0); *out = 1; }
KERNEL lock(int* lock, int* x, int rounds) {
    for (int r = 0; r < rounds; r++) {
        while (atomicCAS_system(lock, 0, 1) != 0);
        FENCE;
        x[0] = x[0] + 1;
        FENCE;
        atomicExch_system(lock, 0);
    }
}
KERNEL halves(volatile int* flag, volatile int* other) {  // one warp sets what another device's other warp waits for
    if (threadIdx.x == 0) while (*flag == 0);
    if (threadIdx.x == 32) *other = 1;
}
KERNEL fill(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
KERNEL add(int* x, const int* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] += y[i]; }
KERNEL diverge(volatile int* flag) { if (threadIdx.x < 32) { while (*flag == 0); __syncthreads(); } }
""".replace("KERNEL", 'extern "C" __global__ void')


def kernel(name: str) -> CudaSource:
    return CudaSource(SOURCE, name)


def run_ring(k: int, starter: int, blocks: int = 2):
    with virtual_devices(k) as devices:
        flags = [device.zeros(blocks, np.uint32) for device in devices]
        for i, device in enumerate(devices):
            device.launch(
                kernel("ring"), blocks, 64, (flags[i], flags[(i + 1) % k], np.uint32(starter if i == 0 else 99))
            )
        return [f.get().tolist() for f in flags]


@pytest.mark.parametrize("k", [2, 3, 8, 16])
def test_flags_go_round_a_ring(k):
    assert run_ring(k, 0, blocks=1) == [[1]] * k


@pytest.mark.parametrize("k", [2, 5])
def test_nobody_begins(k):
    with pytest.raises(DeviceDeadlock) as caught:
        run_ring(k, 99)
    waiting = caught.value.waiting
    assert [wait.device for wait in waiting] == list(range(k))
    assert {(w.array, w.owner == w.device, w.index, w.value, w.others) for w in waiting} == {("mine", True, 0, 0, 1)}
    assert {w.line for w in waiting} == {5}
    assert "waits for element 0 of `mine` of device 0, which is 0, at kernel.cu, line 5: " in str(caught.value)
    assert "(and 1 more)" in str(caught.value)


def test_one_block_of_each_gets_round_and_the_other_does_not():
    with pytest.raises(DeviceDeadlock) as caught:
        run_ring(4, 0)
    assert {(w.block, w.index) for w in caught.value.waiting} == {((1, 0, 0), 1)}


def test_two_devices_answer_each_other():
    with virtual_devices(2) as devices:
        balls = [device.zeros(1, np.int32) for device in devices]
        for i, device in enumerate(devices):
            device.launch(kernel("ping"), 1, 1, (balls[i], balls[1 - i], np.int32(40), np.int32(i == 0)))
        assert [ball.get().item() for ball in balls] == [40, 40]


def test_a_spinning_kernel_keeps_nobody_from_running():
    with virtual_devices(3) as devices:
        flag, looks = devices[0].zeros(1, np.int32), [device.zeros(1, np.int32) for device in devices]
        for device in (0, 2):
            devices[device].launch(kernel("counting"), 1, 1, (flag, looks[device]))
        devices[1].launch(kernel("set_late"), 1, 1, (flag, np.int32(1_000)))
        assert flag.get() == 1_000
        # Waiting kernels stand aside: they looked a few times, not once for each of the thousand rounds.
        assert all(0 < looks[device].get() < 500 for device in (0, 2))


def test_warps_that_wait_for_each_other_across_devices():
    with virtual_devices(2) as devices:
        flags = [device.zeros(1, np.int32) for device in devices]
        for i, device in enumerate(devices):
            device.launch(kernel("halves"), 1, 64, (flags[i], flags[1 - i]))
        assert [flag.get() for flag in flags] == [1, 1]


def test_a_lock_across_devices():
    with virtual_devices(4) as devices:
        lock, x = devices[1].zeros(1, np.int32), devices[2].zeros(1, np.int32)
        for device in devices:
            device.launch(kernel("lock"), 2, 1, (lock, x, np.int32(5)))
        assert x.get() == 4 * 2 * 5


def test_a_wait_that_gives_up_is_no_deadlock():
    with virtual_devices(2) as devices:
        flag, looks = devices[0].zeros(1, np.int32), [device.zeros(1, np.int32) for device in devices]
        for device, most in zip(devices, (100, 900), strict=True):
            device.launch(kernel("patient"), 1, 1, (flag, looks[device.id], np.int32(most)))
        assert [n.get().item() for n in looks] == [100, 900]


def test_a_loop_that_counts_is_a_deadlock_in_the_end():
    with virtual_devices(2) as devices:
        flag, looks = devices[0].zeros(1, np.int32), devices[1].zeros(1, np.int32)
        devices[1].launch(kernel("counting"), 1, 1, (flag, looks))
        with pytest.raises(DeviceDeadlock, match=r"nothing has changed for 16,\d+ instructions of each"):
            devices.synchronize()


def test_a_plain_flag_that_the_compiler_has_loaded_once():
    with virtual_devices(2) as devices:
        flag, out = devices[0].zeros(1, np.int32), devices[0].zeros(1, np.int32)
        devices[0].launch(kernel("plain"), 1, 1, (flag, out))
        with pytest.raises(DeviceDeadlock, match="make the flag volatile") as caught:
            devices.synchronize()
        assert caught.value.waiting[0].array is None
        assert "Numba" not in str(caught.value)
        assert (caught.value.file, caught.value.line) == ("kernel.cu", caught.value.waiting[0].line)


def test_the_launch_of_a_deadlock_is_forgotten():
    with virtual_devices(2) as devices:
        flag, looks = devices[0].zeros(1, np.int32), devices[1].zeros(1, np.int32)
        devices[1].launch(kernel("counting"), 1, 1, (flag, looks))
        with pytest.raises(DeviceDeadlock):
            devices.synchronize()
        devices[1].launch(kernel("counting"), 1, 1, (flag, looks))
        devices[0].launch(kernel("set"), 1, 1, (flag,))
        devices.synchronize()
        assert looks.get() >= 0


def test_launches_of_one_device_run_one_after_another():
    with virtual_devices(2) as devices:
        x, y = devices[0].empty(64, np.int32), devices[0].full(64, 3, np.int32)
        devices[0].launch(kernel("fill"), 2, 32, (x, np.int32(4)))
        for _ in range(3):
            devices[0].launch(kernel("add"), 2, 32, (x, y))
        assert (x.get() == 13).all()
        assert len(devices[0].launches) == 4
        assert len(devices[1].launches) == 0


def test_counters_are_those_of_each_device():
    with virtual_devices(2) as devices:
        arrays = [device.empty(1024, np.int32) for device in devices]
        before = devices[0].launch(kernel("fill"), 8, 128, (arrays[1], np.int32(1)))
        devices[1].launch(kernel("fill"), 4, 64, (arrays[0], np.int32(1)))
        assert before.counts.global_store_requests == 0
        devices.synchronize()
        assert before.counts.global_store_requests == 32
        assert [device.counts.global_store_requests for device in devices] == [32, 8]
        assert [device.counts.global_store_bytes for device in devices] == [4096, 1024]
        assert before.grid == (8, 1, 1)


def test_a_profile_records_them():
    recorded = RecordedLaunches()
    collect(recorded)
    try:
        with virtual_devices(2) as devices:
            for device in devices:
                device.launch(kernel("fill"), 1, 32, (device.empty(32, np.int32), np.int32(1)))
    finally:
        stop(recorded)
    assert [launch.counts.global_store_requests for launch in recorded] == [1, 1]


def test_other_errors_name_the_device():
    with virtual_devices(3) as devices:
        x = devices[2].empty(32, np.int32)
        devices[0].launch(kernel("fill"), 1, 32, (devices[0].empty(32, np.int32), np.int32(1)))
        devices[2].launch(kernel("fill"), 2, 32, (x, np.int32(1)))
        with pytest.raises(IllegalAddress, match="in kernel fill on device 2, block") as caught:
            devices.synchronize()
        assert caught.value.on_device == 2
        flag = devices[1].zeros(1, np.int32)
        devices[0].launch(kernel("diverge"), 1, 64, (flag,))
        devices[1].launch(kernel("set"), 1, 1, (flag,))
        with pytest.raises(DivergentBarrier, match="on device 0"):
            devices.synchronize()
        with pytest.raises(InvalidLaunch):
            devices[0].launch(kernel("fill"), 1, 2048, (x, np.int32(1)))


def test_an_error_of_one_device_frees_what_the_others_hold():
    with virtual_devices(2) as devices:
        flag, looks, x = (devices[0].zeros(32, np.int32) for _ in range(3))
        used = devices[0]._device.memory.used_bytes
        devices[0].launch(kernel("counting"), 1, 1, (flag, looks))
        devices[1].launch(kernel("fill"), 2, 32, (x, np.int32(1)))
        with pytest.raises(SimulatorError):
            devices.synchronize()
        assert devices[0]._device.memory.used_bytes == used


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_loop_that_looks_and_works_is_no_waiting(order):
    """The kernel looks at each flag once: the other device sets it only when nobody can go on without it."""
    code = """extern "C" __global__ void relay(
        const int* mine, int* next, const volatile unsigned* come, volatile unsigned* passed, int rounds) {
        for (int r = 0; r < rounds; r++) {
            if (threadIdx.x == 0) { if (come[r] == 0) __nanosleep(100); __threadfence_system(); }
            __syncthreads();
            next[64 * r + threadIdx.x] = mine[64 * r + threadIdx.x];
            __syncthreads();
            if (threadIdx.x == 0) { __threadfence_system(); passed[r] = 1; }
        }
    }"""
    with virtual_devices(2) as devices:
        first, second = (devices[number] for number in order)
        a, b, c = (device.zeros(256, np.int32) for device in (first, second, second))
        come = [first.full(4, 1, np.uint32), second.zeros(4, np.uint32), second.zeros(4, np.uint32)]
        first.launch(CudaSource(code, "relay"), 1, 64, (a, b, come[0], come[1], np.int32(4)))
        second.launch(CudaSource(code, "relay"), 1, 64, (b, c, come[1], come[2], np.int32(4)))
        with pytest.raises(DeviceRace) as caught:
            devices.synchronize()
        assert caught.value.cause == "no wait"


TOGETHER = {
    "of thread 0": "while (!__syncthreads_or(threadIdx.x == 0 && *flag == WANTED));",
    "of all": "while (!__syncthreads_and(*flag == WANTED));",
    "counted": "int ok = 0; while (__syncthreads_count(ok) == 0) if (threadIdx.x == 5) ok = *flag == WANTED;",
    "by shared memory": """__shared__ volatile unsigned seen;
        do {
            __syncthreads();
            if (threadIdx.x == 0) seen = *flag;
            __syncthreads();
        } while (seen != WANTED);""",
}


@pytest.mark.parametrize("wait", TOGETHER)
def test_a_block_that_looks_together_waits(wait):
    """It stands aside, as one does whose first thread looks alone; and is told of when the flag is never set."""
    code = f"""extern "C" __global__ void together(const volatile unsigned *flag, int *looks) {{
        int before = clock();
        {TOGETHER[wait]}
        __threadfence_system();
        if (threadIdx.x == 0) looks[blockIdx.x] = clock() - before;
    }}"""
    with virtual_devices(2) as devices:
        flag, looks = devices[0].zeros(1, np.uint32), devices[0].zeros(2, np.int32)
        devices[0].launch(CudaSource(code.replace("WANTED", "5000"), "together"), 2, 64, (flag, looks))
        devices[1].launch(kernel("set_late"), 1, 1, (flag, np.int32(5_000)))
        assert (looks.get() < 2_000).all()
        devices[0].launch(CudaSource(code.replace("WANTED", "7"), "together"), 2, 64, (flag, looks))
        with pytest.raises(DeviceDeadlock, match="waits for element 0 of `flag` of device 0, which is 5000"):
            devices.synchronize()


def test_more_warps_than_can_be_followed_are_refused():
    with virtual_devices(2) as devices:
        x = [device.empty(256 * 1024, np.int32) for device in devices]
        for device in devices:
            device.launch(kernel("fill"), 256, 1024, (x[device.id], np.int32(1)))
        with pytest.raises(InvalidLaunch, match="16,384 warps on 2 devices at the same time"):
            devices.synchronize()
        devices[0].launch(kernel("fill"), 256, 1024, (x[1], np.int32(2)))  # one device alone may have any number
        assert (x[1].get() == 2).all()
        for device in devices:
            device.launch(kernel("fill"), 64, 1024, (x[device.id], np.int32(3)))
        devices.synchronize()
        assert (x[0].get()[: 64 * 1024] == 3).all()
