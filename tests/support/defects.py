"""A defective and a corrected kernel for each class of mistake that the simulator reports: in CUDA C++ here, in Numba
in `defects_numba`. `docs/simulator.md` shows them; tests/warplab/simulator/check/test_defects.py runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warpcourse.bench import hopper
from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

Index3 = tuple[int, int, int]


@dataclass(frozen=True)
class Report:
    """What an error must tell. `line`: text of the source line; `cause`: a piece of the sentence of likely cause.

    `other_line`, `other_thread`: of the other access in a race; the thread is (block, thread), None for several.
    """

    line: str
    cause: str
    thread: Index3 = (0, 0, 0)
    block: Index3 = (0, 0, 0)
    array: str | None = None
    index: int | None = None
    other_line: str | None = None
    other_thread: tuple[Index3, Index3] | None = None


@dataclass(frozen=True)
class Defect:
    """`wrong`, `right`: bodies of the kernel `parameters`; `arguments` makes fresh arguments for each launch.

    `head`: what stands before the kernel; `compiled`: options for NVRTC.
    """

    name: str
    error: type[simulator.SimulatorError]
    report: Report | None
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
    head: str = ""
    compiled: tuple[str, ...] = ()

    def kernel(self, right: bool) -> CudaSource:
        body = self.right if right else self.wrong
        code = f'{self.head}extern "C" __global__ void kernel({self.parameters}) {{\n{body}\n}}\n'
        return CudaSource(code, "kernel", self.compiled)

    def run(self, right: bool) -> simulator.LaunchProfile:
        """Launch the mended kernel, or the defective one."""
        arguments = self.right_arguments if right and self.right_arguments else self.arguments
        options = self.right_options if right and self.right_options is not None else self.options
        block = self.right_block if right and self.right_block else self.block
        return simulate(self.kernel(right), self.grid, block, arguments(), **options)

    def message(self) -> str:
        """What the defective kernel is told."""
        try:
            self.run(right=False)
        except self.error as error:
            return str(error)
        raise AssertionError(f"no report of: {self.name}")


def floats(*sizes: int) -> Callable[[], tuple]:
    return lambda: tuple(np.zeros(size, np.float32) for size in sizes)


def ints(*sizes: int) -> Callable[[], tuple]:
    return lambda: tuple(np.zeros(size, np.int32) for size in sizes)


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


HOST = np.zeros(64, np.float32)
_SHARED = "  __shared__ float s[64];\n  s[threadIdx.x] = threadIdx.x;\n"
_SPIN = "  while (atomicCAS(lock, 0, 1) != 0) {}\n"
_COUNT = "  *(volatile int*)count += 1;\n  __threadfence();\n"
_LOCK = _SPIN + _COUNT + "  atomicExch(lock, 0);"
# Two halves of a block, each with a barrier of its own.
_HALVES = _SHARED + '  int half = threadIdx.x / 32;\n  asm volatile("bar.sync %0, 32;" :: "r"(half + 1) : "memory");\n'
_FRAGMENTS = """\
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> of_a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> of_b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
"""
_HOPPER = ("-arch=sm_90a", *hopper.include())
# A and B, 64 × 64, in shared memory, and a product of 16 of k of them.
_TILES = """\
  __shared__ alignas(1024) float4 tiles[1024];
  for (int i = threadIdx.x; i < 1024; i += 128) tiles[i] = {};
  fence_for_tma();
  __syncthreads();
  unsigned at = shared_address(tiles);
  float sum[32];
"""
_MULTIPLY = """\
  wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(at, 0, 0), mn_major(at + 8192, 0, 64), 0);
  wgmma_commit();
