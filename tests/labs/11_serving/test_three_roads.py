"""The road that counters choose, for small kernels whose road is known, and what is advised."""

import numpy as np
import pytest

from kernels.serving import recordings
from kernels.serving.utilisation import busy_kernels
from kernels.serving.utilisation.course_cases import CASES, Case
from kernels.serving.utilisation.three_roads import INSTRUCTIONS, LATENCY, MEMORY, chosen, decide
from tests.support.random_inputs import generator
from warpcourse.paths import COURSE
from warplab import CudaSource, cp, profile, simulate

CODE = r"""
extern "C" __global__ void strided(const float *x, float *out, int stride) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    out[i] = x[i * stride];
}
extern "C" __global__ void divided(const float *x, float *out) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float y = x[i];
    switch (i % 4) {
    case 0: for (int k = 0; k < 60; ++k) y = y * y + 1; break;
    case 1: for (int k = 0; k < 60; ++k) y = y * 2 - y * y; break;
    case 2: for (int k = 0; k < 60; ++k) y = y / 2 + k; break;
    default: for (int k = 0; k < 60; ++k) y = y * 0.5f - k;
    }
    out[i] = y;
}
extern "C" __global__ void in_double(double *x) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    double y = x[i];
    for (int k = 0; k < 200; ++k) y = y * y + 1;
    x[i] = y;
}
extern "C" __global__ void conflicts(float *out) {
    __shared__ float tile[32 * 32];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) tile[k] = k;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += tile[32 * (threadIdx.x % 32) + k];
    out[size_t(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}
"""
BLOCKS, BLOCK = 4096, 256
N = BLOCKS * BLOCK


def counted(entry, *arguments, grid=BLOCKS, block=BLOCK):
    """A launch of one of the kernels above, counted from a sample of its blocks."""
    return simulate(CudaSource(CODE, entry), grid, block, arguments, sample_blocks=16)


