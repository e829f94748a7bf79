"""The stand-in for numba.cuda: names, arrays, kernels, what it says where there is no GPU."""

import inspect
import math

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch import profiling
from warplab.launch.errors import ArgumentError
from warplab.report.profile import profile

FACTOR = 3  # a global that a kernel reads


@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


# -- names -------------------------------------------------------------------------------------------------


def test_every_name_is_one_of_numba_cuda_with_the_same_parameters():
    for name in dir(cuda):
        real = getattr(numba_cuda, name)
        ours = getattr(cuda, name)
        if name in cuda.__all__ and inspect.isfunction(real) and name != "event_elapsed_time":
            assert _parameters(ours) == _parameters(real), name


def _parameters(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]


def test_what_a_kernel_calls_is_numba_s_own():
    for name in (
        "grid",
        "threadIdx",
        "shared",
        "local",
        "const",
        "atomic",
        "syncthreads",
        "shfl_sync",
        "float32",
        "laneid",
    ):
        assert getattr(cuda, name) is getattr(numba_cuda, name)


@pytest.mark.parametrize("name", sorted(name for name in dir(numba_cuda) if not name.startswith("_")))
def test_every_name_of_numba_cuda_is_there_or_says_why_not(name):
    missing = object()
    if getattr(cuda, name, missing) is missing:
        with pytest.raises(AttributeError, match=f"cuda.{name} of Numba is not on the simulator: "):
            getattr(cuda, name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("set_memory_manager", "manages its memory itself"),
        ("IpcHandle", "one process"),
        ("driver", "current_context"),
        ("dispatcher", "import numba.cuda.dispatcher"),
        ("simulator", "one Python thread"),
    ],
)
def test_what_is_missing_says_why(name, reason):
    with pytest.raises(AttributeError, match=reason):
        getattr(cuda, name)


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'gird'"):
        cuda.gird(1)


# -- kernels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [4, (4,), (4, 1), (2, 2, 1), np.int64(4)])
def test_grids_and_blocks(grid):
    @cuda.jit
    def mark(x):
        block = cuda.blockIdx.x + cuda.gridDim.x * cuda.blockIdx.y
        x[block, cuda.threadIdx.y, cuda.threadIdx.x] += 1

    x = cuda.to_device(np.zeros((4, 4, 8), np.int32))
    mark[grid, (8, 4)](x)
    assert (x.copy_to_host() == 1).all()


def test_a_host_array_is_copied_in_and_back():
    x = np.arange(50, dtype=np.float32)
    scale[2, 32](x, 2)
    np.testing.assert_array_equal(x, 2 * np.arange(50))


def test_a_device_array_stays_on_the_device():
    host = np.arange(50, dtype=np.float32)
    x = cuda.to_device(host)
    scale[2, 32](x, np.float32(2))
    np.testing.assert_array_equal(host, np.arange(50))
    np.testing.assert_array_equal(x.copy_to_host(), 2 * np.arange(50))