"""
_SUMS = """\
  wgmma_wait<0>();
  settle(sum);
  c[threadIdx.x] = sum[0];"""
_PRODUCT = """\
  for (int start = 0; start < k; start += 16) {
    wmma::load_matrix_sync(of_a, a + start, k);
    wmma::load_matrix_sync(of_b, b + 16 * start, 16);
    wmma::mma_sync(sum, of_a, of_b, sum);
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);"""

# A copy by TMA of 64 numbers to `t`, and its barrier.
_COPY = """\
  __shared__ alignas(128) float t[64];
  __shared__ unsigned long long full;
  unsigned barrier = shared_address(&full);
  auto copy = [&](const float* from) {
    barrier_expect(barrier, 256);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                 :: "r"(shared_address(t)), "l"(from), "r"(barrier) : "memory");
  };
  if (threadIdx.x == 0) { barrier_init(barrier, 1); fence_barrier_init(); }
  __syncthreads();
"""
_COPIED = "  if (threadIdx.x == 0) copy(a);\n  barrier_wait(barrier, 0);\n  c[threadIdx.x] = t[threadIdx.x];"
_SEND = """\
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(c), "r"(shared_address(s)));
"""
_SENT = "    stores_commit();\n    stores_have_read<0>();\n  }"
_NEIGHBOUR = """\
  __shared__ float s[64];
  auto cluster = cooperative_groups::this_cluster();
  s[threadIdx.x] = threadIdx.x;
