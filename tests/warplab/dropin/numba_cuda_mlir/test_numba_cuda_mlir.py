"""Kernels of numba-cuda-mlir on the simulator. Random numbers are of NumPy's generator with the seed 0."""

from __future__ import annotations

import enum
import importlib
import subprocess
import sys
from types import FunctionType

import numpy as np
import pytest

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is an extra: pip install numba-cuda-mlir")

from numba_cuda_mlir import cuda, types

from warplab import estimate, profile, simulator
from warplab.dropin import numba_cuda_mlir as simulated
from warplab.launch.errors import ArgumentError

simulated.install()


@cuda.jit
def scaled_sum(a, b, out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i] * factor


def drawn(*shape, dtype="f4") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_arrays_of_host_and_device():
    a, b, out = drawn(1000), drawn(1000), np.zeros(1000, np.float32)
    scaled_sum[4, 256](a, b, out, np.float32(2))
    np.testing.assert_allclose(out, a + 2 * b, rtol=1e-6)
    on_device = cuda.device_array(1000, np.float32)
    scaled_sum[4, 256](cuda.to_device(a), cuda.to_device(b), on_device, np.float32(2))
    cuda.synchronize()
    np.testing.assert_array_equal(on_device.copy_to_host(), out)


def test_functions_of_devicearray_need_no_driver():
    number, made = cuda.devicearray.auto_device(2)
    assert made
    np.testing.assert_equal(number.copy_to_host(), np.array(2))
    assert cuda.devicearray.from_array_like(np.zeros((3, 4), np.int16)).strides == (8, 2)


def test_hints_and_the_device():
    a, out = drawn(64), np.zeros(64, np.float32)
    scaled_sum[1, 64](cuda.In(a), cuda.In(a), cuda.Out(out), np.float32(1))
    np.testing.assert_array_equal(out, a + a)
    assert cuda.get_current_device().name == "PTX simulator"
    assert cuda.get_current_device().compute_capability == (9, 0)


@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_arrays_of_two_dimensions(order):
    a = drawn(20, 66) if order == "strided" else np.asarray(drawn(20, 33), order=order)
    step = 2 if order == "strided" else 1
    out = np.zeros((33, 20), np.float32)
    transpose[(2, 2), (32, 16)](cuda.to_device(a)[:, ::step], out)
    np.testing.assert_array_equal(out, a[:, ::step].T)


def of_all_kinds(out, whole, real, yes, pair):
    out[0] = whole
    out[1] = real
    out[2] = 1 if yes else 0
    out[3] = pair[0]
    out[4] = pair[1]


@pytest.mark.parametrize("number", [np.int8(-3), np.uint16(60000), np.int64(-(1 << 40)), 7])
def test_numbers_and_tuples(number):
    # Each with a kernel of its own: the next test tells why.
    out = np.zeros(5)
    cuda.jit(of_all_kinds)[1, 1](out, number, 0.5, True, (3, 2.5))
    np.testing.assert_array_equal(out, [number, 0.5, 1, 3, 2.5])


class Side(enum.IntEnum):
    LEFT = -1
    RIGHT = 1


def test_members_of_enumerations():
    @cuda.jit
    def mark(out, side):
        out[0] = 5 if side == Side.RIGHT else 4

    for side, value in ((Side.LEFT, 4), (Side.RIGHT, 5)):
        out = np.zeros(1, np.int32)
        mark[1, 1](out, side)
        assert out[0] == value


def test_a_kernel_for_a_narrow_integer_is_taken_for_wider_ones():
    """So does numba-cuda-mlir 0.6.0 (`MLIRDispatcher._can_reuse_overload`); docs/front_ends.md has a report."""
    kernel, out = cuda.jit(of_all_kinds), np.zeros(5)
    kernel[1, 1](out, np.int8(1), 0.5, True, (3, 2.5))
    kernel[1, 1](out, 60_000, 0.5, True, (3, 2.5))
    assert out[0] == np.int64(60_000).astype(np.int8)
    assert len(kernel.overloads) == 1


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit("void(float32[::1], float32)")
def squares(a, start):
    a[cuda.grid(1)] = square(start + cuda.grid(1))


def test_an_explicit_signature_and_a_device_function():
    out = np.zeros(8, np.float32)
    squares[1, 8](out, 3)
    np.testing.assert_array_equal(out, (np.arange(8) + 3) ** 2)


