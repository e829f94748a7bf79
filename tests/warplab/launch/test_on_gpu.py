"""The GPU backend: the real libraries, profiles that time on the GPU and count on the simulator.

Most of it needs a GPU; what surrounds the launches is tested everywhere.
"""

import cupy
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from numba.cuda import grid

from tests.support.cupy_expressions import EXPRESSIONS
from tests.support.waiting import HANG
from warplab import simulator
from warplab.dropin import cupy as dropin_cp
from warplab.launch import on_gpu, profiling
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import simulate
from warplab.report.profile import profile

CODE = """extern "C" __global__ void add(float* x, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}
template <typename T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
extern "C" __global__ void reverse(int* x) {
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
"""


# -- without a GPU -------------------------------------------------------------------------------------------


def add_one(x):
    i = grid(1)
    if i < x.size:
        x[i] += 1


def test_the_simulation_leaves_the_arguments_alone():
    x = np.zeros(32, np.float32)
    profile, note = on_gpu._simulate(CudaSource(CODE, "add"), (1,), (32,), (x, np.float32(1), np.int32(32)), 0)
    assert note is None
    assert profile.counts.global_load_requests == 1
    assert (x == 0).all()


def test_arguments_that_are_one_array_are_one_copy():
    source = CudaSource('extern "C" __global__ void f(int* a, int* b) { a[0] = 5; b[1] = a[0]; }', "f")
    x = np.zeros(2, np.int32)
    profile, _ = on_gpu._simulate(source, (1,), (1,), (x, x), 0)
    assert {access.array for access in profile.accesses} == {"a, b"}


@pytest.mark.parametrize(
    ("grid", "arguments", "reason"),
    [
        ((1,), (np.broadcast_to(np.float32(0), (2**29 + 1,)), np.float32(1), np.int32(8)), "2,147,483,660 bytes"),
        ((1,), (np.zeros(8, np.float32), np.float32(1), 8.0), "write np.int32"),
    ],
)
def test_what_cannot_be_simulated_is_noted(grid, arguments, reason):
    profile, note = on_gpu._simulate(CudaSource(CODE, "add"), grid, (256,), arguments, 0)
    assert note.startswith("add was timed but not counted: ")
    assert reason in note
    assert profile.kernel == "add"
    assert profile.counts.warp_instructions == 0


def test_a_large_launch_is_sampled():
    x = np.zeros(2**23, np.float32)
    profile, note = on_gpu._simulate(CudaSource(CODE, "add"), (2**15,), (256,), (x, np.float32(1), np.int32(x.size)), 0)
    assert note is None
    ran, blocks = profile.sampled
    assert ran <= on_gpu.SAMPLES[0] // 256
    assert blocks == 2**15
    assert profile.counts.global_load_requests == 2**23 // 32
    assert not x.any()


def test_a_launch_of_many_instructions_is_sampled(monkeypatch):
    monkeypatch.setattr(on_gpu, "MAX_INSTRUCTIONS", 10_000)
    monkeypatch.setattr(on_gpu, "SAMPLES", (1 << 11, 1 << 8))
    x = np.zeros(4096, np.float32)
    profile, note = on_gpu._simulate(CudaSource(CODE, "add"), (128,), (32,), (x, np.float32(1), np.int32(4096)), 0)
    assert note is None
    assert profile.sampled == (8, 128)
    assert profile.counts.global_load_requests == 128


def test_a_launch_of_too_many_instructions_is_noted(monkeypatch):
    monkeypatch.setattr(on_gpu, "MAX_INSTRUCTIONS", 100)
    x = np.zeros(32, np.float32)
    _, note = on_gpu._simulate(CudaSource(CODE, "add"), (1,), (32,), (x, np.float32(1), np.int32(32)), 0)
    assert "more than 100 instructions" in note


def test_an_endless_kernel_is_simulated_once(monkeypatch):
    counted = []
    monkeypatch.setattr(
        on_gpu,
        "simulate",
        lambda *args, **options: counted.append(1) or simulate(*args, path_limit=999, **options),
    )
    source = CudaSource('extern "C" __global__ void f(volatile int* x) { while (!*x); }', "f")
    _, note = on_gpu._simulate(source, (1,), (32,), (np.zeros(1, np.int32),), 0)
    assert "does not end" in note
    assert len(counted) == 1


def test_a_mistake_that_the_simulator_finds_is_raised_before_the_launch():
    with pytest.raises(simulator.IllegalAddress):
        on_gpu._simulate(CudaSource(CODE, "add"), (1,), (64,), (np.zeros(8, np.float32), np.float32(1), np.int32(9)), 0)


