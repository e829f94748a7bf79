"""Limits on the counters of a launch: which pass, and which source lines a failure names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.kernel_checks import (
    INDEX,
    ONE_WARP,
    PRODUCT,
    RIGHT,
    cuda_kernel,
    doubled,
    doubled_without_size,
    failure,
    failure_on_one_warp,
)
from warplab import checks, cuda
from warplab.checks import Case
from warplab.checks.cases import elementwise
from warplab.launch.kernel_source import CudaSource


def test_limits_name_counter_and_line():
    strided = CudaSource(
        'extern "C" __global__ void f(const float* a, const float* b, float* c, int n)\n{\n'
        "    for (int i = threadIdx.x * 8; i < threadIdx.x * 8 + 8; ++i)\n        c[i] = a[i] * b[i];\n}\n",
        "f",
    )
    launch = {"sizes": [256], "launches": [(1, 32)]}
    checks.kernel(strided, PRODUCT, limits={"sectors_per_load_request": 32}, **launch)
    error = failure(strided, PRODUCT, limits={"sectors_per_load_request": 4}, **launch)
    assert (error.expected, error.got) == ("at most 4", "32")
    error = failure(strided, PRODUCT, limits={"global_store_requests": lambda n: n / 32 - 1}, **launch)
    assert (error.expected, error.got) == ("at most 7", "8")
    assert error.look_at == "line 4: c[i] = a[i] * b[i];\nNo other line adds to the count."


def test_repeated_writes_are_counted():
    error = failure(
        cuda_kernel("for (int i = 0; i < n; ++i) c[i] = a[i] * b[i];"),
        PRODUCT,
        sizes=[4096],
        launches=[(64, 1)],
        limits={"global_store_bytes": lambda n: 4 * n},
    )
    assert (error.expected, error.got) == ("at most 16,384", "1,048,576")
    assert "64 times the bytes allowed: is an element stored several times?" in error.look_at


def test_limit_of_something_never_counted_fails():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = 1;")
    ones = elementwise(lambda a, b: np.ones_like(a), ("a", "b"), "c", length="n")
    assert failure(kernel, ones, limits={"sectors_per_load_request": 4}).got == "none counted"


def test_a_result_that_every_warp_stores_is_told_to_be_one_threads():
    kernel = cuda_kernel("c[blockIdx.x] = a[blockIdx.x] * b[blockIdx.x];")
    few = {"limits": {"global_store_requests": lambda n: n}, "sizes": [10]}
    error = failure(kernel, PRODUCT, launches=[(10, 64)], **few)
    assert error.look_at.endswith("An element is stored several times: let one thread do it.")


def test_least_names_counter_and_the_line_with_most_idle_lanes():
    few = CudaSource(
        'extern "C" __global__ void f(const float* a, const float* b, float* c, int n)\n{\n'
        "    if (threadIdx.x < 8)\n        for (int i = threadIdx.x; i < n; i += 8)\n"
        "            c[i] = a[i] * b[i];\n}\n",
        "f",
    )
    launch = {"sizes": [256], "launches": [(1, 32)]}
    checks.kernel(few, PRODUCT, least={"warp_efficiency": 0.25}, **launch)
    error = failure(few, PRODUCT, least={"warp_efficiency": lambda n: n / 256}, **launch)
    assert (error.expected, error.kind, error.missed) == ("at least 1", "limit", "the warp efficiency is too low")
    assert 0.25 < float(error.got) < 0.3
    assert error.look_at == ("line 5: c[i] = a[i] * b[i];\nOn average, 8 of the 32 lanes of a warp are active here.")
    checks.kernel(RIGHT, PRODUCT, sizes=[256], least={"warp_efficiency": 1})
    alone = CudaSource(few.code.replace("< 8", "< 1").replace("+= 8", "+= 1"), "f")
    error = failure(alone, PRODUCT, least={"warp_efficiency": 0.25}, **launch)
    assert error.look_at.endswith("On average, 1 of the 32 lanes of a warp is active here.")


def test_misspelt_limit_is_an_error_of_the_test():
    with pytest.raises(AttributeError, match="sectors_per_request"):
        checks.kernel(RIGHT, PRODUCT, limits={"sectors_per_request": 4})


THREE_BARRIERS = """\
    for (int k = 0; k < 4; k++)
        __syncthreads();
    __syncthreads();
    out[threadIdx.x] = 2 * a[threadIdx.x];
    __syncthreads();"""


def test_lines_that_add_to_a_counter_are_named_largest_first():
    error = failure_on_one_warp(THREE_BARRIERS, limits={"barriers": 4})
    assert error.look_at.splitlines() == [
        "line 4: __syncthreads();  (4)",
        "line 5: __syncthreads();  (1)",
        "line 7: __syncthreads();  (1)",
    ]


def test_further_lines_are_counted_and_added_up():
    barriers = "\n".join(["    __syncthreads();"] * 6)
    error = failure_on_one_warp(f"{barriers}\n    out[threadIdx.x] = 2 * a[threadIdx.x];", limits={"barriers": 4})
    assert error.look_at.splitlines()[3:] == ["line 6: __syncthreads();  (1)", "and 2 more lines (2)"]


def test_a_ratio_names_the_line_where_it_is_largest():
    body = "    float x = a[threadIdx.x];\n    out[threadIdx.x] = x + a[threadIdx.x / 8];"
    error = failure_on_one_warp(body, make_case=with_the_first_four, limits={"sectors_per_load_request": 0.5})
    assert error.look_at == "line 3: float x = a[threadIdx.x];"


def with_the_first_four(rng, n):
    case = doubled(rng, n)
    a = case.arguments["a"]
    return Case(case.arguments, {"out": a + a[np.arange(n) // 8]})


def test_a_float64_sum_points_to_its_untyped_start():
    @cuda.jit
    def f(a, out):
        total = 0.0
        for _ in range(2):
            total += a[cuda.threadIdx.x]
        out[cuda.threadIdx.x] = total

    error = failure_on_one_warp(kernel=f, make_case=doubled_without_size, limits={"flops_f64": 0})
    assert "makes a sum float64" in error.look_at
    assert "total += a" in error.look_at
    error = failure_on_one_warp(kernel=f, make_case=doubled_without_size, per_thread={"instructions": 4})
    assert "FP64 operations. In Numba an untyped number" in error.look_at


def test_local_memory_points_to_registers():
    body = """\
    float own[64];
    for (int k = 0; k < 64; k++)
        own[k] = a[(threadIdx.x + k) % 32];
    out[threadIdx.x] = 2 * own[n - 32 + (n - 32) * (int)a[0]];"""
    error = failure_on_one_warp(body, limits={"local_load_requests": 0})
    assert "for which a thread has no register left" in error.look_at


ATOMICS = """int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicExch(c + i, atomicAdd(const_cast<float*>(a) + i, 0.0f) * b[i]);"""


def test_atomics_do_not_get_around_limits_on_loads_and_stores():
    kernel = cuda_kernel(ATOMICS)
    few = {"global_load_requests": lambda n: n / 32 + 1}
    launch = {"sizes": [256], "launches": [(8, 32)]}
    checks.kernel(kernel, PRODUCT, **launch)
    error = failure(kernel, PRODUCT, limits=few, **launch)
    assert error.problem == "f: Atomic operations load and store as well, and do not count as loads or stores."
    assert (error.kind, error.got) == ("limit", "16")
    assert "atomicExch(c + i" in error.look_at
    for limits in ({"global_store_bytes": 10**6}, {"sectors_per_load_request": 4}, {"shared_load_conflicts": 0}):
        assert failure(kernel, PRODUCT, limits=limits, **launch).missed.startswith("atomics where")
    checks.kernel(kernel, PRODUCT, limits=few | {"atomics": 16}, **launch)
    checks.kernel(kernel, PRODUCT, limits={"branches": 100}, **launch)


BULK = """__shared__ __align__(16) float s[4];
    int i = blockIdx.x * 4;
    for (int k = 0; k < 4; ++k) s[k] = a[i + k] * b[i + k];
    unsigned here = static_cast<unsigned>(__cvta_generic_to_shared(s));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" :: "l"(c + i), "r"(here) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");"""


def test_bulk_copies_are_seen():
    kernel = cuda_kernel(BULK)
    launch = {"sizes": [64], "launches": [(16, 1)]}
    checks.kernel(kernel, PRODUCT, limits={"branches": 100}, **launch)  # it has written something
    error = failure(kernel, PRODUCT, limits={"global_store_bytes": 0}, **launch)
    assert error.problem == "f: Bulk copies load and store as well, and do not count as loads or stores."
    assert error.got == "16"
    checks.kernel(kernel, PRODUCT, limits={"global_store_bytes": 0, "bulk_copies": 16}, **launch)


@cuda.jit
def halved(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 4.0 * (0.5 * a[i])


def test_float64_is_named_where_float32_operations_are_missing():
    error = failure_on_one_warp(kernel=halved, make_case=doubled_without_size, least={"flops_f32": 32})
    assert "There are 64 FP64 operations. In Numba an untyped number" in error.look_at


def test_a_check_that_sees_float64_says_so_after_its_verdict(capsys):
    seen = {"sizes": (32,), "launches": ONE_WARP, "limits": {"divergent_branches": 0}}
    checks.kernel(halved, doubled_without_size, **seen)
    said = capsys.readouterr().out
    assert re.search(r"right for 1 size .*\nBut it computes in float64, with inputs.*\nline \d+: out\[i\] = 4.0", said)
    assert "C++" not in said
    checks.kernel(halved, doubled_without_size, **seen)
    assert capsys.readouterr().out.endswith("But it computes in float64, as said before.\n")

    def in_double(rng, n):
        case = doubled_without_size(rng, n)
        return Case(
            {name: value if value is None else value.astype(np.float64) for name, value in case.arguments.items()},
            {"out": case.expected["out"].astype(np.float64)},
        )

    checks.kernel(halved, in_double, **seen)
    assert "float64" not in capsys.readouterr().out


MEETING = """__shared__ unsigned long long here[2];
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(here));
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at + 8 * threadIdx.x), "r"(COUNT) : "memory");
    __syncthreads();
    unsigned long long state;
    unsigned over = 0, left = 0;
    if (ARRIVES)
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    TAIL
    c[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x];"""
WAIT = """while (!over)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(at) : "memory");"""
PENDING = 'asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));'


def meeting(count: int, arrives: str = "true", tail: str = WAIT) -> CudaSource:
    return cuda_kernel(MEETING.replace("COUNT", str(count)).replace("ARRIVES", arrives).replace("TAIL", tail))


TWO_WARPS = {"sizes": [64], "launches": [(1, 64)]}


def test_warps_that_wait_for_one_another_at_an_mbarrier_pass_a_barrier():
    error = failure(meeting(64), PRODUCT, limits={"barriers": 2}, **TWO_WARPS)
    assert error.got == "4"  # the barrier and the mbarrier, once for each of two warps
    assert error.look_at.endswith("of several warps at an mbarrier count as barriers here.")
    checks.kernel(meeting(64), PRODUCT, limits={"barriers": 4}, **TWO_WARPS)
    # Whatever one thread announces, such as a bulk copy, is not a meeting of the block.
    checks.kernel(meeting(1, "threadIdx.x == 0"), PRODUCT, limits={"barriers": 2}, **TWO_WARPS)


def test_mbarriers_lie_in_shared_memory_and_count_where_they_are_asked():
    error = failure(meeting(64), PRODUCT, limits={"shared_load_requests": 0}, **TWO_WARPS)
    assert "Operations on mbarriers count as loads of shared memory here." in error.look_at
    checks.kernel(meeting(64), PRODUCT, limits={"atomics": 0}, **TWO_WARPS)
    error = failure(meeting(128, tail=PENDING), PRODUCT, limits={"atomics": 1}, **TWO_WARPS)
    assert (error.got, error.look_at.splitlines()[-1][:28]) == ("2", "Arrivals at an mbarrier coun")
    with pytest.raises(checks.CheckFailed, match="too few shared load requests"):
        checks.kernel(meeting(64), PRODUCT, least={"shared_load_requests": 1}, **TWO_WARPS)


def test_a_state_tells_nothing_but_its_phase_unless_it_is_asked():
    """Otherwise arrivals could be counted from its bits, which CUDA does not define."""
    ranks = elementwise(lambda a, b: np.zeros_like(a), ("a", "b"), "c", length="n")
    body = MEETING.replace("a[threadIdx.x] * b[threadIdx.x]", "state != __shfl_sync(0xffffffff, state, 0)")
    for tail, right in (("", True), (PENDING, False)):
        kernel = cuda_kernel(body.replace("COUNT", "128").replace("ARRIVES", "true").replace("TAIL", tail))
        if right:
            checks.kernel(kernel, ranks, **TWO_WARPS)
        else:
            failure(kernel, ranks, **TWO_WARPS)
