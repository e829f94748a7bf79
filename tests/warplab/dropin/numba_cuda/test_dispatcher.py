"""Kernels of `cuda.jit`: launches, mistakes, profiles, what was compiled and what it needs."""

import math

import numpy as np
import pytest

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
    with pytest.raises(ArgumentError, match=r"griddim must be a sequence of integers, got \[3\.125\]"):
        scale[100 / 32, 32](np.zeros(1), 1)
    with pytest.raises(ArgumentError, match=r"takes 2 arguments, 1 was given"):
        scale[1, 32](np.zeros(1))
    with pytest.raises(simulator.InvalidLaunch):
        scale[1, 2000](np.zeros(1), 1)
    with pytest.raises(TypeError, match="no option fastmth"):
        cuda.jit(fastmth=True)(scale.py_func)
    with pytest.raises(NotImplementedError, match="checks bounds without being asked"):
        cuda.jit(boundscheck=True)(scale.py_func)


def test_an_error_names_array_thread_and_line():
    @cuda.jit
    def unguarded(values):
        i = cuda.grid(1)
        values[i] += 1

    with pytest.raises(simulator.IllegalAddress) as caught:
        unguarded[1, 32](np.zeros(30, np.float32))
    error = caught.value
    assert (error.kernel, error.array, error.thread) == ("unguarded", "values", (30, 0, 0))
    assert error.file == "test_dispatcher.py"
    assert error.line == unguarded.py_func.__code__.co_firstlineno + 3


def test_reading_what_nothing_wrote_is_found():
    with pytest.raises(simulator.UninitializedRead):
        add_one[1, 32](cuda.device_array(4, np.float32))


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


def test_a_kernel_called_by_a_kernel_is_a_device_function():
    @cuda.jit
    def half(x):
        return x / 2

    @cuda.jit
    def run(x):
        x[cuda.grid(1)] = half(x[cuda.grid(1)])

    x = np.arange(4.0)
    run[1, 4](x)
    np.testing.assert_array_equal(x, np.arange(4) / 2)


TABLE = np.arange(100.0)


def needs(x):
    shared = cuda.shared.array(128, np.float64)
    local = cuda.local.array(50, np.float64)
    constant = cuda.const.array_like(TABLE)
    i = cuda.threadIdx.x
    for j in range(50):
        local[(j * 7) % 50] = x[j]
    shared[i] = x[i] + local[int(x[i])]
    cuda.syncthreads()
    x[i] = shared[127 - i] + constant[i]


def test_resources_of_a_kernel():
    kernel = cuda.jit("void(float64[::1])")(needs)
    assert kernel.specialized
    assert 16 <= kernel.get_regs_per_thread() <= 64
    assert kernel.get_shared_mem_per_block() == 1024
    assert kernel.get_local_mem_per_thread() == 400
    assert kernel.get_const_mem_size() == 800
    assert kernel.get_max_threads_per_block() == 1024
    several = cuda.jit(["void(float64[::1])", "void(float32[::1])"])(needs)
    assert set(several.get_local_mem_per_thread().values()) == {400}
    assert several.get_shared_mem_per_block(several.signatures[1]) == 1024


def many_registers(a, out):
    b, c, d, e, f, g, h = a[0], a[1], a[2], a[3], a[4], a[5], a[6]
    k, m, n, o, p, q, r = a[7], a[8], a[9], a[10], a[11], a[12], a[13]
    s = b / (c + d * e - f * g + h - k * m + n - o * p + q * r)  # after which all are still needed
    out[0] = (b - s) * (c - s) * (d - s) * (e - s) * (f - s) * (g - s) * (h - s) * (k - s) * (m - s) * (n - s)
    out[1] = (b + s) * (o - s) * (p - s) * (q - s) * (r - s)


def test_max_registers_and_launch_bounds():
    signature = "void(float64[::1], float64[::1])"
    free, bound = (cuda.jit(signature, **options)(many_registers) for options in ({}, {"max_registers": 24}))
    assert free.get_regs_per_thread() > 32
    assert bound.get_regs_per_thread() == 24
    limited = cuda.jit(signature, launch_bounds=192)(many_registers)
    assert limited.get_max_threads_per_block() == 192


def test_what_was_compiled_can_be_read(capsys):
    kernel = cuda.jit(needs)
    kernel.compile("void(float64[::1])")
    (llvm,) = kernel.inspect_llvm().values()
    assert "define" in llvm
    kernel.inspect_types()
    assert "shared = cuda.shared.array(128, np.float64)" in capsys.readouterr().out
    (sass,) = kernel.inspect_sass().values()
    assert "EXIT" in sass
    for name in ("inspect_sass_cfg", "inspect_lto_ptx"):
        with pytest.raises(AttributeError, match=rf"{name}\(\) of Numba's kernels is not on the simulator"):
            getattr(kernel, name)()
    with pytest.raises(RuntimeError, match="already specialized"):
        kernel.specialize(np.ones(3)).specialize(np.ones(3))
