"""Linked CUDA C++ and PTX."""

import numba
import numpy as np
import pytest

from warplab import simulator
from warplab.compile import ptx_linking
from warplab.compile.errors import CompileError
from warplab.dropin import numba_cuda as cuda
from warplab.launch.simulate import simulate

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
