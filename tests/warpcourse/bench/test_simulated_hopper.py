"""Kernels for Hopper without one: tensor maps and launches of `warpcourse.bench.hopper` in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from warpcourse.bench import hopper, simulated_hopper
from warplab import cp, simulator
from warplab.hardware import backend

pytestmark = pytest.mark.skipif(backend.name() == "gpu", reason="on a GPU the driver encodes maps and launches")

CODE = """
#include <warplab/hopper.cuh>
extern "C" __global__ void doubled(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to) {
    __shared__ alignas(1024) half box[16 * 64];
    __shared__ unsigned long long full;
    const unsigned at = shared_address(box), barrier = shared_address(&full);
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        fence_barrier_init();
        barrier_expect(barrier, sizeof box);
        load_box(at, from, 64 * blockIdx.x, 0, barrier);
    }
    __syncthreads();
    barrier_wait(barrier, 0);
    for (int i = threadIdx.x; i < 16 * 64; i += 32) box[i] = box[i] + box[i];
    fence_for_tma();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_box(to, at, 64 * blockIdx.x, FURTHER);
        stores_commit();
        stores_have_read<0>();
    }
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "doubled.cu"
    path.write_text(CODE, encoding="utf-8")
    return path


def test_a_kernel_copies_boxes_there_and_back(file):
    x = np.arange(10 * 136, dtype=np.float16).reshape(10, 136) % 500
    on_device, y = cp.asarray(x), cp.zeros(x.shape, np.float16)
    maps = hopper.tensor_map(on_device, 16, 64), hopper.tensor_map(y, 16, 64)
    kernel = hopper.kernel(file, "doubled", ("-DFURTHER=3",))
    kernel((3,), (32,), maps)
    want = np.zeros_like(x)
    want[3:] = 2 * x[:7]
    np.testing.assert_array_equal(cp.asnumpy(y), want)
    assert hopper.kernel(file, "doubled", ("-DFURTHER=3",)) is kernel


def test_what_a_kernel_does_wrong_is_told(file):
    file.write_text(CODE.replace("fence_for_tma();", ""), encoding="utf-8")
    x = cp.zeros((16, 64), np.float16)
    box = hopper.tensor_map(x, 16, 64)
    with pytest.raises(simulator.MissingProxyFence, match="in kernel doubled"):
        hopper.kernel(file, "doubled", ("-DFURTHER=0",))((1,), (32,), (box, box))


def test_maps_are_one_value_of_128_bytes_for_a_kernel():
    found = hopper.tensor_map(cp.zeros((16, 64), np.float16), 16, 64)
    assert (found.size, found.nbytes) == (1, hopper.MAP_BYTES)
    pixels = hopper.Pixels(1 << 20, "float16", (1, 4, 4, 64), (2048, 512, 128), (-1, -1), (4, 4), (1, 1), 16)
    assert hopper.encoded(pixels).nbytes == hopper.MAP_BYTES


def test_what_the_driver_would_refuse_is_refused_with_the_rule():
    with pytest.raises(
        RuntimeError, match=r"cuTensorMapEncodeTiled with CUDA_ERROR_INVALID_VALUE: globalAddress is 0x8"
    ):
        simulated_hopper.encoded("cuTensorMapEncodeTiled", (6, 2, 8, (64, 16), (128,), (64, 16), (1, 1), 0, 3, 3, 0))


def test_clusters_that_fit():
    kernel = simulated_hopper.SimulatedKernel.__new__(simulated_hopper.SimulatedKernel)
    assert [kernel.resident_clusters(size, 384, 0) for size in (1, 2, 4)] == [132, 66, 33]
