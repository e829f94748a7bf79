"""The three rule books, on kernels about which they differ; the limit by time; suppressed defects."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy
from warplab.launch import policy, profiling
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.running.collected import Collected
from warplab.running.strictness import BOOKS
from warplab.running.suppressions import read

ENDED = """
__global__ void k(float* x, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = x[t];
    __syncthreads();
    x[t] = s[n - 1 - t];
}
"""
VOLATILE = """
__global__ void k(float* x, int n) {
    __shared__ volatile int flag;
    __shared__ volatile float value;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) { value = x[0]; flag = 1; }
    if (threadIdx.x == 32) { while (!flag); x[n] = value; }
}
"""
UNUSED = """
__global__ void k(float* x, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 8) s[t] = x[t];
    __syncthreads();
    float v = s[t];
    x[t] = t < 8 ? v : 1.0f;
}
"""
ACTIVE = """
__global__ void k(float* x, int n) {
    x[threadIdx.x] = __popc(__activemask()) == n;
}
"""
RACE = """
__global__ void k(float* x, int n) {
    x[0] += threadIdx.x;
    x[1 + threadIdx.x] += 1;
}
"""
UNWRITTEN = """
__global__ void k(float* x, const float* y, int n) {
    __shared__ float s[64];
    float own[4], sum = 0;
    own[n & 3] = n;
    for (int i = 0; i < n; i++) sum += y[i] + s[threadIdx.x] + own[i & 3];
    x[threadIdx.x + n - 20] = sum;
}
__global__ void add(float* x) { x[threadIdx.x] += 1; }
"""
ENDLESS = "__global__ void k(float* x, int n) { float v = 1; while (v > 0) v = v * n; x[0] = v; }"


@pytest.fixture(autouse=True)
def _the_policy_ends_with_the_test():
    yield
    policy.choose()


def _launch(code: str, n: int, threads: int = 32, **options) -> np.ndarray:
    x = np.arange(64, dtype=np.float32)
    simulate(CudaSource(code, "k"), 1, threads, (x, np.int32(n)), **options)
    return x


@pytest.mark.parametrize(
    ("code", "n", "threads", "error", "books"),
    [
        (ENDED, 40, 64, simulator.DivergentBarrier, ["course"]),
        (ENDED, 32, 64, simulator.DivergentBarrier, ["course"]),
        (VOLATILE, 32, 64, simulator.DataRace, ["course", "cuda"]),
        (UNUSED, 32, 32, simulator.UninitializedRead, ["course"]),
        (RACE, 32, 32, simulator.DataRace, ["course", "cuda", "sanitizer"]),
    ],
    ids=["ended-in-a-warp", "ended-warps", "volatile", "unused-read", "race"],
)
def test_which_books_take_a_kernel_for_wrong(code, n, threads, error, books) -> None:
    for name, book in BOOKS.items():
        policy.choose(**book)
        if name in books:
            with pytest.raises(error):
                _launch(code, n, threads)
        else:
            _launch(code, n, threads)


@pytest.mark.parametrize("n", [40, 32, 1])
def test_a_barrier_without_the_threads_that_have_ended_orders_the_others(n: int) -> None:
    x = _launch(ENDED, n, 64, ended_arrive=True)
    assert (x[:n] == np.arange(n)[::-1]).all()
    with pytest.raises(simulator.DataRace):
        _launch(ENDED.replace("__syncthreads();", ""), n=40, threads=64, ended_arrive=True)


@pytest.mark.parametrize("n", [32, 50])
def test_a_race_with_threads_that_went_round_the_barrier_says_so(n: int) -> None:
    code = ENDED.replace("if (t >= n) return;", "if (t < n) {").replace("__syncthreads();", "__syncthreads(); }")
    line = next(number for number, row in enumerate(code.splitlines(), 1) if "__syncthreads" in row)
    with pytest.raises(simulator.DataRace) as error:
        _launch(code.replace("s[n - 1 - t]", "s[63 - t]"), n, 64, ended_arrive=True)
    assert f"waits at the barrier in line {line}, which this thread has not passed" in error.value.reason


def test_a_barrier_still_waits_for_threads_that_have_not_ended() -> None:
    code = ENDED.replace("if (t >= n) return;", "if (t >= n) { __syncthreads(); if (t > n) return; __syncthreads(); }")
    with pytest.raises(simulator.DivergentBarrier):
        _launch(code, 40, 64, ended_arrive=True)


def test_only_the_course_takes_lanes_for_apart() -> None:
    together = {}
    for name, book in BOOKS.items():
        policy.choose(**book)
        together[name] = bool(_launch(ACTIVE, 32)[0])
    assert together == {"course": False, "cuda": True, "sanitizer": True}


def test_a_limit_by_time_ends_an_endless_loop_and_replaces_limits_by_number() -> None:
    with pytest.raises(simulator.InstructionLimit, match=r"^the launch is too long: .* in 0\.5 s, ") as caught:
        _launch(ENDLESS, 1, max_seconds=0.5)
    assert caught.value.line == 1
    assert caught.value.reason.endswith("allow more: max_seconds=600 (of warplab run --max-seconds).")
    loop = "float v = 1; for (int i = 0; i < n; i++) v = v * 0.5f + x[i & 31]; x[32] = v;"
    many = f"__global__ void k(float* x, int n) {{ {loop} }}"
    with pytest.raises(simulator.InstructionLimit):
        _launch(many, 2000, 1, path_limit=3000)
    assert _launch(many, 2000, 1, path_limit=3000, max_seconds=600.0)[32] > 0


def test_a_suppressed_defect_is_reported_and_the_launch_goes_on(tmp_path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("# known\nk  DataRace  kernel.cu:3\n")
    policy.choose(read(str(file)), **BOOKS["cuda"])
    collected = Collected(())
    profiling.collect(collected)
    try:
        x = _launch(RACE, 32)
        with pytest.raises(simulator.IllegalAddress):
            _launch(RACE, 32, threads=128)
    finally:
        profiling.stop(collected)
    assert (x[1:33] == np.arange(1, 33) + 1).all()  # once, though the launch began twice
    told = [(defect["error"], defect["suppressed"]) for defect in collected.defects]
    assert told == [("DataRace", True), ("IllegalAddress", False)]


@pytest.mark.parametrize("threads", [1, 32])
def test_after_a_suppressed_uninitialised_read_all_else_is_checked(threads: int) -> None:
    policy.choose([policy.Suppression("k", "UninitializedRead")], **BOOKS["course"])
    x, y = cupy.empty(32, np.float32), cupy.empty(64, np.float32)
    simulate(CudaSource(UNWRITTEN, "k"), 1, threads, (x, y, np.int32(20)))
    simulate(CudaSource(UNWRITTEN, "add"), 1, threads, (x,))  # what was stored counts as written
    with pytest.raises(simulator.IllegalAddress, match="`x`") as outside:
        simulate(CudaSource(UNWRITTEN, "k"), 1, threads, (x, y, np.int32(20 + 33 - threads)))
    assert outside.value.line == 7


def test_a_suppressed_defect_that_no_option_lets_pass_ends_the_launch() -> None:
    code = """#include <cuda/barrier>
    __global__ void k(float* x, int n) {
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        bar.arrive_and_wait();
    }"""
    policy.choose([policy.Suppression("k", "UninitializedRead")])
    with pytest.raises(simulator.UninitializedRead, match="mbarrier that is not initialised"):
        _launch(code, 32)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k DataRace a.py:1 more", "4 columns"),
        ("k DataRade", "no error DataRade"),
        ("k DataRace a.py", "a.py is no place"),
    ],
)
def test_a_line_that_is_no_suppression_is_refused(tmp_path, text: str, said: str) -> None:
    file = tmp_path / "known.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(str(file))
