"""What a shuffle brings from a lane that does not take part is undefined: an error if, and only if, it is used."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = r"""
#define KERNEL extern "C" __global__ void
KERNEL in_the_guard(int* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] += __shfl_down_sync(0xffffffff, x[i], 1);
}
KERNEL guard_of_the_store(int* x, int n) {
    int i = threadIdx.x, v = i < n ? x[i] : 0;
    v += __shfl_down_sync(0xffffffff, v, 1);
    if (i < n) x[i] = v;
}
KERNEL thrown_away(int* x, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int v = x[i], other = __shfl_down_sync(0xffffffff, v, 1);
    x[i] = i + 1 < n ? v + other : v;
}
KERNEL in_a_partial_warp(int* x, int n) {
    int i = threadIdx.x;
    for (int k = 16; k > 0; k /= 2) {
        int other = __shfl_down_sync(0xffffffff, x[i], k);
        x[i] += other;
    }
}
KERNEL not_in_the_mask(int* x, int n) {
    int i = threadIdx.x;
    x[i] = __shfl_sync(i < 16 ? 0x0000ffff : 0xffff0000, x[i], i ^ 16);
}
KERNEL as_an_address(int* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[32 + i] = x[__shfl_down_sync(0xffffffff, i, 1)];
}
KERNEL the_second_only(int* x, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    if (i == 0) printf("%d\n", n);
    int thrown_away = __shfl_down_sync(0xffffffff, v, 2);
    if (i + 2 < n) v += thrown_away;
    x[i] = v + __shfl_down_sync(0xffffffff, v, 1);
}
KERNEL largest(int* x, int n) {
    int v = x[threadIdx.x] - 1000, other = __shfl_down_sync(0xffffffff, v, 16);
    x[threadIdx.x] = max(v, other);
}
KERNEL least(int* x, int n) {
    int v = x[threadIdx.x] + 1000, other = __shfl_down_sync(0xffffffff, v, 16);
    x[threadIdx.x] = min(v, other);
}
KERNEL twice(int* x, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    atomicAdd(&x[0], 1);
    int other = __shfl_down_sync(0xffffffff, i, 1);
    if (i + 1 < n) x[i + 1] += other;
}
"""


def run(name: str, threads: int = 32, n: int = 20) -> np.ndarray:
    x = np.arange(100, 164, dtype=np.int32) % 132
    simulate(CudaSource(SOURCE, name), 1, threads, (x, np.int32(n)))
    return x


def test_the_guard_belongs_around_the_store():
    x = np.arange(100, 132)
    expected = np.where(np.arange(32) < 19, 2 * x + 1, x)
    assert (run("guard_of_the_store")[:32] == expected).all()
    assert (run("in_the_guard", n=32)[:31] == (2 * x + 1)[:31]).all()


@pytest.mark.parametrize(
    ("name", "threads", "what"),
    [
        ("in_the_guard", 32, "lane 19 the value of lane 20, which has ended"),
        ("in_a_partial_warp", 20, "lane 4 the value of lane 20, which its warp does not have"),
        ("largest", 20, "lane 4 the value of lane 20, which its warp does not have"),
        ("least", 20, "lane 4 the value of lane 20, which its warp does not have"),
        ("not_in_the_mask", 32, "lane 0 the value of lane 16, which does not take part"),
        ("as_an_address", 32, "lane 19 the value of lane 20, which has ended"),
        ("the_second_only", 32, "lane 19 the value of lane 20, which has ended"),
    ],
)
def test_a_result_that_depends_on_it(name, threads, what):
    with pytest.raises(simulator.UninitializedRead) as caught:
        run(name, threads)
    assert what in str(caught.value)
    assert "the result depends on it" in str(caught.value)
    assert "shfl" in caught.value.source


def test_what_is_thrown_away_is_no_mistake(capsys):
    assert run("thrown_away")[19] == 119
    assert run("thrown_away", threads=20)[19] == 119


def test_memory_is_that_of_one_launch():
    x = run("twice")
    assert x[0] == 120
    assert (x[1:20] == np.arange(101, 120) + np.arange(1, 20)).all()


def test_nothing_is_printed_twice(capsys):
    with pytest.raises(simulator.UninitializedRead):
        run("the_second_only")
    assert capsys.readouterr().out == "20\n"


def test_lanes_apart():
    """What CUDA does not promise: lanes that run together, and masks that name lanes that have ended."""
    code = """
    extern "C" __global__ void vote(unsigned* x, int n) {
        if (threadIdx.x < n) x[threadIdx.x] = __ballot_sync(%s, 1);
    }"""
    for mask in ("0xffffffff", "__activemask()"):
        x = np.zeros(32, np.uint32)
        simulate(CudaSource(code % mask, "vote"), 1, 32, (x, np.int32(20)))
        assert (x[:20] == 0xFFFFF).all()
    simulate(CudaSource(code % "__activemask()", "vote"), 1, 32, (x, np.int32(20)), lanes_apart=True)
    assert (x[:20] == np.uint32(1) << np.arange(20)).all()
    with pytest.raises(simulator.DivergentWarp, match="names lanes that have ended: 20 to 31"):
        simulate(CudaSource(code % "0xffffffff", "vote"), 1, 32, (x, np.int32(20)), lanes_apart=True)
    simulate(CudaSource(code % "0xffffffff", "vote"), 1, 20, (x, np.int32(20)), lanes_apart=True)