def test_closures_globals_and_device_functions_defined_later():
    offset = np.float32(10)

    @cuda.jit(device=True)
    def shifted(v):
        return later(v) + offset

    @cuda.jit
    def run(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = shifted(x[i]) * FACTOR

    @cuda.jit(device=True)
    def later(v):
        return math.sqrt(v) + cuda.blockDim.x

    x = np.array([1, 4, 9], np.float32)
    run[1, 32](x)
    np.testing.assert_array_equal(x, (np.array([1, 2, 3]) + 32 + 10) * 3)


def test_a_device_function_with_a_signature():
    @cuda.jit("float32(float32)", device=True)
    def half(v):
        return v / 2

    @cuda.jit
    def run(x):
        x[0] = half(x[0])

    x = np.array([5], np.float32)
    run[1, 1](x)
    assert x[0] == 2.5


def test_names_imported_from_cuda():
    from warplab.dropin.numba_cuda import float32, grid

    @cuda.jit
    def run(x):
        i = grid(1)
        if i < x.size:
            x[i] = float32(i)

    x = np.zeros(40, np.float32)
    run[2, 32](x)
    np.testing.assert_array_equal(x, np.arange(40))


@pytest.mark.parametrize(
    "signature", ["void(float32[:], float32)", ["void(float64[:], float64)", "void(float32[:], float32)"]]
)
def test_explicit_signatures(signature):
    kernel = cuda.jit(signature)(scale.py_func)
    x = np.arange(5, dtype=np.float32)
    kernel[1, 32](x, 2)
    np.testing.assert_array_equal(x, 2 * np.arange(5))
    with pytest.raises(ArgumentError, match=r"`x` is int32\[::1\] where it takes float"):
        kernel[1, 32](x.astype(np.int32), 2)
    assert len(kernel.signatures) == (1 if isinstance(signature, str) else 2)


def test_a_kernel_returns_nothing():
    with pytest.raises(TypeError, match="void"):
        cuda.jit("float32(float32[:])")(lambda x: x[0])


def test_forall_covers_every_task():
    x = np.zeros(1000, np.int32)
    add_one.forall(1000)(x)
    add_one.forall(1000, tpb=64)(x)
    add_one.forall(0)(x)
    assert (x == 2).all()


def test_ptx_of_a_kernel():
    kernel = cuda.jit(add_one.py_func)
    kernel[1, 1](np.zeros(1, np.int32))
    ((types, ptx),) = kernel.inspect_asm().items()
    assert ".entry add_one(" in ptx
    assert kernel.inspect_asm(types) == ptx
    (special,) = kernel.specialize(np.zeros(1)).inspect_asm().values()
    assert special.count("f64") > 0


def test_the_function_stays_at_hand():
    assert scale.py_func.__name__ == scale.__name__ == "scale"
    assert "scale(x, factor)" in repr(scale)


def test_launch_mistakes_as_numba_reports_them():
    with pytest.raises(ValueError, match="launch configuration was not specified"):
        scale(np.zeros(1), 1)
    with pytest.raises(ValueError, match=r"scale\[blocks, threads_per_block\]"):
        scale[1](np.zeros(1), 1)
    with pytest.raises(ArgumentError, match=r"griddim must be made of integers, not 3\.125"):
        scale[100 / 32, 32](np.zeros(1), 1)
    with pytest.raises(ArgumentError, match=r"takes 2 arguments, 1 was given"):
        scale[1, 32](np.zeros(1))
    with pytest.raises(simulator.InvalidLaunch):
        scale[1, 2000](np.zeros(1), 1)
    with pytest.raises(TypeError, match="no option fastmth"):
        cuda.jit(fastmth=True)(scale.py_func)
    with pytest.raises(NotImplementedError, match="checks bounds without being asked"):
        cuda.jit(boundscheck=True)(scale.py_func)
    with pytest.raises(NotImplementedError, match="extensions"):
        cuda.jit(extensions=[object()])(scale.py_func)


def test_an_error_names_array_thread_and_line():
    @cuda.jit
    def unguarded(values):
        i = cuda.grid(1)
        values[i] += 1

    with pytest.raises(simulator.IllegalAddress) as caught:
        unguarded[1, 32](np.zeros(30, np.float32))
    error = caught.value
    assert (error.kernel, error.array, error.thread) == ("unguarded", "values", (30, 0, 0))
    assert error.file == "test_cuda.py"
    assert error.line == unguarded.py_func.__code__.co_firstlineno + 3


def test_reading_what_nothing_wrote_is_found():
    with pytest.raises(simulator.UninitializedRead):
        add_one[1, 32](cuda.device_array(4, np.float32))


# -- arrays ------------------------------------------------------------------------------------------------


def test_copies_to_and_from_the_host():
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = cuda.to_device(host)
    out = np.zeros((3, 4), np.float32)
    assert x.copy_to_host(out) is out
    np.testing.assert_array_equal(out, host)
    x.copy_to_device(host * 2)
    np.testing.assert_array_equal(x.copy_to_host(), host * 2)
    assert cuda.to_device(host, to=x) is x
    np.testing.assert_array_equal(x.copy_to_host(), host)
    np.testing.assert_array_equal(np.asarray(x), host)  # Numba's arrays do this, CuPy's do not


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (np.zeros(11, np.float32), ValueError),
        (np.zeros(12, np.float64), TypeError),
        (np.zeros(24, np.float32)[::2], ValueError),
    ],
)
def test_copies_that_do_not_fit(wrong, error):
    x = cuda.to_device(np.zeros(12, np.float32))
    with pytest.raises(error, match="incompatible"):
        x.copy_to_host(wrong)


def test_indices_and_slices_share_memory():
    x = cuda.to_device(np.arange(20, dtype=np.int32).reshape(4, 5))
    assert x[1, 2] == 7
    np.testing.assert_array_equal(x[1:3, ::2].copy_to_host(), [[5, 7, 9], [10, 12, 14]])
    np.testing.assert_array_equal(x[-1].copy_to_host(), [15, 16, 17, 18, 19])
    add_one[1, 32](x[2])
    assert x[2, 0] == 11
    x[0] = 7
    x[1, 1:3] = np.array([1, 2], np.int32)
    x[3, 4] = 100
    np.testing.assert_array_equal(x.copy_to_host()[[0, 1, 3]], [[7] * 5, [5, 1, 2, 8, 9], [15, 16, 17, 18, 100]])
    with pytest.raises(NotImplementedError, match="copy it to the host"):
        x[np.array([0, 1])]