def zeros(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


def test_a_strided_load_is_on_the_road_of_memory():
    found = decide(counted("strided", zeros(8 * N), zeros(), np.int32(8)))
    assert found.road == MEMORY
    assert found.memory == 1
    assert found.instructions < 0.6
    assert found.advice[0] == "coalesce loads: 32 sectors per request, of whose bytes threads use 12.5 %"
    side_by_side = decide(counted("strided", zeros(), zeros(), np.int32(1)))
    assert side_by_side.road == MEMORY
    assert not any("coalesce" in line for line in side_by_side.advice)
    assert found.seconds > 4 * side_by_side.seconds


def test_far_apart_each_sector_costs_a_line_of_the_l1():
    """32 sectors per request both times; at a stride of 8 four of them lie in a line, at 32 each in its own."""
    near, far = (
        counted("strided", zeros(stride * N // 16), zeros(N // 16), np.int32(stride), grid=BLOCKS // 16)
        for stride in (8, 32)
    )
    assert near.counts.global_load_sectors == far.counts.global_load_sectors
    name = "L1 and shared memory"
    loads = near.counts.global_load_sectors / near.counts.global_store_sectors  # 8; stores lie side by side
    ratio = (loads + 1 / 4) / (loads / 4 + 1 / 4)
    assert decide(far).terms[MEMORY][name] == pytest.approx(ratio * decide(near).terms[MEMORY][name])


def test_sectors_that_stores_fill_in_part_are_memory():
    n = 2**20
    x, out = zeros(n), zeros(n)
    kernel = busy_kernels.KERNELS["cuda_scatter"].function()
    roads = {}
    for columns in (1, 4096):
        arguments = (x, out, np.uint32(n // columns), np.uint32(columns))
        roads[columns] = decide(simulate(kernel, n // 256, 256, arguments, sample_blocks=16))
    assert "sectors stored in part" not in roads[1].terms[MEMORY]
    limit = roads[4096].terms[MEMORY]
    assert max(limit, key=lambda name: limit[name]) == "sectors stored in part"
    assert roads[4096].road == MEMORY
    assert roads[4096].advice[0].startswith("coalesce stores: 32 sectors per request")


def test_bank_conflicts_are_memory_too():
    found = decide(counted("conflicts", zeros()), independent=4)
    assert found.road == MEMORY
    assert any(line.startswith("avoid bank conflicts") for line in found.advice)
    assert max(found.terms[MEMORY], key=lambda name: found.terms[MEMORY][name]) == "L1 and shared memory"


def test_ways_of_a_warp_are_on_the_road_of_instructions():
    found = decide(counted("divided", zeros(), zeros()))
    assert found.road == INSTRUCTIONS
    assert found.advice[0].startswith("let warps go one way: ")
    double = decide(counted("in_double", zeros(dtype=np.float64)))
    assert double.road == INSTRUCTIONS
    assert double.advice[0].startswith("compute in float32")


def test_few_blocks_are_on_the_road_of_latency():
    with profile() as p:
        c, out = cp.asarray(busy_kernels.constants(1, generator())), cp.zeros(1, np.float32)
        busy_kernels.spin(c, 64, out)
    found = decide(p)
    assert found.road == LATENCY
    assert found.advice[0].startswith("give the card more work at a time: 1 block for 132 SMs")
    assert found.waves < 0.01
    assert decide(p, "P100").road == LATENCY


def test_a_chain_of_loads_is_latency_however_many_threads_follow_it():
    places = busy_kernels.chain(2**16, generator())
    with profile() as p:
        busy_kernels.chase(cp.asarray(places), 20, cp.zeros(4096, np.uint32))
    found = decide(p)
    assert found.road == LATENCY
    # Threads of a warp need 32 sectors a step; in flight together they take a while, but not as long as the wait.
    assert found.terms[LATENCY]["one warp after the other"] > 20 * 1.4e-7


def test_a_measured_time_decides():
    launch = counted("strided", zeros(), zeros(), np.int32(1))
    reckoned = decide(launch)
    assert not reckoned.measured
    slow = decide(launch, seconds=10 * reckoned.seconds)
    assert slow.measured
    assert slow.memory == pytest.approx(reckoned.memory / 10)
    assert slow.road == LATENCY
    assert "of its time (measured)" in slow.text()
    assert "of its time (reckoned from counters, not measured)" in reckoned.text()
    assert "DRAM 100 %" in reckoned.text()
    assert "DRAM 10 %" in slow.text()
    launch.gpu_seconds, launch.gpu_name = 2 * reckoned.seconds, "NVIDIA H100 80GB HBM3"
    assert decide(launch).measured
    assert decide(launch).memory == pytest.approx(0.5 * reckoned.memory)
    assert not decide(launch, "V100").measured  # the time is another card's


def test_independent_instructions_shorten_the_wait():
    launch = counted("strided", zeros(256), zeros(256), np.int32(1), grid=1)
    one, four = (decide(launch, independent=k).terms[LATENCY]["one warp after the other"] for k in (1, 4))
    assert one == pytest.approx(4 * four)


@pytest.mark.parametrize(
    ("memory", "instructions", "road"),
    [
        (0.59, 0.59, LATENCY),
        (0.6, 0.1, MEMORY),
        (0.1, 0.6, INSTRUCTIONS),
        (0.8, 0.8, MEMORY),
        (0.8, 0.81, INSTRUCTIONS),
        (0, 0, LATENCY),
    ],
)
def test_the_rule(memory, instructions, road):
    assert chosen(memory, instructions) == road


def test_five_kernels_of_the_course_are_on_three_roads():
    decisions = {case.name: case.decide() for case in CASES}
    there = {name: found.road for name, found in decisions.items() if found}
    known = {
        "vector multiply": MEMORY,
        "naive transpose": MEMORY,
        "branches, 8 ways in a warp": INSTRUCTIONS,
        "matrix multiply": INSTRUCTIONS,
        "a layer at batch 2": LATENCY,
    }
    assert len(CASES) == 5
    assert there == {name: known[name] for name in there}
    labs = {case.name: COURSE / "kernels" / case.module.split(".")[1] for case in CASES}
    assert set(there) == {name for name, folder in labs.items() if folder.exists()}


def test_a_lab_that_is_not_there_is_left_out():
    missing = Case("no such lab", "kernels.no_such_lab.product", lambda module, rng: None)
    assert missing.launch() is None
    assert missing.decide() is None
    with pytest.raises(AttributeError):  # an error of the lab itself is not taken for its absence
        Case("broken", "kernels.serving.utilisation.busy_kernels", lambda module, rng: module.nothing).launch()


def test_what_does_not_fit_is_refused():
    launch = counted("strided", zeros(), zeros(), np.int32(1))
    with pytest.raises(ValueError, match="takes one launch and the profile has 2"):
        decide([launch, launch])
    with pytest.raises(ValueError, match="seconds is 0; a launch takes a positive time"):
        decide(launch, seconds=0)
    with pytest.raises(ValueError, match="independent is 0"):
        decide(launch, independent=0)
    with pytest.raises(ValueError, match="no card is named"):
        decide(launch, "H99")
    with pytest.raises(ValueError, match="holds no counts"):
        decide(simulate(CudaSource(CODE, "strided"), 1, 32, (zeros(32), zeros(32), np.int32(1)), counters=False))


def test_counters_and_a_measured_time_choose_the_road_that_ncu_counts():
    """Shares of the peak that Nsight Compute counted on an H100, beside ours from the simulator's counters."""
    cases, agreed = {case.name: case for case in CASES}, 0
    for row in recordings.recorded("roads").value["rows"]:
        found = cases[row["case"]].decide(seconds=row["seconds"])
        if found is None:  # its lab is not there
            continue
        assert found.road == row["road"], found
        agreed += 1
    assert agreed or not any(case.launch() for case in CASES)
