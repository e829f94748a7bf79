"""Where checks of Numba kernels send a learner whose mistake is a common one."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import checks, cuda

SUM = checks.elementwise(np.add, ("x", "y"), "out")


@cuda.jit
def another_order(out, x, y):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def another_order_that_is_right(y, x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def in_place(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        x *= 3


@cuda.jit
def in_place_by_an_array(x, y, out):
    out += x


@cuda.jit
def difference(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] - y[i]


@cuda.jit
def counted(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, i // 32, x[i])


@cuda.jit
def through_local_memory(x, y, out):
    own = cuda.local.array(32, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    own[t] = x[i]
    out[i] = own[(t + 1) % 32] + y[i]


@pytest.mark.parametrize(
    ("kernel", "look_at"),
    [
        (another_order, "the order of the parameters: another_order has (out, x, y) and gets (x, y, out)"),
        (in_place, "write x[i] *= 3"),
        (in_place_by_an_array, "write out[i] += ..."),
        (difference, "x - y gives every element that was stored"),
    ],
)
def test_a_common_mistake_is_named(kernel, look_at):
    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(kernel, SUM)
    assert look_at in caught.value.look_at


def test_right_kernels_pass_with_parameters_in_any_order():
    checks.kernel(another_order_that_is_right, SUM, sizes=(33,))


def test_memory_of_one_thread_is_told_from_shared_memory():
    with pytest.raises(checks.CheckFailed, match="each thread has its own, without what other threads stored"):
        checks.kernel(through_local_memory, SUM, sizes=(64,), launches=[(2, 32)])


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_an_atomic_on_what_was_there_before_is_named(kind):
    def sums(rng, n):
        x = rng.integers(1, 9, n).astype(kind)
        return checks.Case({"x": x, "out": None}, {"out": x.reshape(-1, 32).sum(axis=1, dtype=kind)})

    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(counted, sums, sizes=(64, 320), limits={"warp_instructions": 10**6})
    assert caught.value.look_at.startswith("the atomic operations on out: they add to what is there")
