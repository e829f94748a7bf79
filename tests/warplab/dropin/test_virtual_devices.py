"""`virtual_devices`: arrays and launches belong to a device, kernels take those of peers, as on real GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.dropin.virtual_devices import virtual_devices
from warplab.hardware import backend
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource
from warplab.simulator import PeerAccess

COPY = """
extern "C" __global__ void copy(float* to, const float* from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void through(float** to, const float* from) { to[0][threadIdx.x] = from[threadIdx.x]; }
"""
copy = cp.RawKernel(COPY, "copy")
TOGETHER = """
#include <cooperative_groups.h>
extern "C" __global__ void total(int* own, volatile int* sums, int me, int devices, int* out) {
    auto grid = cooperative_groups::this_grid();
    if (threadIdx.x == 0) atomicAdd(own, blockIdx.x + 1);
    grid.sync();
    if (grid.thread_rank() == 0) {
        sums[me] = *(volatile int*)own;
        int sum = 0;
        for (int d = 0; d < devices; d++) {
            while (!sums[d]) {}
            sum += sums[d];
        }
        *(volatile int*)own = sum;
        __threadfence();
    }
    grid.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = *(volatile int*)own;
}
"""


@cuda.jit
def double(to, source):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = 2 * source[i]


@pytest.fixture
def host() -> np.ndarray:
    return np.arange(100, dtype=np.float32)


def test_cooperative_launches_on_several_devices_wait_for_each_other():
    """What cudaLaunchCooperativeKernelMultiDevice was for, which CUDA 13 no longer has."""
    total = cp.RawKernel(TOGETHER, "total", enable_cooperative_groups=True)
    with virtual_devices(3) as devices:
        sums = devices[0].zeros(3, "i4")
        own = [device.zeros(1, "i4") for device in devices]
        out = [device.zeros(4 + k, "i4") for k, device in enumerate(devices)]
        for k in range(3):
            with cp.cuda.Device(k):
                total((4 + k,), (32,), (own[k], sums, np.int32(k), np.int32(3), out[k]))
        devices.synchronize()
        expected = sum(range(1, 5)) + sum(range(1, 6)) + sum(range(1, 7))
        assert [o.get().tolist() for o in out] == [[expected] * n for n in (4, 5, 6)]


def test_arrays_belong_to_a_device(host):
    with virtual_devices(3) as devices:
        assert len(devices) == 3
        assert [device.id for device in devices] == [0, 1, 2]
        arrays = [device.asarray(host) for device in devices]
        assert [array.device.id for array in arrays] == [0, 1, 2]
        assert len({array.data.ptr for array in arrays}) == 3
        assert devices[2].zeros((2, 3), np.int16).get().tolist() == [[0] * 3] * 2
        assert devices[1].full(2, 7, np.int32).get().tolist() == [7, 7]
        assert devices[1].empty((4, 2)).dtype == np.float64
        moved = devices[0].asarray(arrays[2][10:20])
        assert moved.device.id == 0
        assert (moved.get() == host[10:20]).all()
        assert arrays[1][5:].device.id == 1


def test_a_launch_takes_arrays_of_other_devices(host):
    with virtual_devices(2) as devices:
        a, b = devices[0].asarray(host), devices[1].empty(100, np.float32)
        record = devices[0].launch(copy, 4, 32, (b, a, np.int32(100)))
        assert (b.get() == host).all()
        assert (record.kernel, record.counts.global_store_requests) == ("copy", 4)
        devices[1].launch(double, 4, (32,), (b, a))
        devices.synchronize()
        assert (b.get() == 2 * host).all()


def test_cupy_and_numba_choose_the_device_as_on_real_ones(host):
    before = simulator.default_device()
    with virtual_devices(2) as devices:
        assert cp.cuda.runtime.getDeviceCount() == len(cuda.gpus) == 2
        assert cp.cuda.Device().id == cp.cuda.runtime.getDevice() == 0
        with cp.cuda.Device(1):
            a = cp.asarray(host)
            b = cp.zeros_like(a)
            copy((4,), (32,), (b, a, np.int32(100)))
            assert cp.cuda.Device().id == 1
            assert cuda.get_current_device().id == 1
        assert len(devices[1].launches) == 1
        assert len(devices[0].launches) == 0
        cp.cuda.Device(1).synchronize()
        assert (b.get() == host).all()
        with cuda.gpus[1]:
            c = cuda.to_device(host)
            double[4, 32](c, a)
        assert (c.copy_to_host() == 2 * host).all()
        cuda.select_device(1)
        assert cp.zeros(1).device.id == 1
        cp.cuda.Device(0).use()
        with devices[1] as device:
            assert cp.zeros(1).device.id == device.id == 1
            double[4, 32](b, a)
            cuda.synchronize()
        assert (b.get() == 2 * host).all()
        with pytest.raises(ValueError, match="device 2 does not exist; there are 0 to 1"):
            cp.cuda.Device(2)
        with pytest.raises(ValueError, match="device 2 does not exist; there are 0 to 1"):
            cuda.select_device(2)
    assert simulator.default_device() is before
    with pytest.raises(ValueError, match="the one simulated device is 0; `with virtual_devices"):
        cp.cuda.Device(1)


def test_reading_and_writing_on_the_host_waits_for_what_is_queued(host):
    with virtual_devices(2) as devices:
        a, b = devices[0].asarray(host), devices[1].zeros(100, np.float32)

        def queue():
            devices[0].launch(copy, 4, 32, (b, a, np.int32(100)))

        for read in (
            b.get,
            lambda: cp.asnumpy(b),
            lambda: (b + 0).get(),
            lambda: devices[0].asarray(b).get(),
            lambda: cp.sum(b).get(),
        ):
            queue()
            assert read().sum() == host.sum()
            b.fill(0)
        for write in (lambda: b.fill(5), lambda: b.set(5 + 0 * host), lambda: b.__setitem__(slice(None), 5)):
            queue()
            write()
            assert (b.get() == 5).all()
        queue()
    assert (b.get() == host).all()  # the end of the block synchronizes; arrays live on


def test_making_an_array_does_not_wait():
    with virtual_devices(2) as devices:
        flag = devices[0].zeros(1, np.int32)
        wait = 'extern "C" __global__ void wait(volatile int* flag) { while (!*flag); }'
        devices[0].launch(CudaSource(wait, "wait"), 1, 1, (flag,))
        for made in (devices[1].zeros(3), devices[1].asarray([1, 2]), devices[1].full(2, 1)):
            assert made.device.id == 1
        devices[1].launch(
            CudaSource('extern "C" __global__ void set(volatile int* flag) { *flag = 1; }', "set"), 1, 1, (flag,)
        )
        devices.synchronize()


def test_an_array_without_peer_access_is_refused(host):
    with virtual_devices(3, peer_access=[(0, 1)]) as devices:
        arrays = [device.asarray(host) for device in devices]
        n = np.int32(100)
        devices[0].launch(copy, 4, 32, (arrays[1], arrays[0], n))
        with pytest.raises(
            PeerAccess, match=r"(?s)argument `to` of kernel copy is an array of device 2.*devices\[0\]"
        ) as e:
            devices[0].launch(copy, 4, 32, (arrays[2], arrays[0], n))
        assert e.value.array == "to"
        with pytest.raises(PeerAccess, match="array of device 0, to which device 1 has no peer access"):
            devices[1].launch(copy, 4, 32, (arrays[1], arrays[0], n))
        devices[0].enable_peer_access(2)
        assert devices[0].can_access_peer(2)
        assert not devices[2].can_access_peer(0)
        devices[0].launch(copy, 4, 32, (arrays[2], arrays[0], n))
        with cp.cuda.Device(1):
            cp.cuda.runtime.deviceEnablePeerAccess(0)
            with pytest.raises(RuntimeError, match="is enabled"):
                cp.cuda.runtime.deviceEnablePeerAccess(0)
        assert cp.cuda.runtime.deviceCanAccessPeer(1, 2) == 1
        devices.synchronize()
        devices[1].launch(copy, 4, 32, (arrays[1], arrays[0], n))


def test_so_is_a_pointer_to_one_inside_a_kernel(host):
    with virtual_devices(2, peer_access=False) as devices:
        theirs, mine = devices[1].zeros(32, np.float32), devices[0].asarray(host)
        table = devices[0].asarray(np.array([theirs.data.ptr], np.uint64))
        for other in (False, True):  # whether or not another device runs as well
            if other:
                devices[1].launch(copy, 1, 32, (theirs, theirs, np.int32(0)))
            devices[0].launch(CudaSource(COPY, "through"), 1, 32, (table, mine))
            with pytest.raises(
                PeerAccess, match=r"device 0 accesses an array of device 1, to which it has no"
            ) as caught:
                devices.synchronize()
            assert caught.value.line == 6
        devices[0].enable_peer_access(1)
        devices[0].launch(CudaSource(COPY, "through"), 1, 32, (table, mine))
        assert (theirs.get() == host[:32]).all()


def test_arrays_of_the_host_are_refused(host):
    with virtual_devices(2) as devices:
        for kernel in (double, copy):
            with pytest.raises(ArgumentError, match=r"none of the virtual devices holds.*devices\[1\]\.asarray"):
                devices[1].launch(
                    kernel,
                    4,
                    32,
                    (devices[1].empty(100, np.float32), host, np.int32(100))[: 3 if kernel is copy else 2],
                )
        elsewhere = virtual_devices(1)[0].asarray(host)
        with pytest.raises(ArgumentError, match="none of the virtual devices holds"):
            devices[1].launch(copy, 4, 32, (devices[1].empty(100, np.float32), elsewhere, np.int32(100)))


@pytest.mark.parametrize("k", [0, 17, -1])
def test_numbers_of_devices(k):
    with pytest.raises(ValueError, match="give a number of devices from 1 to 16"):
        virtual_devices(k)


def test_pairs_of_peers_are_checked():
    with pytest.raises(ValueError, match="give pairs of two different devices from 0 to 1"):
        virtual_devices(2, peer_access=[(0, 0), (1, 2)])
    with virtual_devices(2) as devices, pytest.raises(ValueError, match="device 5 does not exist"):
        devices[0].enable_peer_access(5)


def test_an_error_in_the_block_is_the_one_that_is_raised(host):
    before = simulator.default_device()

    def fail(devices):
        a = devices[0].asarray(host)
        devices[0].launch(copy, 4, 32, (a, a, np.int32(100)))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), virtual_devices(2) as devices:
        fail(devices)
    assert simulator.default_device() is before


def test_no_counters_unless_wanted(host):
    with virtual_devices(2, counters=False) as devices:
        a, b = devices[0].asarray(host), devices[1].empty(100, np.float32)
        devices[0].launch(copy, 4, 32, (b, a, np.int32(100)))
        assert (b.get() == host).all()
        assert devices[0].counts.global_store_requests == 0


def test_beside_a_gpu_they_are_simulated_all_the_same(host, monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    with virtual_devices(2) as devices:
        a, b = devices[0].asarray(host), devices[1].empty(100, np.float32)
        devices[0].launch(copy, 4, 32, (b, a, np.int32(100)))
        assert (b.get() == host).all()
        assert simulator.default_device() is not devices[0]._device
        with pytest.raises(RuntimeError, match=r"devices\[1\]\.launch\(kernel"), devices[1]:
            pass
