"""Occupancy against NVIDIA's own arithmetic, run by the simulator."""

import numpy as np
import pytest

from warplab.hardware import cards, occupancy
from warplab.hardware.cards import CARDS
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate


def test_occupancy_by_hand():
    """Examples that a reader can follow: 65,536 registers, 2,048 threads and 32 blocks per SM."""
    h100 = cards.card("H100")
    assert occupancy.theoretical(h100, 256, registers=32).fraction == 1
    assert occupancy.theoretical(h100, 256, registers=33).warps == 48  # 40 per thread: 6 blocks
    assert occupancy.theoretical(h100, 32, registers=16).limited_by == ("blocks",)
    assert occupancy.theoretical(h100, 1024, registers=80).blocks == 0
    with pytest.raises(ValueError, match="1 to 1,024 threads"):
        occupancy.theoretical(h100, 2048)
    with pytest.raises(ValueError, match="at most 255 registers"):
        occupancy.theoretical(h100, 32, registers=256)


REFERENCE = r"""
#include <cuda_occupancy.h>

extern "C" __global__ void reference(const int* cases, int* blocks, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int* c = cases + 10 * i;
  cudaOccDeviceProp device;
  device.computeMajor = c[0];
  device.computeMinor = c[1];
  device.maxThreadsPerMultiprocessor = c[2];
  device.sharedMemPerMultiprocessor = c[3];
  device.sharedMemPerBlockOptin = c[4];
  device.reservedSharedMemPerBlock = c[5];
  device.maxThreadsPerBlock = 1024;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.numSms = 1;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024;
  kernel.numRegs = c[7];
  kernel.sharedSizeBytes = 0;
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = c[8];
  kernel.numBlockBarriers = c[9];
  cudaOccDeviceState state;
  cudaOccResult result;
  int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, c[6], c[8]);
  blocks[i] = status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -status;
}
"""


def test_the_arithmetic_is_nvidias(tmp_path):
    """`cuda_occupancy.h` itself, run by the simulator on random blocks for each card."""
    for header, text in (("stddef.h", ""), ("string.h", ""), ("limits.h", "#define INT_MAX 2147483647\n")):
        (tmp_path / header).write_text(text)
    rng = np.random.default_rng(3)
    cases, ours = [], []
    for number in range(6000):
        device = list(CARDS.values())[number % len(CARDS)]
        threads, registers = int(rng.integers(1, 1025)), int(rng.integers(0, 256))
        if number % 3 == 0:
            threads, registers = threads // 4 + 1, registers // 4
        largest = device.block_shared_bytes + 4096 if number % 2 else 8192
        shared, barriers = int(rng.integers(0, largest)), int(rng.integers(0, 17))
        cases.append(
            (*device.compute_capability, device.max_threads, device.shared_bytes)
            + (device.block_shared_bytes, device.reserved_shared_bytes, threads, registers, shared, barriers)
        )
        found = occupancy.theoretical(device, threads, registers=registers, shared_bytes=shared, barriers=barriers)
        ours.append(found.blocks)
    theirs = np.zeros(len(cases), np.int32)
    source = CudaSource(REFERENCE, "reference", (f"-I{tmp_path}",))
    simulate(source, -(-len(cases) // 128), 128, (np.array(cases, np.int32), theirs, np.int32(len(cases))))
    wrong = [(case, int(a), b) for case, a, b in zip(cases, theirs, ours, strict=True) if a != b]
    assert wrong == []
    assert len(set(ours)) > 20