def test_cupy_s_kernels_with_hooks_know_their_source():
    raw_kernel, raw_module = on_gpu._cupy_classes()
    assert issubclass(raw_kernel, cupy.RawKernel)
    assert issubclass(raw_module, cupy.RawModule)
    kernel = raw_kernel(CODE, "add", ("-DX",))
    source = source_of(kernel)
    assert (source.entry, source.options) == ("add", ("-DX",))
    assert ".entry add(" in kernel.ptx
    copied = raw_kernel.__new__(raw_kernel)
    copied.__setstate__(cupy.RawKernel(CODE, "_Z4fillIfEvPT_S0_").__getstate__())
    copied._expression, copied._expressions = "fill<float>", ("fill<float>",)
    x = np.zeros(4, np.float32)
    simulate(copied, 1, 4, (x, np.float32(3)))
    assert (x == 3).all()


def test_paused_profiles_take_only_what_they_are_given():
    with profile() as p:
        with profiling.paused() as record:
            assert not profiling.active()
            record(LaunchRecord("given", (1, 1, 1), (1, 1, 1)), "a note")
        assert profiling.active()
    assert p.kernels == ["given"]
    assert p.notes == ["a note"]
    assert "a note" in str(p)


# -- on a GPU ------------------------------------------------------------------------------------------------


@pytest.fixture
def cuda():
    from warplab import cuda
    from warplab.hardware import backend

    assert backend.name() == "gpu"
    return cuda


@pytest.fixture
def cp():
    from warplab import cp
    from warplab.hardware import backend

    assert backend.name() == "gpu"
    return cp


@pytest.mark.gpu
def test_the_names_are_the_real_libraries(cuda, cp):
    import numba.cuda

    assert cuda is numba.cuda
    assert cp is cupy
    assert isinstance(cp.RawModule(code=CODE).get_function("add"), type(cp.RawKernel(CODE, "add")))


def check_timed(profile):
    (launch,) = profile.launches
    assert 1e-7 < launch.gpu_seconds < HANG  # other processes may hold the GPU
    assert launch.gpu_name == cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return launch


@pytest.mark.gpu
@pytest.mark.parametrize("specialized", [False, True])
@pytest.mark.parametrize("where", ["host", "device", "cupy"])
def test_a_numba_launch_is_timed_counted_and_runs_once(cuda, cp, where, specialized):
    kernel = cuda.jit("void(float32[:])")(add_one) if specialized else cuda.jit(add_one)
    host = np.zeros(1000, np.float32)
    x = {"host": lambda: host, "device": lambda: cuda.to_device(host), "cupy": lambda: cp.asarray(host)}[where]()
    with profile() as p:
        kernel[8, 128](x)
    launch = check_timed(p)
    values = {"host": lambda: x, "device": lambda: x.copy_to_host(), "cupy": lambda: x.get()}[where]()
    np.testing.assert_array_equal(values, np.ones(1000))
    alone = simulate(kernel, 8, 128, (np.zeros(1000, np.float32),))
    assert launch.counts == alone.counts
    assert launch.counts.global_load_requests == 32
    assert launch.kernel == "add_one"
    kernel[8, 128](x)  # outside of a profile
    assert len(p) == 1


@pytest.mark.gpu
def test_a_raw_kernel_is_timed_counted_and_runs_once(cp):
    x = cp.zeros(1000, cp.float32)
    kernel = cp.RawModule(code=CODE).get_function("add")
    arguments = (x, np.float32(2), np.int32(1000))
    with profile() as p:
        kernel((8,), (128,), arguments)
    launch = check_timed(p)
    np.testing.assert_array_equal(x.get(), np.full(1000, 2))
    assert launch.counts.global_load_requests == 32
    assert {access.array for access in launch.accesses} == {"x"}
    kernel((8,), (128,), arguments)
    np.testing.assert_array_equal(x.get(), np.full(1000, 4))
    assert len(p) == 1