def test_what_is_written_through_a_slice_counts_as_written():
    x = cuda.device_array(10, np.float32)
    x[::2] = 1
    add_one[1, 32](x[::2])
    with pytest.raises(simulator.UninitializedRead):
        add_one[1, 32](x)


def test_shapes():
    x = cuda.to_device(np.arange(6, dtype=np.float32))
    assert x.reshape(2, 3).shape == x.reshape((2, -1)).shape == (2, 3)
    assert x.reshape(2, 3).ravel().shape == (6,)
    np.testing.assert_array_equal(x.reshape(2, 3).T.copy_to_host(), np.arange(6).reshape(2, 3).T)
    assert x.view(np.int32).dtype == np.int32
    assert [part.shape for part in x.split(4)] == [(4,), (2,)]
    with pytest.raises(NotImplementedError, match="requires copying"):
        x.reshape(2, 3)[:, :2].ravel()
    assert (x.ndim, x.size, x.nbytes, x.strides, len(x)) == (1, 6, 24, (4,), 6)
    assert "DeviceNDArray shape=(6,) dtype=float32" in repr(x)


def test_arrays_like_others():
    fortran = np.zeros((3, 4), np.float32, order="F")
    assert cuda.device_array_like(fortran).strides == (4, 12)
    assert cuda.to_device(fortran).is_f_contiguous()
    assert cuda.device_array((2, 3)).dtype == np.float64
    with pytest.raises(TypeError, match="integer"):
        cuda.device_array(2.5)
    with pytest.raises(ValueError, match="ascontiguousarray"):
        cuda.to_device(np.zeros(10)[::2])
    with pytest.raises(TypeError, match="Python objects"):
        cuda.to_device(np.array([None]))


def test_pinned_and_mapped_arrays():
    x = cuda.pinned_array(10, np.float32)
    assert isinstance(x, np.ndarray)
    with cuda.pinned(x):
        pass
    for make in (cuda.mapped_array, cuda.managed_array):
        shared = make((2, 5), np.float32)
        shared[:] = 1
        add_one[1, 32](shared[1])
        np.testing.assert_array_equal(shared, [[1] * 5, [2] * 5])
        copied = shared + 1  # an array of the host
        add_one[1, 32](copied[0])
        np.testing.assert_array_equal(copied, [[3] * 5, [3] * 5])


def test_memory_is_freed_with_the_last_array():
    memory = simulator.default_device().memory
    before = memory.used_bytes
    x = cuda.device_array(1000, np.float32)
    part = x[:10]
    assert memory.used_bytes == before + 4000
    assert cuda.current_context().get_memory_info().free == memory.memory_bytes - memory.used_bytes
    del x
    assert memory.used_bytes == before + 4000
    del part
    assert memory.used_bytes == before


# -- the device --------------------------------------------------------------------------------------------


def test_the_device_says_what_it_is():
    device = cuda.get_current_device()
    assert device.name == "PTX simulator"
    assert device.compute_capability == (9, 0)
    assert device.WARP_SIZE == 32
    assert cuda.select_device(0) is device
    with pytest.raises(AttributeError, match="does not know"):
        _ = device.CLOCK_RATE


def test_events_order_but_give_no_time():
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event(timing=True)
    start.record(stream)
    with stream.auto_synchronize():
        add_one[1, 32, stream](np.zeros(1))
    end.record(stream)
    end.synchronize()
    for elapsed in (lambda: cuda.event_elapsed_time(start, end), lambda: start.elapsed_time(end)):
        with pytest.raises(RuntimeError, match="no GPU here"):
            elapsed()


# -- profiles ----------------------------------------------------------------------------------------------


def test_a_profile_collects_the_launches_inside_it():
    x = np.zeros(64, np.float32)
    add_one[2, 32](x)
    with profile() as outer:
        add_one[2, 32](x)
        with profile() as inner:
            scale[2, 32](x, 2)
            scale[1, 32](x, 2)
    add_one[2, 32](x)
    assert outer.kernels == ["add_one", "scale"]
    assert (len(outer), len(inner)) == (3, 2)
    assert inner.counts.global_load_requests == 3
    assert inner[0].accesses
    assert "add_one" in str(outer)
    assert "add_one" in outer._repr_html_()
    assert [launch.kernel for launch in inner] == ["scale", "scale"]


def test_outside_a_profile_checks_are_on_and_counters_off():
    assert not profiling.active()


def test_a_failed_launch_ends_the_profile_and_is_not_in_it():
    with pytest.raises(simulator.InvalidLaunch), profile() as p:
        add_one[1, 2000](np.zeros(1))
    assert len(p) == 0
    assert not profiling.active()


def test_an_empty_profile_says_why_that_may_be():
    with profile() as p:
        pass
    assert "No launch was recorded" in str(p)
    assert "inside the `with` block" in p._repr_html_()