"""
_TAKE = "  c[blockIdx.x * 64 + threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];"
_HOPPERS = {"head": "#include <warplab/hopper.cuh>\n", "compiled": _HOPPER}
_CLUSTERS = {"head": "#include <cooperative_groups.h>\n", "grid": 2, "options": {"cluster": (2,)}}

DEFECTS = (
    Defect(
        "store that TMA does not see",
        simulator.MissingProxyFence,
        Report("cp.async.bulk.global", "after its stores and before the barrier", array="s", index=0),
        "float* c",
        _SHARED + "  __syncthreads();\n" + _SEND + _SENT,
        _SHARED + "  fence_for_tma();\n  __syncthreads();\n" + _SEND + _SENT,
        floats(64),
        **_HOPPERS,
    ),
    Defect(
        "block that ends while TMA may read its shared memory",
        simulator.SimulatorError,
        Report("cp.async.bulk.global", "cp.async.bulk.wait_group.read 0"),
        "float* c",
        _SHARED + "  fence_for_tma();\n  __syncthreads();\n" + _SEND + "    stores_commit();\n  }",
        _SHARED + "  fence_for_tma();\n  __syncthreads();\n" + _SEND + _SENT,
        floats(64),
        **_HOPPERS,
    ),
    Defect(
        "mbarrier used before all know that it is initialised",
        simulator.DataRace,
        Report(
            "barrier_wait(barrier, 0);",
            "a __syncthreads() must follow",
            thread=(1, 0, 0),
            array="full",
            index=0,
            other_line="barrier_init(barrier, 1)",
            other_thread=((0, 0, 0), (0, 0, 0)),
        ),
        "const float* a, float* c",
        _COPY.replace("  __syncthreads();\n", "") + _COPIED,
        _COPY + _COPIED,
        lambda: (np.arange(64, dtype=np.float32), np.zeros(64, np.float32)),
        **_HOPPERS,
    ),
    Defect(
        "copy that is read before its barrier",
        simulator.UninitializedRead,
        Report("c[threadIdx.x] = t[threadIdx.x];", "an mbarrier", array="t", index=0),
        "const float* a, float* c",
        _COPY + "  if (threadIdx.x == 0) copy(a);\n  __syncthreads();\n  c[threadIdx.x] = t[threadIdx.x];",
        _COPY + _COPIED,
        lambda: (np.arange(64, dtype=np.float32), np.zeros(64, np.float32)),
        **_HOPPERS,
    ),
    Defect(
        "copy over what others still read",
        simulator.DataRace,
        Report(
            '"r"(shared_address(t))',
            "must know that all have read it",
            array="t",
            index=4,
            other_line="c[threadIdx.x] = t[threadIdx.x];",
            other_thread=((0, 0, 0), (4, 0, 0)),
        ),
        "const float* a, float* c",
        _COPY
        + "  for (int k = 0; k < 2; k++) {\n    if (threadIdx.x == 0) copy(a + 64 * k);\n"
        + "    barrier_wait(barrier, k);\n    c[threadIdx.x] = t[threadIdx.x];\n  }",
        _COPY
        + "  for (int k = 0; k < 2; k++) {\n    if (threadIdx.x == 0) copy(a + 64 * k);\n"
        + "    barrier_wait(barrier, k);\n    c[threadIdx.x] = t[threadIdx.x];\n    __syncthreads();\n  }",
        lambda: (np.arange(128, dtype=np.float32), np.zeros(64, np.float32)),
        **_HOPPERS,
    ),
    Defect(
        "barrier that expects too many bytes",
        simulator.DivergentBarrier,
        Report("barrier_wait(barrier, 0);", "add up to the bytes"),
        "const float* a, float* c",
        _COPY.replace("(barrier, 256)", "(barrier, 512)")
        + "  if (threadIdx.x == 0) copy(a);\n  barrier_wait(barrier, 0);",
        _COPY + "  if (threadIdx.x == 0) copy(a);\n  barrier_wait(barrier, 0);",
        lambda: (np.arange(64, dtype=np.float32), np.zeros(64, np.float32)),
        **_HOPPERS,
    ),
    Defect(
        "race between blocks of a cluster",
        simulator.DataRace,
        Report(
            "c[blockIdx.x * 64",
            "cluster.sync() missing",
            block=(0, 0, 0),
            array="s",
            index=0,
            other_line="s[threadIdx.x] = threadIdx.x;",
            other_thread=((1, 0, 0), (0, 0, 0)),
        ),
        "float* c",
        "  cooperative_groups::this_cluster().sync();\n" + _NEIGHBOUR + "  __syncthreads();\n" + _TAKE,
        _NEIGHBOUR + "  cluster.sync();\n" + _TAKE + "\n  cluster.sync();",
        floats(128),
        **_CLUSTERS,
    ),
    Defect(
        "shared memory of a block that may have ended",
        simulator.SimulatorError,
        Report("c[blockIdx.x * 64", "after the last such access", block=(1, 0, 0)),
        "float* c",
        _NEIGHBOUR + "  cluster.sync();\n" + _TAKE,
        _NEIGHBOUR + "  cluster.sync();\n" + _TAKE + "\n  cluster.sync();",
        floats(128),
        **_CLUSTERS,
    ),
    Defect(
        "sum of a wgmma read before its end",
        simulator.UnorderedRegisters,
        Report("c[threadIdx.x] = sum[0];", "wgmma.wait_group N waits"),
        "float* c",
        _TILES + "  wgmma_fence();\n" + _MULTIPLY + "  c[threadIdx.x] = sum[0];",
        _TILES + "  wgmma_fence();\n" + _MULTIPLY + _SUMS,
        floats(128),
        block=128,
        head="#include <warplab/hopper.cuh>\n",
        compiled=_HOPPER,
    ),
    Defect(
        "wgmma without a fence",
        simulator.UnorderedRegisters,
        Report("wgmma<K_MAJOR, MN_MAJOR>", "Put a wgmma.fence"),
        "float* c",
        _TILES + _MULTIPLY + _SUMS,
        _TILES + "  wgmma_fence();\n" + _MULTIPLY + _SUMS,
        floats(128),
        block=128,
        head="#include <warplab/hopper.cuh>\n",
        compiled=_HOPPER,
    ),
    Defect(
        "wgmma that one warp of four does not reach",
        simulator.DivergentWarp,
        Report("wgmma_fence();", "all 128 threads must reach it"),
        "float* c",
        _TILES + "  if (threadIdx.x >= 96) return;\n  wgmma_fence();\n" + _MULTIPLY + _SUMS,
        _TILES + "  wgmma_fence();\n" + _MULTIPLY + _SUMS,
        floats(128),
        block=128,
        head="#include <warplab/hopper.cuh>\n",
        compiled=_HOPPER,
    ),
    Defect(
        "tile written while a wgmma may read it",
        simulator.DataRace,
        Report(
            "if (threadIdx.x == 5) tiles[1].x = 1;",
            "after wgmma.wait_group",
            thread=(5, 0, 0),
            array="tiles",
            index=4,
            other_line="wgmma<K_MAJOR, MN_MAJOR>",
            other_thread=((0, 0, 0), (0, 0, 0)),
        ),
        "float* c",
        _TILES + "  wgmma_fence();\n" + _MULTIPLY + "  if (threadIdx.x == 5) tiles[1].x = 1;\n" + _SUMS,
        _TILES
        + "  wgmma_fence();\n"
        + _MULTIPLY
        + _SUMS
        + "\n  __syncthreads();\n  if (threadIdx.x == 5) tiles[1].x = 1;",
        floats(128),
        block=128,
        head="#include <warplab/hopper.cuh>\n",
        compiled=_HOPPER,
    ),
    Defect(
        "access outside an array",
        simulator.IllegalAddress,
        Report("c[i] = a[i];", "guard missing", thread=(36, 0, 0), block=(1, 0, 0), array="a", index=100),
        "const float* a, float* c, int n",
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  c[i] = a[i];",
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i];",
        lambda: (*floats(100, 100)(), np.int32(100)),
        grid=2,
    ),
    Defect(
        "access outside shared memory",
        simulator.IllegalAddress,
        Report("s[threadIdx.x + shift]", "index of the shared array", thread=(63, 0, 0), array="s", index=64),
        "float* c, int shift",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[threadIdx.x + shift];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[(threadIdx.x + shift) % 64];",
        lambda: (*floats(64)(), np.int32(1)),
    ),
    Defect(
        "misaligned access",
        simulator.MisalignedAddress,
        Report("*(const float4*)", "multiple of 16", array="a", index=1),
        "const float* a, float4* c, int shift",
        "  c[threadIdx.x] = *(const float4*)(a + shift + 4 * threadIdx.x);",
        "  c[threadIdx.x] = *(const float4*)(a + 4 * shift + 4 * threadIdx.x);",
        lambda: (*floats(260, 256)(), np.int32(1)),
    ),
    Defect(
        "pointer of the host",
        simulator.HostPointer,
        Report("((const float*)a)", "Copy the data to the device"),
        "unsigned long long a, float* c",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        lambda: (np.uint64(HOST.ctypes.data), np.zeros(64, np.float32)),
        right_arguments=_allocated,
    ),
    Defect(
        "use after free",
        simulator.IllegalAddress,
        Report("((const float*)a)", "Keep the array alive", array="a", index=0),
        "unsigned long long a, float* c",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        "  c[threadIdx.x] = ((const float*)a)[threadIdx.x];",
        _freed,
        right_arguments=_allocated,
    ),
    Defect(
        "read of an array that nobody wrote",
        simulator.UninitializedRead,
        Report("c[threadIdx.x] = a[threadIdx.x]", "Fill the array", array="a", index=0),
        "const float* a, float* c",
        "  c[threadIdx.x] = a[threadIdx.x];",
        "  c[threadIdx.x] = a[threadIdx.x];",
        lambda: (cuda.device_array(64, np.float32), np.zeros(64, np.float32)),
        right_arguments=floats(64, 64),
    ),
    Defect(
        "read of shared memory that nobody wrote",
        simulator.UninitializedRead,
        Report("c[threadIdx.x] = s", "store to shared memory", thread=(32, 0, 0), array="s", index=32),
        "float* c",
        "  __shared__ float s[64];\n  if (threadIdx.x < 32) s[threadIdx.x] = 1;\n  __syncthreads();\n"
        "  c[threadIdx.x] = s[threadIdx.x];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[threadIdx.x];",
        floats(64),
    ),
    Defect(
        "product with a fragment that was never filled",
        simulator.UninitializedRead,
        Report("wmma::mma_sync(sum, of_a, of_b, sum);", "fill_fragment"),
        "const half* a, const half* b, float* c, int k",
        _FRAGMENTS + _PRODUCT,
        _FRAGMENTS + "  wmma::fill_fragment(sum, 0.0f);\n" + _PRODUCT,
        lambda: (np.ones(512, np.float16), np.ones(512, np.float16), np.zeros(256, np.float32), np.int32(32)),
        block=32,
        head="#include <cuda_fp16.h>\n#include <mma.h>\nusing namespace nvcuda;\n",
    ),
    Defect(
        "race on shared memory, no __syncthreads",
        simulator.DataRace,
        Report(
            "c[threadIdx.x] = s[63",
            "__syncthreads() missing",
            array="s",
            index=63,
            other_line="s[threadIdx.x] = threadIdx.x",
            other_thread=((0, 0, 0), (63, 0, 0)),
        ),
        "float* c",
        _SHARED + "  c[threadIdx.x] = s[63 - threadIdx.x];",
        _SHARED + "  __syncthreads();\n  c[threadIdx.x] = s[63 - threadIdx.x];",
        floats(64),
    ),
    Defect(
        "race on shared memory, the other half has another barrier",
        simulator.DataRace,
        Report(
            "c[threadIdx.x] = s[63",
            "__syncthreads() missing",
            array="s",
            index=63,
            other_line="s[threadIdx.x] = threadIdx.x",
            other_thread=((0, 0, 0), (63, 0, 0)),
        ),
        "float* c",
        _HALVES + "  c[threadIdx.x] = s[63 - threadIdx.x];",
        _HALVES + "  c[threadIdx.x] = s[32 * half + 31 - threadIdx.x % 32];",
        floats(64),
    ),
    Defect(
        "race in a warp, no __syncwarp",
        simulator.DataRace,
        Report(
            "c[threadIdx.x] = s[31",
            "__syncwarp() within a warp",
            array="s",
            index=31,
            other_line="s[threadIdx.x] = threadIdx.x",
            other_thread=((0, 0, 0), (31, 0, 0)),
        ),
        "float* c",
        _SHARED + "  c[threadIdx.x] = s[31 - threadIdx.x];",
        _SHARED + "  __syncwarp();\n  c[threadIdx.x] = s[31 - threadIdx.x];",
        floats(64),
        block=32,
    ),
    Defect(
        "race on global memory",
        simulator.DataRace,
        Report("*sum += 1;", "use an atomic", array="sum", index=0, other_line="*sum += 1;"),
        "float* sum",
        "  *sum += 1;",
        "  atomicAdd(sum, 1.0f);",
        floats(1),
        grid=2,
    ),
    Defect(
        "race on global memory between two blocks",
        simulator.DataRace,
        Report(
            "c[blockIdx.x] = a[blockIdx.x - 1];",
            "different blocks cannot wait",
            block=(1, 0, 0),
            array="a",
            index=0,
            other_line="a[blockIdx.x] = 1;",
            other_thread=((0, 0, 0), (0, 0, 0)),
        ),
        "float* a, float* c",
        "  a[blockIdx.x] = 1;\n  __syncthreads();\n  if (blockIdx.x > 0) c[blockIdx.x] = a[blockIdx.x - 1];",
        "  a[blockIdx.x] = 1;\n  __syncthreads();\n  if (blockIdx.x > 0) c[blockIdx.x] = a[blockIdx.x];",
        floats(4, 4),
        grid=4,
        block=1,
    ),
    Defect(
        "barrier that only some threads reach",
        simulator.DivergentBarrier,
        Report("__syncthreads();", "Every thread of the block must reach", thread=(32, 0, 0)),
        "float* c, int n",
        "  if (threadIdx.x < n) {\n    c[threadIdx.x] = 1;\n    __syncthreads();\n    c[threadIdx.x] = 2;\n  }",
        "  if (threadIdx.x < n) c[threadIdx.x] = 1;\n  __syncthreads();",
        lambda: (*floats(64)(), np.int32(40)),
    ),
    Defect(
        "barrier that waits for more threads than come",
        simulator.DivergentBarrier,
        Report("bar.sync 1, 64", "Every thread of the block must reach"),
        "float* c",
        '  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");\n  c[threadIdx.x] = 1;',
        '  if (threadIdx.x < 32) asm volatile("bar.sync 1, 32;");\n  c[threadIdx.x] = 1;',
        floats(64),
    ),
    Defect(
        "shuffle whose mask names lanes that never come",
        simulator.DivergentWarp,
        Report("__shfl_down_sync", "compute the mask before the branch"),
        "float* c",
        "  float x = threadIdx.x;\n  if (x < 16) c[threadIdx.x] = __shfl_down_sync(0xffffffff, x, 1);\n  __syncwarp();",
        "  float x = threadIdx.x;\n  if (x < 16) c[threadIdx.x] = __shfl_xor_sync(0x0000ffff, x, 1);\n  __syncwarp();",
        floats(32),
        block=32,
    ),
    Defect(
        "shuffle inside the guard, from a lane that has ended",
        simulator.UndefinedShuffle,
        Report("__shfl_down_sync", "a guard belongs around the load", thread=(19, 0, 0)),
        "float* c, int n",
        "  int t = threadIdx.x;\n  if (t < n) c[t] = __shfl_down_sync(0xffffffff, t, 1);",
        "  int t = threadIdx.x, next = __shfl_down_sync(0xffffffff, t, 1);\n  if (t < n) c[t] = next;",
        lambda: (*floats(32)(), np.int32(20)),
        block=32,
    ),
    Defect(
        "endless loop",
        simulator.InstructionLimit,
        Report("i += step", "Is a step of 0 added"),
        "float* c, int step",
        "  for (int i = threadIdx.x; i < 64; i += step) c[i] = i;",
        "  for (int i = threadIdx.x; i < 64; i += step + 1) c[i] = i;",
        lambda: (*floats(64)(), np.int32(0)),
        block=1,
        options={"path_limit": 2_000},
    ),
    Defect(
        "deadlock: a lock that is never released",
        simulator.InstructionLimit,
        Report("while (atomicCAS", "is a lock never released", thread=(1, 0, 0)),
        "int* lock, int* count",
        _SPIN + _COUNT,
        _LOCK,
        ints(1, 1),
        block=32,
        options={"path_limit": 15_000},
        right_options={},
    ),
    Defect(
        "deadlock: spin lock with one program counter per warp",
        simulator.InstructionLimit,
        Report("while (atomicCAS", "With one program counter per warp", thread=(1, 0, 0)),
        "int* lock, int* count",
        _LOCK,
        _LOCK,
        ints(1, 1),
        block=32,
        options={"scheduling": "pascal", "path_limit": 3_000},
        right_options={"scheduling": "volta"},
    ),
    Defect(
        "deadlock: sides of a branch that wait for each other, with one program counter per warp",
        simulator.DivergentWarp,
        Report("c[threadIdx.x] = 1; __syncwarp();", "A deadlock: with one program counter"),
        "int* c",
        "  if (threadIdx.x < 4) {\n    c[threadIdx.x] = 1; __syncwarp();\n  } else __syncwarp();",
        "  if (threadIdx.x < 4) {\n    c[threadIdx.x] = 1; __syncwarp();\n  } else __syncwarp();",
        ints(32),
        block=32,
        options={"scheduling": "pascal"},
        right_options={"scheduling": "volta"},
    ),
    Defect(
        "launch that no GPU accepts",
        simulator.InvalidLaunch,
        None,
        "float* c",
        "  c[threadIdx.x] = 1;",
        "  c[threadIdx.x] = 1;",
        floats(2048),
        block=2048,
        right_block=1024,
    ),
)