@cuda.jit
def reverse(a, out):
    tile = cuda.shared.array(64, types.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    out[i] = tile[63 - i]


def test_a_race_is_found_at_its_line_with_the_arrays_name():
    with pytest.raises(simulator.DataRace, match="`tile`") as caught:
        reverse[1, 64](drawn(64), np.zeros(64, np.float32))
    assert caught.value.kernel == "reverse"
    assert caught.value.source.strip() == "out[i] = tile[63 - i]"


@cuda.jit
def dynamic(out):
    tile = cuda.shared.array(0, types.float32)
    i = cuda.threadIdx.x
    tile[i] = i
    cuda.syncthreads()
    out[i] = tile[63 - i]


def test_dynamic_shared_memory():
    out = np.zeros(64, np.float32)
    dynamic[1, 64, 0, 256](out)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])


def test_profile_counts_as_for_numba_cuda():
    from warplab.dropin import numba_cuda

    a, b = drawn(1000), drawn(1000)
    counts = []
    same = FunctionType(scaled_sum.py_func.__code__, {"cuda": numba_cuda})
    for kernel in (scaled_sum, numba_cuda.jit(same)):
        with profile() as p:
            kernel[4, 256](a, b, np.zeros(1000, np.float32), np.float32(2))
        assert p.kernels == ["scaled_sum"]
        counts.append((p.counts.global_load_requests, p.counts.global_load_sectors, p.counts.global_store_sectors))
        assert estimate(p, "H100").seconds > 0
    assert counts[0] == counts[1]


def test_too_few_arguments_are_refused():
    with pytest.raises((ArgumentError, TypeError)):
        scaled_sum[1, 32](np.zeros(4, np.float32))


@cuda.jit
def mark(x, out):
    out[x[cuda.grid(1)]] = 1


def test_the_miscompiled_uint8_index_is_found():
    """numba-cuda-mlir 0.6.0 loads a uint8 that is used as an index with its sign; docs/front_ends.md has a report.

    When a release has mended that, the kernel is right: then the report and this test go.
    """
    x, out = np.arange(256, dtype=np.uint8), np.zeros(256, np.int32)
    with pytest.raises(simulator.IllegalAddress, match="before the start of array") as caught:
        mark[1, 256](x, out)
    assert caught.value.index == -128
    (ptx,) = mark.inspect_asm().values()
    assert "ld.global.s8" in ptx


DEBUGGED = """
from numba_cuda_mlir import cuda


@cuda.jit(debug=True, opt=False)
def count(x, out):
    assert x[0] < 10
    for i in range(0, 10, x[0]):  # a step of 0 is what it tells as a division; that of numbers it does not
        out[0] += 1
"""


def test_exceptions_of_kernels_compiled_for_debugging(tmp_path, monkeypatch):
    # In a module of its own: pytest rewrites the asserts of this one into calls that no kernel has.
    tmp_path.joinpath("compiled_for_debugging.py").write_text(DEBUGGED)
    monkeypatch.syspath_prepend(tmp_path)
    count = importlib.import_module("compiled_for_debugging").count
    out = np.zeros(1, np.int64)
    with pytest.raises(ZeroDivisionError, match="Division by zero in kernel"):
        count[1, 1](np.zeros(1, np.int64), out)
    with pytest.raises(AssertionError, match="assertion failed"):
        count[1, 1](np.full(1, 10), out)
    out[0] = 0
    count[1, 1](np.full(1, 3), out)
    assert out[0] == 4


def test_arrays_on_the_device_in_tuples_and_on_streams():
    @cuda.jit
    def add(pair, out):
        out[cuda.grid(1)] = pair[0][cuda.grid(1)] + pair[1][0]

    out = cuda.device_array(8, np.float32, stream=cuda.stream())
    add[1, 8]((cuda.to_device(drawn(8)), cuda.to_device(np.ones(1, np.float32))), out)
    np.testing.assert_array_equal(out.copy_to_host(), drawn(8) + 1)


def test_any_number_of_arguments_and_addresses():
    @cuda.jit
    def count(out, *args):
        out[0] = len(args) + args[1][1]

    for more in ((), (np.ones(1),)):
        out = np.zeros(1)
        count[1, 1](out, np.zeros(1), np.full(2, 5.0), *more)
        assert out[0] == 7 + len(more)
    x, pointer = cuda.to_device(np.arange(8, dtype=np.int32)), types.CPointer(types.int32)

    @cuda.jit(types.void(pointer, types.int32))
    def put(address, value):
        address[3] = value

    put[1, 1](x.__cuda_array_interface__["data"][0], -1)
    assert x.copy_to_host().tolist() == [0, 1, 2, -1, 4, 5, 6, 7]


