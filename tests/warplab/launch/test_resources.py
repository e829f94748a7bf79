"""Registers, memory and spills from NVIDIA's assembler, and the occupancy of launches; also against a GPU."""

import numpy as np
import pytest
from numba import float32
from numba import types as numba_types

from warplab.compile.errors import CompileError
from warplab.dropin import numba_cuda as cuda
from warplab.hardware.cards import CARDS, card_of
from warplab.launch import resources
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import simulate
from warplab.report import profile_report
from warplab.report.profile import Profile

CODE = r"""
extern "C" __global__ void copy(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x]; }

extern "C" __global__ void reverse(const float* a, float* b) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void dynamic(float* a) {
  __shared__ double s[5];
  extern __shared__ float d[];
  s[threadIdx.x % 5] = d[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[0] + d[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void local(const int* index, float* b) {
  float a[100];
  for (int i = 0; i < 100; i++) a[index[i]] = i;
  b[threadIdx.x] = a[index[threadIdx.x]];
}

template <int N> __global__ void many(float* p, int n) {
  float a[N];
  #pragma unroll
  for (int i = 0; i < N; i++) a[i] = p[i * n + threadIdx.x];
  for (int k = 0; k < n; k++) {
    #pragma unroll
    for (int i = 0; i < N; i++) a[i] = a[i] * a[(7 * i + 3) % N];
  }
  #pragma unroll
  for (int i = 0; i < N; i++) p[i * n + threadIdx.x] = a[i];
}
"""


def cu(entry: str, *options: str) -> CudaSource:
    return CudaSource(CODE, entry, options)


@cuda.jit
def reverse_python(a, b):
    s = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    b[i] = s[255 - i]


@cuda.jit
def divide_python(a, b):
    i = cuda.threadIdx.x
    b[i] = a[i] / b[i]


@pytest.mark.parametrize("card", [name for name, c in CARDS.items() if c.compute_capability >= (7, 5)])
def test_a_small_kernel(card):
    found = resources.of(cu("copy"), card=card)
    assert 4 <= found.registers <= 16
    assert (found.shared_bytes, found.local_bytes, found.spill_bytes, found.barriers) == (0, 0, 0, 0)
    major, minor = CARDS[card].compute_capability
    assert found.arch == 10 * major + minor
    assert found.note == ""


def test_shared_memory_and_barriers_in_both_languages():
    x = np.zeros(256, np.float32)
    for kernel, args in ((cu("reverse"), ()), (reverse_python, (x, x))):
        for card in ("T4", "A100", "H100"):
            found = resources.of(kernel, *args, card=card)
            assert (found.shared_bytes, found.barriers) == (1024, 1)


def test_an_array_indexed_at_run_time_is_in_local_memory_and_no_spill():
    found = resources.of(cu("local"))
    assert found.local_bytes >= 400
    assert found.spill_bytes == 0


def test_more_values_than_registers_spill():
    assert resources.of(cu("many<8>")).spill_bytes == 0
    found = resources.of(cu("many<300>"))
    assert found.registers == 255
    assert found.spill_bytes >= 4 * 2 * (300 - 255)
    assert found.local_bytes >= 4 * (300 - 255)


def test_functions_that_a_kernel_calls_count():
    """Division of float64 is a call, which needs more registers than the kernel around it."""
    x = np.zeros(256)
    assert resources.of(divide_python, x, x).registers > resources.of(reverse_python, x, x).registers + 8


def test_limits_on_registers_hold():
    free = resources.of(cu("many<100>"))
    limited = resources.of(cu("many<100>", "-maxrregcount=32"))
    assert free.registers > 100
    assert limited.registers <= 32
    assert limited.spill_bytes > 0


def test_cards_older_than_the_compiler_say_so():
    found = resources.of(cu("copy"), card="P100")
    assert found.arch == 75
    assert "sm_60" in str(found)
    assert "sm_75, the oldest" in str(found)


def test_a_launch_gets_the_numbers_and_rows_in_its_report():
    x = np.zeros(256, np.float32)
    for kernel in (cu("reverse"), reverse_python):
        launch = simulate(kernel, 1, 256, (x, x.copy()))
        assert "registers" not in launch.static
        assert "registers" not in profile_report.text(launch)
        found = resources.of(launch, card="A100")
        assert launch.static["registers"] == found.registers
        assert launch.static["arch"] == 80
        rows = {line.split("  ")[0]: line for line in profile_report.text(launch).splitlines()}
        assert str(found.registers) in rows["registers per thread"]
        assert "launch__registers_per_thread" in rows["registers per thread"]
        assert "sm_80" in rows["machine code for"]


