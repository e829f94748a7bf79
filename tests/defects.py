"""A defective and a mended kernel for each class of mistake that the simulator reports.

`docs/simulator.md` shows them; `test_simulator_defects.py` runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warplab import simulator
from warplab.dropin import cuda
from warplab.kernel import CudaSource, simulate


@dataclass(frozen=True)
class Defect:
    """`wrong`, `right`: bodies of the kernel `parameters`; `arguments` makes fresh arguments for each launch."""

    name: str
    error: type[simulator.SimulatorError]
    parameters: str
    wrong: str
    right: str
    arguments: Callable[[], tuple]
    grid: int = 1
    block: int = 64
    right_block: int | None = None
    options: dict = field(default_factory=dict)
    right_options: dict | None = None
    right_arguments: Callable[[], tuple] | None = None

    def run(self, right: bool) -> simulator.LaunchProfile:
        """Launch the mended kernel, or the defective one."""
        body = self.right if right else self.wrong
        code = f'extern "C" __global__ void kernel({self.parameters}) {{\n{body}\n}}\n'
        arguments = self.right_arguments if right and self.right_arguments else self.arguments
        options = self.right_options if right and self.right_options is not None else self.options
        block = self.right_block if right and self.right_block else self.block
        return simulate(CudaSource(code, "kernel"), self.grid, block, arguments(), **options)

    def message(self) -> str:
        """What the defective kernel is told."""
        try:
            self.run(right=False)
        except self.error as error:
            return str(error)
        raise AssertionError(f"no report of: {self.name}")


def _floats(*sizes: int) -> Callable[[], tuple]:
    return lambda: tuple(np.zeros(size, np.float32) for size in sizes)


def _freed() -> tuple:
    memory = simulator.default_device().memory
    address = memory.allocate(256, "a")
    memory.free(address)
    return np.uint64(address), np.zeros(64, np.float32)


def _allocated() -> tuple:
    return np.uint64(_device_array().device_ctypes_pointer.value), np.zeros(64, np.float32)


@functools.cache
def _device_array():
    """Kept, since the kernel is given its address only."""
    return cuda.to_device(np.zeros(64, np.float32))


_HOST = np.zeros(64, np.float32)
_SHARED = "  __shared__ float s[64];\n  s[threadIdx.x] = threadIdx.x;\n"
_LOCK = """  while (atomicCAS(lock, 0, 1) != 0) {}
  *(volatile int*)count += 1;
  __threadfence();
  atomicExch(lock, 0);"""

DEFECTS = (
    Defect(
        "access outside an array",
        simulator.IllegalAddress,
        "const float* a, float* c, int n",
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  c[i] = a[i];",
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i];",
        lambda: (*_floats(100, 100)(), np.int32(100)),
        grid=2,
    ),
    Defect(
        "access outside shared memory",
        simulator.IllegalAddress,
        "float* c, int shift",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[threadIdx.x + shift];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[(threadIdx.x + shift) % 64];",
        lambda: (*_floats(64)(), np.int32(1)),
    ),
    Defect(
        "misaligned access",
        simulator.MisalignedAddress,
        "const float* a, float4* c, int shift",
        "  c[threadIdx.x] = *(const float4*)(a + shift + 4 * threadIdx.x);",
        "  c[threadIdx.x] = *(const float4*)(a + 4 * shift + 4 * threadIdx.x);",
        lambda: (*_floats(260, 256)(), np.int32(1)),
    ),
    Defect(
        "pointer of the host",
        simulator.HostPointer,
        "unsigned long long a, float* c",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        lambda: (np.uint64(_HOST.ctypes.data), np.zeros(64, np.float32)),
        right_arguments=_allocated,
    ),
    Defect(
        "use after free",
        simulator.IllegalAddress,
        "unsigned long long a, float* c",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        _freed,
        right_arguments=_allocated,
    ),
    Defect(
        "read of an array that nobody wrote",
        simulator.UninitializedRead,
        "const float* a, float* c",
        "  c[threadIdx.x] = a[threadIdx.x];",
        "  c[threadIdx.x] = a[threadIdx.x];",
        lambda: (cuda.device_array(64, np.float32), np.zeros(64, np.float32)),
        right_arguments=_floats(64, 64),
    ),
    Defect(
        "read of shared memory that nobody wrote",
        simulator.UninitializedRead,
        "float* c",
        "  __shared__ float s[64];\n  if (threadIdx.x < 32) s[threadIdx.x] = 1;\n  __syncthreads();\n"
        "  c[threadIdx.x] = s[threadIdx.x];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[threadIdx.x];",
        _floats(64),
    ),
    Defect(
        "race on shared memory",
        simulator.DataRace,
        "float* c",
        _SHARED + "  c[threadIdx.x] = s[63 - threadIdx.x];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[63 - threadIdx.x];",
        _floats(64),
    ),
    Defect(
        "race on global memory",
        simulator.DataRace,
        "float* sum",
        "  *sum += 1;",
        "  atomicAdd(sum, 1.0f);",
        _floats(1),
        grid=2,
    ),
    Defect(
        "barrier that only some threads reach",
        simulator.DivergentBarrier,
        "float* c, int n",
        "  if (threadIdx.x < n) {\n    c[threadIdx.x] = 1;\n    __syncthreads();\n    c[threadIdx.x] = 2;\n  }",
        "  if (threadIdx.x < n) c[threadIdx.x] = 1;\n  __syncthreads();",
        lambda: (*_floats(64)(), np.int32(40)),
    ),
    Defect(
        "endless loop",
        simulator.InstructionLimit,
        "float* c, int step",
        "  for (int i = threadIdx.x; i < 64; i += step) c[i] = i;",
        "  for (int i = threadIdx.x; i < 64; i += step + 1) c[i] = i;",
        lambda: (*_floats(64)(), np.int32(0)),
        block=1,
        options={"path_limit": 20_000},
    ),
    Defect(
        "spin lock with one program counter a warp",
        simulator.InstructionLimit,
        "int* lock, int* count",
        _LOCK,
        _LOCK,
        lambda: (np.zeros(1, np.int32), np.zeros(1, np.int32)),
        block=32,
        options={"scheduling": "pascal", "path_limit": 20_000},
        right_options={"scheduling": "volta"},
    ),
    Defect(
        "launch that no GPU accepts",
        simulator.InvalidLaunch,
        "float* c",
        "  c[threadIdx.x] = 1;",
        "  c[threadIdx.x] = 1;",
        _floats(2048),
        block=2048,
        right_block=1024,
    ),
)