def test_enumerations_of_words_are_refused_as_numba_cuda_mlir_does():
    class Word(enum.Enum):
        HELLO = "hello"

    with pytest.raises(TypeError, match="str values are not supported"):
        cuda.jit(of_all_kinds)[1, 1](np.zeros(5), Word.HELLO, 0.5, True, (3, 2.5))


def test_its_own_tests_see_the_device():
    from numba_cuda_mlir.numba_cuda.cudadrv import devices

    assert devices.gpus[0].compute_capability == (9, 0)  # as their testing.py asks, which needs filecheck


PROGRAM = """
import numpy as np
from numba_cuda_mlir import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


x = np.arange(100, dtype=np.float32)
double[4, 32](x)
print(x.sum())
"""


def test_a_mean_that_adds_to_what_nobody_wrote_is_found():
    """numba-cuda-mlir 0.6.0 does not begin the sum at 0; docs/front_ends.md has a report."""

    @cuda.jit
    def mean(x, out):
        out[0] = np.mean(x)

    with pytest.raises(simulator.UninitializedRead, match="array `malloc"):
        mean[1, 1](np.ones(4), np.zeros(1))


def test_a_slice_with_a_step_has_the_wrong_length():
    """So it has in numba-cuda-mlir 0.6.0: its PTX divides by 3 and rounds down; docs/front_ends.md has a report."""

    @cuda.jit
    def lengths(a, b, out):
        out[0] = len(a[1::3])
        out[1] = b[::2, :].shape[0]

    out = np.zeros(2, np.int64)
    lengths[1, 1](np.zeros(8), np.zeros((8, 4)), out)
    assert out.tolist() == [2, 8]


def test_an_unmodified_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "warplab", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "9900.0"
    assert "1 kernel, 1 launch, 0 defects" in done.stdout + done.stderr


TWICE = 'extern "C" __device__ int twice(int* out, int x) { *out = 2 * x; return 0; }'


def test_what_a_kernel_links_is_run_with_it():
    twice = cuda.declare_device("twice", types.int32(types.int32), link=cuda.CUSource(TWICE))

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = twice(x[i])

    x, out = np.arange(40, dtype=np.int32), np.zeros(40, np.int32)
    kernel[2, 32](x, out)
    np.testing.assert_array_equal(out, 2 * x)


def test_linked_code_that_needs_a_driver_is_refused():
    source = cuda.CUSource(TWICE, setup_callback=lambda module: None)
    twice = cuda.declare_device("twice", types.int32(types.int32), link=source)

    @cuda.jit
    def kernel(out):
        out[0] = twice(out[0])

    with pytest.raises(NotImplementedError, match="without callbacks"):
        kernel[1, 1](np.zeros(1, np.int32))


def test_what_a_kernel_needs_is_told_without_a_driver():
    @cuda.jit("void(float32[::1])")
    def uses(out):
        kept = cuda.shared.array(64, types.float32)
        kept[cuda.threadIdx.x] = out[cuda.threadIdx.x]
        cuda.syncthreads()
        out[cuda.threadIdx.x] = kept[63 - cuda.threadIdx.x]

    (signature,) = uses.overloads
    assert uses.get_shared_mem_per_block(signature) == 256
    assert 0 < uses.get_regs_per_thread(signature) < 40
    assert uses.get_max_threads_per_block(signature) == 1024
    blocks = [uses.overloads[signature].max_cooperative_grid_blocks(block) for block in (256, (16, 16), 1024)]
    assert blocks[0] == blocks[1] == 4 * blocks[2] > 0


def test_an_array_that_has_an_interface_alone_is_an_argument():
    class Foreign:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    a, out = cuda.to_device(drawn(64)), cuda.device_array(64, np.float32)
    scaled_sum[1, 64](Foreign(a), a, Foreign(out), np.float32(1))
    np.testing.assert_array_equal(out.copy_to_host(), 2 * a.copy_to_host())


def test_a_record_is_an_argument_and_comes_back():
    kind = np.dtype([("a", np.float64), ("b", np.int32)], align=True)

    @cuda.jit
    def add(record, array, i):
        record.b += array[i].b
        array[i].a = record.a

    one, three = np.zeros(1, kind).view(np.recarray), np.zeros(3, kind)
    one.a, one.b, three["b"] = 1, 10, (20, 30, 40)
    add[1, 1](one[0], three, 2)
    assert [*map(tuple, one)] == [(1, 50)]
    assert [*map(tuple, three)] == [(0, 20), (0, 30), (1, 40)]
