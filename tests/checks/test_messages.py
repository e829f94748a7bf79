"""What checks say of wrong answers that were once given by somebody who then had to guess what was meant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import float32

from warplab import checks, cuda
from warplab.checks import cases
from warplab.launch.kernel_source import CudaSource

TILE = 32
ONE_BLOCK = [(1, TILE)]


def doubled(rng, n):
    a = rng.integers(-8, 9, n).astype(np.float32)
    return cases.Case({"a": a, "out": None, "n": np.int32(n)}, {"out": 2 * a})


def doubled_without_size(rng, n):
    case = doubled(rng, n)
    return cases.Case({name: case.arguments[name] for name in ("a", "out")}, case.expected)


def said(body: str = "", kernel: object = None, make_case=doubled, n: int = TILE, **options) -> checks.CheckFailed:
    """The failure of a kernel on one block; of `body` in CUDA C++, whose first line is line 3."""
    head = 'extern "C" __global__ void f(const float* a, float* out, int n)\n{\n'
    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(
            kernel or CudaSource(f"{head}{body}\n}}\n", "f"), make_case, sizes=[n], launches=ONE_BLOCK, **options
        )
    return caught.value


THREE_BARRIERS = """\
    for (int k = 0; k < 4; k++)
        __syncthreads();
    __syncthreads();
    out[threadIdx.x] = 2 * a[threadIdx.x];
    __syncthreads();"""


def test_every_line_that_adds_to_a_counter_is_named_the_most_first():
    error = said(THREE_BARRIERS, limits={"barriers": 4})
    assert error.look_at.splitlines() == [
        "line 4: __syncthreads();  (4)",
        "line 5: __syncthreads();  (1)",
        "line 7: __syncthreads();  (1)",
    ]


def test_beyond_some_lines_their_number_and_sum_are_named():
    barriers = "\n".join(["    __syncthreads();"] * 6)
    error = said(f"{barriers}\n    out[threadIdx.x] = 2 * a[threadIdx.x];", limits={"barriers": 4})
    assert error.look_at.splitlines()[3:] == ["line 6: __syncthreads();  (1)", "and 2 more lines (2)"]


def test_of_a_ratio_the_line_where_it_is_largest_is_named():
    body = "    float x = a[threadIdx.x];\n    out[threadIdx.x] = x + a[threadIdx.x / 8];"
    error = said(body, make_case=with_the_first_four, limits={"sectors_per_load_request": 0.5})
    assert error.look_at == "line 3: float x = a[threadIdx.x];"


def with_the_first_four(rng, n):
    case = doubled(rng, n)
    a = case.arguments["a"]
    return cases.Case(case.arguments, {"out": a + a[np.arange(n) // 8]})


def test_a_sum_in_float64_is_told_of_its_start():
    @cuda.jit
    def f(a, out):
        total = 0.0
        for _ in range(2):
            total += a[cuda.threadIdx.x]
        out[cuda.threadIdx.x] = total

    error = said(kernel=f, make_case=doubled_without_size, limits={"flops_f64": 0})
    assert "makes a sum float64 in Numba" in error.look_at
    assert "total += a" in error.look_at


def test_values_in_local_memory_are_told_of_registers():
    body = """\
    float own[64];
    for (int k = 0; k < 64; k++)
        own[k] = a[(threadIdx.x + k) % 32];
    out[threadIdx.x] = 2 * own[n - 32 + (n - 32) * (int)a[0]];"""
    error = said(body, limits={"local_load_requests": 0})
    assert "for which a thread has no register left" in error.look_at


def test_a_load_into_a_tile_is_not_said_to_be_for_the_threads_element():
    body = """\
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = a[t], tile[t + 32] = a[t + 32];
    __syncthreads();
    out[t] = 2 * tile[t];"""
    error = said(body)
    assert error.problem == "f: a load of a[32] reaches past the end of a (32 elements)."
    assert error.look_at == "the index into a, and the guard of the load into shared memory: the last element is a[31]"


def test_a_load_and_a_store_outside_are_both_named_where_there_are_tiles():
    body = """\
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = a[t];
    __syncthreads();
    out[t] = 2 * tile[t];"""
    error = said(body, n=27)
    first, second = error.look_at.splitlines()
    assert first == "the index into a, and the guard of the load into shared memory: the last element is a[26]"
    assert second == "and the guard: what must a thread do that has no element?"


def test_a_wrong_value_from_a_tile_is_told_of_the_tile():
    body = """\
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = 3 * a[t] + 100;
    __syncthreads();
    out[t] = 2 * tile[t];"""
    assert "also those that the block brings into shared memory" in said(body).look_at
    assert "shared memory" not in said("    out[threadIdx.x] = 3 * a[threadIdx.x] + 100;").look_at


def test_stores_far_outside_are_told_of_a_guard_and_not_of_a_bound():
    body = "    out[threadIdx.x] = 2 * a[min(threadIdx.x, n - 1)];\n    if (threadIdx.x > 20) out[threadIdx.x + 3] = 1;"
    error = said(body, n=27)
    assert error.look_at.startswith("the guard of the store: is there one"), error


def test_an_expression_as_size_of_a_shared_array_is_named():
    @cuda.jit
    def f(a, out):
        tile = cuda.shared.array((TILE, TILE + 1), float32)
        tile[0, cuda.threadIdx.x] = a[cuda.threadIdx.x]
        out[cuda.threadIdx.x] = 2 * tile[0, cuda.threadIdx.x]

    error = said(kernel=f, make_case=doubled_without_size)
    assert error.kind == "compile"
    assert error.look_at.startswith("the sizes of the array in shared or local memory")


def test_other_errors_of_a_compiler_speak_for_themselves():
    error = said("    out[threadIdx.x] = b[0];")
    assert (error.kind, error.look_at) == ("compile", "")


@pytest.mark.parametrize(
    ("answer", "look_at"),
    [
        (lambda x: math.floor(x), "off by one: every wrong answer is too small by 1. Is it rounded to the right side?"),
        (lambda x: math.ceil(x) + 1, "off by one: every wrong answer is too large by 1. Is it rounded to the right"),
        (lambda x: math.ceil(2 * x), "what is counted: every result is about 2 times the right one"),
        (lambda x: math.ceil(x / 4), "what is counted: every result is about 0.25 times the right one"),
        (lambda x: math.ceil(x * x), "how the result depends on each input: the error differs from input to input"),
        (lambda x: 2 * x, "how the result depends on each input: the error differs from input to input"),
    ],
)
def test_whole_numbers_wrong_by_their_rounding_or_a_factor_before_it(answer, look_at):
    table = [({"x": x}, math.ceil(x)) for x in (44.4, 342.8, 54.5, 8.9)]
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(answer, table)
    assert caught.value.look_at.startswith(look_at)
