"""Device printf against the C library's, its order and its buffer; Numba's print."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import printf

FLAGS = st.text("-+ #0", max_size=3)
WIDTHS = st.sampled_from(["", "1", "5", "12"])
PRECISIONS = st.sampled_from(["", ".", ".0", ".3", ".10"])
FLOATS = st.one_of(st.floats(), st.sampled_from([0.5, 1.5, 2.5, 1e20, 9.9999995, -0.0]))
INTEGERS = {"": ctypes.c_int, "hh": ctypes.c_byte, "h": ctypes.c_short, "l": ctypes.c_long, "ll": ctypes.c_longlong}
libc = ctypes.CDLL(None)


def by_c(text: str, *values) -> bytes:
    buffer = ctypes.create_string_buffer(1024)
    libc.snprintf(buffer, 1024, text.encode(), *values)
    return buffer.value


def by_us(text: str, *values) -> bytes:
    return next(printf.Call(printf.parse(text.encode()), [[value] for value in values], 1).lines())


@settings(max_examples=400)
@given(FLAGS, WIDTHS, PRECISIONS, st.sampled_from("eEfFgGaA"), FLOATS)
def test_floats_as_c_writes_them(flags, width, precision, kind, value):
    text = f"<%{flags}{width}{precision}{kind}>"
    if math.isnan(value):
        value = math.nan
    assert by_us(text, value) == by_c(text, ctypes.c_double(value))


@settings(max_examples=400)
@given(
    FLAGS,
    WIDTHS,
    PRECISIONS,
    st.sampled_from(list(INTEGERS)),
    st.sampled_from("diouxX"),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 300)),
)
def test_integers_as_c_writes_them(flags, width, precision, size, kind, value):
    text = f"<%{flags}{width}{precision}{size}{kind}>"
    bits = 8 * ctypes.sizeof(INTEGERS[size])
    ours = value & ((1 << bits) - 1)
    if kind in "di" and ours >> (bits - 1):
        ours -= 1 << bits
    assert by_us(text, ours) == by_c(text, ctypes.c_longlong(value))


@given(st.sampled_from(["", "-"]), WIDTHS, PRECISIONS, st.binary(max_size=9).filter(lambda b: 0 not in b))
def test_strings_as_c_writes_them(flags, width, precision, value):
    text = f"<%{flags}{width}{precision}s>"
    assert by_us(text, value) == by_c(text, ctypes.c_char_p(value))


@given(st.integers(-9, 20), st.integers(-2, 9))
def test_widths_and_precisions_from_arguments(width, precision):
    text = "<%*d|%.*f>"
    given = ctypes.c_int(width), ctypes.c_int(42), ctypes.c_int(precision), ctypes.c_double(2.71828)
    assert by_us(text, width, 42, precision, 2.71828) == by_c(text, *given)


def test_other_conversions():
    assert by_us("%c%c|%5p|%p|%%|%", 65, 66 + 256, 0, 0x1234) == b"AB|(nil)|0x1234|%|%"
    assert by_us("%y %d", 3) == b"%y 3"


KERNELS = r"""
extern "C" __global__ void every_type(const char* names, int n) {
    char own[4] = {'t', 'a', 0, 0};
    own[1] += threadIdx.x;
    int count = printf("%d %s %s %c %.2f %lld %llu %x %5.1f|\n", n + threadIdx.x, own, names + 4 * threadIdx.x,
                       'a' + threadIdx.x, 0.125f * threadIdx.x, -1ll << 40, 1ull << 63, -1, 1e3);
    if (threadIdx.x == 1) printf("%d arguments, 100 %% µ\n", count);
    printf("");
}
extern "C" __global__ void order(int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 2; k++) if (i % 2 == k && i < n) printf("%d:%d ", k, i);
    printf(i % 2 ? "odd %d," : "even %d,", i);
}
extern "C" __global__ void much(int n) { printf("thread %d\n", blockIdx.x * blockDim.x + threadIdx.x); }
extern "C" __global__ void then_fails(int* a) { printf("before\n"); a[4] = 1; }
extern "C" __global__ void bad_string(int n) { printf("%s", (const char*)(long long)n); }
extern "C" __global__ void asserts(const char* s, long long n) { __assertfail(n ? (char*)n : s, s, 1, s, 1); }
__device__ void helper(int i) { printf("helper %d\n", i); }
extern "C" __global__ void from_function(int* a) { helper(a[threadIdx.x]); }
extern "C" __global__ void silent(int n) { if (n < 0) printf("never\n"); }
"""


def run(name, grid, block, *args):
    return simulate(CudaSource(KERNELS, name), grid, block, args)


def test_what_a_kernel_prints(capsys):
    names = np.frombuffer(b"one\0two\0", "u1").copy()
    profile = run("every_type", 1, 2, names, np.int32(7))
    expected = [
        "7 ta one a 0.00 -1099511627776 9223372036854775808 ffffffff 1000.0|",
        "8 tb two b 0.12 -1099511627776 9223372036854775808 ffffffff 1000.0|",
        "9 arguments, 100 % µ",
    ]
    assert capsys.readouterr().out.splitlines() == expected
    assert profile.output.splitlines() == expected


def test_in_the_order_of_the_threads(capsys):
    """Each printf prints for all its threads in the order of their numbers, even with several formats at once."""
    run("order", 2, 3, np.int32(6))
    assert capsys.readouterr().out == "0:0 0:2 0:4 1:1 1:3 1:5 even 0,odd 1,even 2,odd 3,even 4,odd 5,"


def test_a_full_buffer_loses_the_oldest(capsys):
    n = 1 << 17
    profile = run("much", n // 256, 256, np.int32(0))
    first, *lines = profile.output.splitlines()
    assert 10_000 < len(lines) < n
    assert f"[{n - len(lines):,} earlier printf calls are lost" in first
    assert lines == [f"thread {i}" for i in range(n - len(lines), n)]
    assert run("much", 1, 2, np.int32(0)).output == "thread 0\nthread 1\n"
    capsys.readouterr()


def test_output_before_an_error_is_shown(capsys):
    with pytest.raises(simulator.IllegalAddress):
        run("then_fails", 1, 1, np.zeros(4, "i4"))
    assert capsys.readouterr().out == "before\n"


def test_a_string_that_is_none():
    with pytest.raises(simulator.IllegalAddress, match="a string at 0x7 lies outside every array"):
        run("bad_string", 1, 1, np.int32(7))
    assert run("bad_string", 1, 1, np.int32(0)).output == "(null)"


def test_the_words_of_an_assertion_may_be_anywhere_and_anything():
    odd = np.frombuffer(b"odd \xff\0", "u1").copy()
    with pytest.raises(simulator.IllegalAddress, match="a string at 0x7 lies outside every array"):
        run("asserts", 1, 1, odd, np.int64(7))
    with pytest.raises(simulator.AssertFailed, match="assertion failed: odd \ufffd"):
        run("asserts", 1, 1, odd, np.int64(0))


def test_from_a_device_function(capsys):
    assert run("from_function", 1, 2, np.array([5, 6], "i4")).output == "helper 5\nhelper 6\n"
    assert run("silent", 1, 2, np.int32(1)).output == ""
    capsys.readouterr()


@cuda.jit
def numba_prints(x, n):
    i = cuda.grid(1)
    if i < n:
        print("thread", i, x[i], i > 1)


def test_numba_prints(capsys):
    numba_prints[1, 4](np.arange(4) / 4, 3)
    assert capsys.readouterr().out == "thread 0 0.000000 False\nthread 1 0.250000 False\nthread 2 0.500000 True\n"
