"""Limits on the work of one thread: serial kernels of all kinds fail them, and what the failure says."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, RIGHT, cuda_kernel, failure
from warplab import checks, cuda
from warplab.checks import Case
from warplab.checks.cases import elementwise

FOUR_BLOCKS = {"sizes": [256], "launches": [(4, 64)]}
ALL = "all of it, although the launch has 256 threads"
EACH = "the other 255 threads do about as much. Does every thread do all the work?"
ONE_STORE = {"bytes_written": 4}
PAIRS = "if (i % 2 == 0) for (int j = i; j < i + 2 && j < n; j++) c[j] = a[j] * b[j];"


def test_one_element_per_thread_passes():
    checks.kernel(RIGHT, PRODUCT, per_thread={"bytes_written": 4, "bytes_loaded": 8, "flops": 1}, **FOUR_BLOCKS)
    checks.kernel(RIGHT, PRODUCT, sizes=[1000], per_thread={"instructions": lambda n: n / 20})


@pytest.mark.parametrize(
    ("body", "written", "thread", "share"),
    [
        ("if (i == 0) for (int j = 0; j < n; j++) c[j] = a[j] * b[j];", 1024, "0 of block 0", ALL),
        ("if (i == 70) for (int j = 0; j < n; j++) c[j] = a[j] * b[j];", 1024, "6 of block 1", ALL),
        (
            "if (i < 32) for (int j = i; j < n; j += 32) c[j] = a[j] * b[j];",
            32,
            "0 of block 0",
            "8 times what the launch's 256 threads do on average",
        ),
        (
            "if (i < 64) for (int j = i; j < n; j += 64) c[j] = a[j] * b[j];",
            16,
            "0 of block 0",
            "4 times what the launch's 256 threads do on average",
        ),
        (
            "if (threadIdx.x == 0) for (int j = i; j < i + 64 && j < n; j++) c[j] = a[j] * b[j];",
            256,
            "0 of block 0",
            "64 times what the launch's 256 threads do on average",
        ),
        ("if (i == 0) for (int j = 0; j < n; j++) atomicExch(c + j, a[j] * b[j]);", 1024, "0 of block 0", ALL),
        (
            "for (int k = 0; k < 8; k++) c[i] = a[i] * b[i];",
            32,
            "0 of block 0",
            f"{EACH}\nEach output is stored 8 times on average.",
        ),
    ],
    ids=["a thread", "another thread", "a warp", "a block", "a thread per block", "atomics", "several times"],
)
def test_a_thread_that_writes_more_than_its_element(body, written, thread, share):
    kernel = cuda_kernel(INDEX + body)
    error = failure(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS)
    assert (error.kind, error.missed) == ("limit", "one thread does too much of the work")
    assert error.expected == "per thread at most 4 bytes written to global memory"
    assert error.got == f"{written:,} by thread {thread}: {share}"


def test_threads_that_all_do_twice_the_work_are_told_so_and_not_that_one_does():
    kernel = cuda_kernel(
        INDEX + "c[i] = a[i] * b[i]; c[i] = a[i] * b[i];",
        "volatile float* a, volatile float* b, volatile float* c, int n",
    )
    error = failure(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS)
    assert "and so do the others" in str(error)
    assert error.got == (
        "8 by thread 0 of block 0: the other 255 threads do about as much, 2 times what each may\n"
        "Each output is stored 2 times on average."
    )
    assert error.look_at.startswith("how often each element is loaded, computed and stored")
    assert "loop" not in error.look_at, "it has none"


@pytest.mark.parametrize(("step", "times"), [("blockDim.x", "2.5"), ("gridDim.x", "32")])
def test_a_loop_that_steps_too_short_is_told_of_outputs_stored_again(step, times):
    kernel = cuda_kernel(INDEX + f"for (; i < n; i += {step}) c[i] = a[i] * b[i];")
    error = failure(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS)
    assert "and outputs are stored several times" in str(error)
    assert error.got.endswith(f"\nEach output is stored {times} times on average.")
    assert "by how much a loop steps" in error.look_at


def test_of_one_block_no_step_of_the_grid_is_asked():
    kernel = cuda_kernel(INDEX + "for (int k = 0; k < n; k++) c[k] = a[k] * b[k];")
    error = failure(kernel, PRODUCT, per_thread=ONE_STORE, sizes=[1000], launches=[(1, 1000)])
    assert error.got.endswith("\nEach output is stored 1,000 times on average.")
    assert error.look_at == "how often each element is loaded, computed and stored"


def test_work_that_others_only_store_is_found_by_arithmetic():
    """Thread 0 computes all elements of its block; each thread stores its own."""
    kernel = cuda_kernel(
        "__shared__ float t[64];" + INDEX + "if (threadIdx.x == 0) for (int j = 0; j < 64; j++)"
        "t[j] = a[i + j] * b[i + j]; __syncthreads(); c[i] = t[threadIdx.x];"
    )
    checks.kernel(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS)
    for kind, most, got in (("flops", 1, "64"), ("bytes_loaded", 8, "512")):
        error = failure(kernel, PRODUCT, per_thread={kind: most}, **FOUR_BLOCKS)
        assert error.got == f"{got} by thread 0 of block 0: 64 times what the launch's 256 threads do on average"
    error = failure(kernel, PRODUCT, per_thread={"instructions": 100}, **FOUR_BLOCKS)
    assert int(error.got.split()[0].replace(",", "")) > 300


def test_work_that_every_thread_repeats_is_found_by_instructions():
    kernel = cuda_kernel(
        INDEX + "for (int j = 0; j < n; j++) { float x = a[j] * b[j]; if (j == i) c[j] = x; }",
    )
    checks.kernel(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS)
    error = failure(kernel, PRODUCT, per_thread={"instructions": 200}, **FOUR_BLOCKS)
    assert error.kind == "limit"
    assert error.got.endswith(EACH)
    assert re.search(r"Of all instructions \d+ % are in line \d+: .*float x = a\[j\]", error.look_at)


def test_threads_that_write_nothing_are_missed():
    checks.kernel(RIGHT, PRODUCT, least={"writing_threads": lambda n: n}, **FOUR_BLOCKS)
    half = cuda_kernel(INDEX + PAIRS)
    checks.kernel(half, PRODUCT, **FOUR_BLOCKS)
    failed = failure(half, PRODUCT, least={"writing_threads": lambda n: n}, **FOUR_BLOCKS)
    assert "too few threads that write to global memory" in str(failed)
    assert (failed.expected, failed.got) == ("at least 256", "128")


def test_loads_of_one_address_count_for_each_thread():
    broadcast = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i] + 0 * a[0];")
    limit = {"thread_bytes_loaded": lambda n: 8 * n}
    checks.kernel(RIGHT, PRODUCT, limits=limit, **FOUR_BLOCKS)
    failed = failure(broadcast, PRODUCT, limits=limit, **FOUR_BLOCKS)
    assert "too many bytes loaded by all threads together from global memory" in str(failed)
    assert (failed.expected, failed.got) == ("at most 2,048", "3,072")


def test_a_numba_kernel_and_two_dimensions():
    @cuda.jit
    def rows(a, c):
        column, row = cuda.grid(2)
        if column == 5 and row < a.shape[0]:
            for j in range(a.shape[1]):
                c[row, j] = 2 * a[row, j]

    def make_case(rng, size):
        a = rng.integers(-8, 9, size).astype(np.float32)
        return Case({"a": a, "c": None}, {"c": 2 * a})

    error = failure(
        rows, make_case, sizes=[(6, 8)], launches=[((2, 2), (4, 4))], per_thread={"bytes_written": lambda size: 4}
    )
    assert error.got.startswith("32 by thread (1, 0) of block (1, 0): 11 times what")
    checks.kernel(rows, make_case, sizes=[(6, 8)], launches=[((2, 2), (4, 4))], per_thread={"bytes_written": 32})


def test_launches_larger_than_what_runs_at_a_time():
    """The busiest thread is in a block that the simulator runs late."""
    n = 1 << 17
    ones = elementwise(np.multiply, ("a", "b"), "c", length="n")
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i]; if (i == n - 3) atomicAdd(c + i, 0.0f);")
    error = failure(kernel, ones, sizes=[n], launches=[(n // 256, 256)], per_thread=ONE_STORE)
    assert error.got.startswith("8 by thread 253 of block 511: 2 times what")


def test_a_wrong_result_comes_first():
    kernel = cuda_kernel(INDEX + "if (i == 0) for (int j = 0; j < n; j++) c[j] = a[j];")
    assert failure(kernel, PRODUCT, per_thread=ONE_STORE, **FOUR_BLOCKS).kind == "wrong result"


def test_misspelt_kind_of_work_is_an_error_of_the_test():
    with pytest.raises(ValueError, match=r"per_thread has bytes_stored; it may have instructions, flops"):
        checks.kernel(RIGHT, PRODUCT, per_thread={"bytes_stored": 4})


class Image(NamedTuple):
    rows: int
    columns: int


def test_sizes_that_are_drawn_have_names_and_repeat_with_the_seed():
    drawn = []

    def make_case(rng, size):
        drawn.append(size)
        a = rng.integers(-8, 9, size).astype(np.float32)
        return Case({"a": a, "c": None, "n": np.int32(a.size)}, {"c": a})

    def sizes(rng):
        return [Image(int(rng.integers(1, 1000)), int(rng.integers(1, 9))) for _ in range(2)]

    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] + 1;", "const float* a, float* c, int n")
    options = {"sizes": sizes, "launches": [lambda size: (-(-size.rows * size.columns // 64), 64)]}
    error = failure(kernel, make_case, seed=7, **options)
    again = failure(kernel, make_case, seed=7, **options)
    assert str(error) == str(again)
    assert error.where.startswith(f"rows = {drawn[-1].rows}, columns = {drawn[-1].columns}, ")
    first, *_ = drawn
    drawn.clear()
    failure(kernel, make_case, seed=8, **options)
    assert drawn[0] != first