@pytest.mark.gpu
def test_templates_shared_memory_and_streams(cp):
    module = cp.RawModule(code=CODE, name_expressions=["fill<double>"])
    x, y = cp.zeros(8, cp.float64), cp.arange(32, dtype=cp.int32)
    stream = cp.cuda.Stream(non_blocking=True)
    with profile() as p:
        module.get_function("fill<double>")((1,), (8,), (x, np.float64(3)))
        with stream:
            cp.RawKernel(CODE, "reverse")((1,), (32,), (y,), shared_mem=128)
    stream.synchronize()
    np.testing.assert_array_equal(x.get(), np.full(8, 3))
    np.testing.assert_array_equal(y.get(), np.arange(32)[::-1])
    assert p.kernels == ["fill<double>", "reverse"]
    assert all(launch.gpu_seconds > 0 for launch in p)
    assert p[1].counts.shared_store_requests == 1


@pytest.mark.gpu
def test_an_overrun_inside_a_profile_spares_the_gpu(cuda, cp):
    @cuda.jit
    def unguarded(x):
        x[cuda.grid(1)] = 1

    x = cuda.to_device(np.zeros(100, np.float32))
    with pytest.raises(simulator.IllegalAddress, match="`x`"), profile():
        unguarded[4, 32](x)
    kernel = cp.RawKernel(CODE, "add")
    y = cp.zeros(10, cp.float32)
    with pytest.raises(simulator.IllegalAddress), profile():
        kernel((1,), (32,), (y, np.float32(1), np.int32(32)))
    cp.cuda.runtime.deviceSynchronize()
    np.testing.assert_array_equal(y.get(), np.zeros(10))


@pytest.mark.gpu
def test_a_large_launch_is_timed_plausibly_and_its_counters_sampled(cp):
    n = 1 << 27
    x = cp.zeros(n, cp.float32)
    with profile() as p:
        cp.RawKernel(CODE, "add")((n // 256,), (256,), (x, np.float32(1), np.int32(n)))
    assert p[0].sampled[1] == n // 256
    assert p[0].counts.global_load_requests == n // 32
    assert p.notes == []
    gigabytes_a_second = 2 * 4 * n / p[0].gpu_seconds / 1e9
    assert 100 < gigabytes_a_second < 10_000
    assert float(x.min()) == float(x.max()) == 1.0


@pytest.mark.gpu
def test_the_time_is_the_gpu_s_even_at_the_first_launch(cp):
    """Compiling and loading take milliseconds; an empty kernel takes microseconds."""
    kernel = cp.RawKernel('extern "C" __global__ void first_launch_of_all() {}', "first_launch_of_all")
    with profile() as p:
        kernel((1,), (32,), ())
    assert p[0].gpu_seconds < 1e-4


@pytest.mark.gpu
def test_simulate_writes_back_to_arrays_on_the_gpu(cuda, cp):
    x, y = cp.zeros(32, cp.float32), cuda.to_device(np.zeros(32, np.float32))
    simulate(CudaSource(CODE, "add"), 1, 32, (x, np.float32(1), np.int32(32)))
    simulate(add_one, 1, 32, (y,))
    np.testing.assert_array_equal(x.get(), np.ones(32))
    np.testing.assert_array_equal(y.copy_to_host(), np.ones(32))


@pytest.mark.gpu
def test_device_functions_of_numba_simulate(cuda):
    @cuda.jit(device=True)
    def twice(v):
        return 2 * v

    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = twice(x[i])

    x = np.arange(10, dtype=np.float32)
    with profile() as p:
        double[1, 32](x)
    check_timed(p)
    np.testing.assert_array_equal(x, 2 * np.arange(10))


@pytest.mark.gpu
def test_cells_of_cuda_become_cupy_s_kernels(cp):
    from warplab.dropin import magic

    shell = InteractiveShell.instance(colors="nocolor")
    magic.run(shell, "-DVALUE=7", "#include <cuda_fp16.h>\n__global__ void put(int* x) { x[threadIdx.x] = VALUE; }")
    x = cp.zeros(4, cp.int32)
    with profile() as p:
        shell.user_ns["put"]((1,), (4,), (x,))
    np.testing.assert_array_equal(x.get(), np.full(4, 7))
    assert check_timed(p).lines


@pytest.mark.gpu
@pytest.mark.parametrize("what", EXPRESSIONS)
def test_the_stand_in_computes_what_cupy_computes(what, cp):
    a, b = np.arange(6, dtype=np.float32), np.arange(6, 0, -1, dtype=np.float32)
    expression = EXPRESSIONS[what]
    real = expression(cupy, cupy.asarray(a), cupy.asarray(b))
    ours = expression(dropin_cp, dropin_cp.asarray(a), dropin_cp.asarray(b))
    assert real.dtype == ours.dtype
    assert real.shape == ours.shape
    np.testing.assert_allclose(ours.get(), real.get(), rtol=1e-6)