def test_errors():
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        resources.of(reverse_python)
    with pytest.raises(ValueError, match="no card is named 'A1000'"):
        resources.of(cu("copy"), card="A1000")
    with pytest.raises(ValueError, match="block is missing"):
        resources.occupancy(cu("copy"), "H100")
    with pytest.raises(ValueError, match="2 launches; give one"):
        resources.of(Profile([LaunchRecord("f", (1, 1, 1), (1, 1, 1))] * 2))
    with pytest.raises(ValueError, match="does not know its source"):
        resources.of(LaunchRecord("f", (1, 1, 1), (1, 1, 1)))
    with pytest.raises(TypeError, match="is not a kernel"):
        resources.of(3)
    only_hopper = CudaSource('extern "C" __global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }', "f")
    with pytest.raises(CompileError, match=r"wgmma\S* not supported on .target 'sm_80'"):
        resources.of(only_hopper, card="A100")


def test_occupancy_of_a_launch_counts_its_dynamic_shared_memory():
    kernel = CudaSource(
        """extern "C" __global__ void f(float* x) {
          extern __shared__ float s[];
          s[threadIdx.x] = 1;
          x[threadIdx.x] = s[threadIdx.x];
        }""",
        "f",
    )
    launch = simulate(kernel, 1, 32, (np.zeros(32, np.float32),), shared_bytes=100 * 1024)
    found = resources.occupancy(launch, "H100")
    assert found.blocks == 2  # of 228 KiB, each block takes 101
    assert found.limited_by == ("shared memory",)
    assert str(found) == "H100: 2 blocks of 32 threads on an SM, 2 of 64 warps: 3.12 %, limited by shared memory"
    assert resources.occupancy(kernel, "H100", block=32, shared_bytes=100 * 1024) == found
    assert resources.occupancy(launch, "T4").blocks == 0
    assert "no block fits: a block needs 102,400 bytes of shared memory, it can have 65,536" in str(
        resources.occupancy(launch, "T4")
    )


@pytest.mark.gpu
def test_the_driver_agrees():
    """Registers, local and shared memory of the loaded kernel, and the driver's own occupancy."""
    import cupy
    from cuda.bindings import driver

    device = card_of(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    for entry in ("copy", "reverse", "dynamic", "local", "many<100>", "many<300>"):
        ours = resources.of(cu(entry), card=device)
        module = cupy.RawModule(code=CODE, name_expressions=["many<100>", "many<300>"], options=("-std=c++17",))
        kernel = module.get_function(entry).kernel
        attributes = driver.CUfunction_attribute
        got = [
            driver.cuFuncGetAttribute(getattr(attributes, f"CU_FUNC_ATTRIBUTE_{a}"), kernel.ptr)[1]
            for a in ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES")
        ]
        assert got == [ours.registers, ours.shared_bytes, ours.local_bytes], entry
        for threads in (32, 96, 256, 1000, 1024):
            for dynamic in (0, 5000, 40_000):
                error, blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, threads, dynamic)
                assert not error
                found = resources.occupancy(cu(entry), device, block=threads, shared_bytes=dynamic)
                assert found.blocks == blocks, (entry, threads, dynamic)


def test_explicit_signatures_decide_the_types():
    kernel = cuda.jit((numba_types.float64[:],))(doubles)
    assert resources.of(kernel, np.zeros(4)).kernel == "doubles"
    with pytest.raises(ArgumentError, match="was compiled for"):
        resources.of(kernel, np.zeros(4, np.float32))


def doubles(a):
    a[cuda.threadIdx.x] *= 2


@pytest.mark.gpu
def test_numba_agrees():
    import numba.cuda

    @numba.cuda.jit
    def tile_sums(a, b):
        s = numba.cuda.shared.array((16, 17), numba.float64)
        x, y = numba.cuda.threadIdx.x, numba.cuda.threadIdx.y
        s[y, x] = a[y, x]
        numba.cuda.syncthreads()
        for k in range(16):
            b[y, x] += s[k, x] / s[y, k]

    a, b = numba.cuda.to_device(np.ones((16, 16))), numba.cuda.to_device(np.zeros((16, 16)))
    tile_sums[1, (16, 16)](a, b)
    major, minor = numba.cuda.get_current_device().compute_capability
    device = next(c for c in CARDS.values() if c.compute_capability == (major, minor))
    ours = resources.of(tile_sums, a, b, card=device)
    (registers,), (shared,), (local,) = (
        getattr(tile_sums, f"get_{what}")().values()
        for what in ("regs_per_thread", "shared_mem_per_block", "local_mem_per_thread")
    )
    assert (ours.registers, ours.shared_bytes, ours.local_bytes) == (registers, shared, local)
