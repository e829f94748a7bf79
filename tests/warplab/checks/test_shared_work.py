"""The limits of a kernel whose threads share its work: each way of being serial is caught, whatever the launch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, RIGHT, cuda_kernel, failure
from warplab import checks
from warplab.checks import shared_work

EACH = {"bytes_loaded": 8, "bytes_written": 4}
LAUNCHES = {"sizes": [1, 33, 100, 1000], "launches": [checks.cover(32), checks.cover(128), (50, 96)]}
STRIDE = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] * b[i];"


def test_an_item_for_each_thread_passes():
    checks.kernel(RIGHT, PRODUCT, shared=shared_work(instructions=100, **EACH), **LAUNCHES)


@pytest.mark.parametrize("grid", [(1, 1), (1, 32), (3, 64), (7, 48), (50, 32)])
def test_the_share_of_a_thread_follows_from_the_launch(grid):
    work = shared_work(instructions=200, each=60, **EACH)
    checks.kernel(cuda_kernel(STRIDE), PRODUCT, sizes=[1, 127, 1000], launches=[grid], shared=work)


TURNS = "\n#pragma unroll 1\nfor (int k = 0; k < 32; k++) { if (threadIdx.x %% 32 == k) %s }"
LONG = "{ float x = a[i]; for (int j = 0; j < 20; j++) x = fmaf(x, x, b[j]); c[i] = x == 0.5f ? x : a[i] * b[i]; }"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("if (i == 0) for (int j = 0; j < n; j++) c[j] = a[j] * b[j];", "one thread does too much"),
        ("for (int j = 0; j < n; j++) c[j] = a[j] * b[j];", "one thread does too much"),
        ("if (blockIdx.x == 0) for (; i < n; i += blockDim.x) c[i] = a[i] * b[i];", "one thread does too much"),
        ("if (i < 32) for (; i < n; i += 32) c[i] = a[i] * b[i];", "one thread does too much"),
        (
            "if (threadIdx.x % 32 == 0) for (int j = i; j < i + 32 && j < n; j++) c[j] = a[j] * b[j];",
            "one thread does too much",
        ),
        (TURNS.replace("32", "64") % "c[i] = a[i] * b[i]; __syncwarp();", "one thread does too much"),
        (TURNS % LONG, "too many warp instructions"),
    ],
    ids=["a thread", "every thread all", "a block", "a warp", "a lane per warp", "lanes in turn", "long turns"],
)
def test_serial_kernels_fail(body, problem):
    error = failure(
        cuda_kernel(INDEX + body),
        PRODUCT,
        sizes=[256],
        launches=[(4, 64)],
        shared=shared_work(instructions=300, bytes_loaded=100, bytes_written=4),
    )
    assert problem in error.problem
    assert error.kind == "limit"


def test_lanes_that_take_turns_idle():
    """Also where the instructions are allowed."""
    work = shared_work(instructions=100_000, bytes_loaded=100)
    error = failure(cuda_kernel(INDEX + TURNS % LONG), PRODUCT, sizes=[256], launches=[(4, 64)], shared=work)
    assert "the warp efficiency is too low" in error.problem


def test_what_is_given_counts_instead():
    work = shared_work(instructions=100, **EACH)
    checks.kernel(RIGHT, PRODUCT, shared=work, per_thread={"bytes_loaded": 100}, **LAUNCHES)
    error = failure(RIGHT, PRODUCT, shared=work, per_thread={"bytes_loaded": 7}, **LAUNCHES)
    assert error.expected == "per thread at most 7 bytes loaded from global memory"
    error = failure(RIGHT, PRODUCT, shared=work, limits={"warp_instructions": 3}, **LAUNCHES)
    assert error.expected == "at most 3"


def test_items_barriers_atomics_and_spare():
    """A sum of a block: items are the inputs, not the one output."""

    def total(rng, n):
        a = checks.summable(rng, n)
        return checks.Case({"a": a, "out": np.zeros(1, np.float32), "n": np.int32(n)}, {"out": a[:1] * 0 + a.sum()})

    kernel = cuda_kernel(
        "__shared__ float s; if (threadIdx.x == 0) s = 0; __syncthreads(); float mine = 0;"
        "for (int i = threadIdx.x; i < n; i += blockDim.x) mine += a[i]; atomicAdd(&s, mine); __syncthreads();"
        "if (threadIdx.x == 0) out[0] = s;",
        parameters="const float* a, float* out, int n",
    )
    launch = {"sizes": [1000], "launches": [(1, 128)]}
    limits = {"instructions": 300, "each": 50, "bytes_loaded": 4, "busy": 0.1}
    checks.kernel(kernel, total, shared=shared_work(lambda n: n, barriers=2, atomics=4, **limits), **launch)
    assert "barriers" in failure(kernel, total, shared=shared_work(lambda n: n, atomics=4, **limits), **launch).problem
    assert "atomics" in failure(kernel, total, shared=shared_work(lambda n: n, barriers=2, **limits), **launch).problem
    checks.kernel(kernel, total, shared=shared_work(lambda n: n, barriers=None, atomics=None, **limits), **launch)
    few = shared_work(lambda n: n - 200, barriers=2, atomics=4, **limits)
    assert "too much" in failure(kernel, total, shared=few, **launch).problem
    spare = shared_work(lambda n: n - 200, barriers=2, atomics=4, spare=2, **limits)
    checks.kernel(kernel, total, shared=spare, **launch)
