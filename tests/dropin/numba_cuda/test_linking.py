"""Options of cuda.jit on the simulator: linked CUDA C++ and PTX, exceptions of debug kernels, what a kernel needs."""

import numba
import numpy as np
import pytest

from warplab import simulator
from warplab.compile import ptx_linking
from warplab.compile.errors import CompileError
from warplab.dropin import numba_cuda as cuda
from warplab.launch.simulate import simulate

# -- linking -----------------------------------------------------------------------------------------------------

THREE = """
__device__ const int table[3] = {3, 30, 300};
static __device__ __noinline__ int helper(int x) { return x * table[x % 3]; }
extern "C" __device__ int three(int* result, int x) { *result = helper(x); return 0; }
"""
FOUR = """
__device__ const int table[3] = {4, 40, 400};
static __device__ __noinline__ int helper(int x) { return x * table[x % 3]; }
extern "C" __device__ int four(int* result, int x) { *result = helper(x); return 0; }
"""


def test_linked_cuda_and_ptx_keep_their_own_names(tmp_path):
    path = tmp_path / "four.cu"
    path.write_text(FOUR)
    three = cuda.declare_device("three", "int32(int32)", link=cuda.CUSource(THREE))
    four = cuda.declare_device("four", "int32(int32)")

    @cuda.jit(link=[str(path)])
    def both(x, out):
        i = cuda.grid(1)
        out[i] = three(x[i]) + 1000 * four(x[i])

    x, out = np.arange(6, dtype=np.int32), np.zeros(6, np.int64)
    both[1, 6](x, out)
    np.testing.assert_array_equal(out, x * np.tile([3, 30, 300], 2) + 1000 * x * np.tile([4, 40, 400], 2))
    (ptx,) = both.inspect_asm().values()
    assert ptx_linking.undefined(ptx) == []
    assert both.get_regs_per_thread(both.signatures[0]) > 8

    path = tmp_path / "three.ptx"
    named = {"abi": "c", "abi_info": {"abi_name": "triple"}}
    path.write_text(cuda.compile_ptx(lambda x: 3 * x, (numba.int32,), device=True, **named)[0])
    triple = cuda.declare_device("triple", "int64(int32)", link=str(path), abi="c")

    @cuda.jit
    def of_ptx(x, out):
        out[cuda.grid(1)] = triple(x[cuda.grid(1)])

    of_ptx[1, 6](x, out)
    np.testing.assert_array_equal(out, 3 * x)


FETCH = """extern "C" __device__ int fetch(float* result, void* meminfo, void* parent, long long n, long long item,
                                float* data, long long shape, long long stride, int i) {
  *result = data[i];
  return 0;
}
"""


def test_an_error_in_linked_code_names_its_line():
    @cuda.jit
    def read(x, out):
        out[0] = fetch(x, 100)

    fetch = cuda.declare_device("fetch", "float32(float32[::1], int32)", link=cuda.CUSource(FETCH, name="fetch.cu"))
    with pytest.raises(simulator.IllegalAddress) as caught:
        read[1, 1](np.ones(3, np.float32), np.ones(1, np.float32))
    assert (caught.value.file, caught.value.line) == ("fetch.cu", 3)
    assert "*result = data[i];" in str(caught.value)


def test_what_numba_links_belongs_to_the_line_that_calls_it():
    @cuda.jit
    def square(x, out):
        i = cuda.grid(1)
        y = x[i]
        out[i] = y * y

    x = np.ones(32, np.float16)
    profile = simulate(square, 1, 32, (x, x.copy()), counters=True)
    lines = {line for _, line in profile.lines}
    first = square.py_func.__code__.co_firstlineno
    assert lines <= {first + k for k in range(5)}
    assert first + 4 in lines


def test_what_cannot_be_linked():
    def kernel(out):
        out[0] = 1

    for code in (cuda.Cubin(b""), cuda.Fatbin(b""), cuda.Object(b""), cuda.Archive(b""), cuda.LTOIR(b"")):
        with pytest.raises(NotImplementedError, match=f"{type(code).__name__} cannot be linked on the simulator"):
            cuda.jit(link=[code])(kernel)[1, 1](np.ones(1))
    with pytest.raises(NotImplementedError, match="callback"):
        cuda.jit(link=[cuda.CUSource(THREE, setup_callback=print)])(kernel)[1, 1](np.ones(1))
    with pytest.raises(CompileError, match=r"bad\.cu, line 1"):
        cuda.jit(link=[cuda.CUSource("int x = ;", name="bad.cu")])(kernel)[1, 1](np.ones(1))
    with pytest.raises(ValueError, match="link keyword invalid"):
        cuda.jit(device=True, link=["three.cu"])(kernel)
    with pytest.raises(ValueError, match="function three is defined in two"):
        cuda.jit(link=[cuda.CUSource(THREE), cuda.CUSource(THREE + "\n")])(kernel)[1, 1](np.ones(1))


def test_a_function_that_nobody_defines():
    missing = cuda.declare_device("missing", "int32(int32)")

    @cuda.jit
    def call(out):
        out[0] = missing(1)

    with pytest.raises(simulator.UnsupportedInstruction, match="function missing has no body"):
        call[1, 1](np.ones(1))


# -- debug -------------------------------------------------------------------------------------------------------------


@cuda.jit(debug=True, opt=False)
def checked(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] == 7:
            raise IndexError("seven")
        if x[i] == 5:
            raise AssertionError  # as `assert` does, which pytest rewrites
        out[i] = 10 // x[i]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (7, IndexError, r"line \d+, tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]: seven"),
        (5, AssertionError, r"line \d+, tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]$"),
        (0, ZeroDivisionError, r"tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]: integer division by zero"),
    ],
)
def test_a_debug_kernel_raises(value, error, message):
    x, out = np.ones(64, np.int32), np.zeros(64, np.int32)
    x[40] = value
    for _ in range(2):
        with pytest.raises(error, match=message):
            checked[2, 32](x, out)
    x[40] = 2
    checked[2, 32](x, out)
    assert out[40] == 5


def test_without_debug_a_thread_that_raises_ends():
    kernel = cuda.jit(checked.py_func)
    x, out = np.ones(64, np.int32), np.zeros(64, np.int32)
    x[40] = 7
    kernel[2, 32](x, out)
    assert out.tolist() == [10] * 40 + [0] + [10] * 23


def test_debug_wants_unoptimised_code():
    with pytest.warns(UserWarning, match="opt=False"):
        cuda.jit(debug=True)(checked.py_func)


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


# -- what a kernel needs -----------------------------------------------------------------------------------------------

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
    for name in ("inspect_sass", "inspect_sass_cfg", "inspect_lto_ptx"):
        with pytest.raises(AttributeError, match=rf"{name}\(\) of Numba's kernels is not on the simulator"):
            getattr(kernel, name)
    with pytest.raises(AttributeError, match="kernels on the simulator have no 'recompile'"):
        _ = kernel.recompile
    with pytest.raises(RuntimeError, match="already specialized"):
        kernel.specialize(np.ones(3)).specialize(np.ones(3))
