"""How often each machine instruction runs, held to small kernels of which it can be said by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import counted_kernels
from tests.support.machine_kernels import CODE
from warplab.estimating.machine_counts import PIPES, machine_counts
from warplab.estimating.pipes import pipe_of
from warplab.launch.kernel_source import CudaSource
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import simulate

X = np.arange(4096, dtype=np.float32) + 1


def counted(name, grid, block, *arguments, **options):
    return machine_counts(simulate(CudaSource(CODE, name), grid, block, arguments, **options))


def rows_of(counts, opcode):
    return [row for row in counts.rows if row.opcode.split(".")[0] == opcode]


def loop_of(counts, last):
    """The rows of the loop that ends with the row `last`, by the label that it jumps to."""
    head = counts.rows[counts.blocks[last.block].first]
    return [row for row in counts.rows if head.address <= row.address <= last.address]


def back(counts):
    """The conditional jumps backwards, in their order."""
    return [row for row in rows_of(counts, "BRA") if row.block in counts.blocks[row.block].successors]


def test_straight_code_runs_once_per_warp():
    counts = counted("straight", 4, 64, X, X.copy())
    assert {row.warps for row in counts.rows} == {8}
    assert counts.warp_instructions == 8 * len(counts.rows)
    assert counts.thread_instructions == 256 * len(counts.rows)
    assert counts.warp_efficiency == 1
    assert (counts.branches, counts.divergent_branches) == (0, 0)


def test_an_exit_under_a_predicate_ends_some_and_is_no_branch():
    counts = counted("early_exit", 4, 64, X, X.copy(), np.int32(200))  # of 256: six warps and 8 threads more
    exits = rows_of(counts, "EXIT")
    assert exits[0].predicate
    before = [row for row in counts.rows if row.address <= exits[0].address]
    after = counts.rows[len(before) :]
    assert {(row.warps, row.threads) for row in before} == {(8, 256)}
    assert all((row.warps, row.threads) == pytest.approx((7, 200)) for row in after)
    assert counts.branches == 0


def test_both_sides_of_a_branch_run_where_a_warp_parts():
    counts = counted("divergent", 2, 64, X.astype(np.int32), np.zeros(2048, np.int32))  # half of the lanes each
    stores = rows_of(counts, "STG")
    assert [(row.warps, row.threads) for row in stores] == [(4, 64), (4, 64)]
    (jump,) = back(counts)
    assert {(row.warps, row.threads) for row in loop_of(counts, jump)} == {(20, 320)}  # five trips
    assert counts.branches == 4 + 20
    assert counts.divergent_branches == 4


def test_a_predicated_instruction_is_issued_to_all():
    counts = counted("predicated", 2, 64, X, np.zeros(2048, np.float32))
    predicated, plain = rows_of(counts, "STG")
    assert predicated.predicate
    assert not plain.predicate
    assert (predicated.warps, predicated.threads) == (4, 128)
    assert {row.warps for row in counts.rows} == {4}


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_loop(n):
    counts = counted("rolled", 1, 32, X, np.zeros(32, np.float32), np.int32(n))
    (jump,) = back(counts)
    inside = loop_of(counts, jump)
    assert {row.warps for row in inside} == {n}
    assert "LDG" in {row.opcode.split(".")[0] for row in inside}
    assert rows_of(counts, "STG")[0].warps == 1
    assert counts.branches == 1 + n


@pytest.mark.parametrize("n", [0, 3, 4, 27, 32])
def test_a_loop_unrolled_by_the_compiler_and_what_it_leaves(n):
    counts = counted("unrolled", 1, 32, X, np.zeros(32, np.float32), np.int32(n))
    loads = [row.warps for row in rows_of(counts, "LDG")]
    assert loads[:4] == [n // 4] * 4
    assert sum(loads[4:]) == n % 4


@pytest.mark.parametrize(
    ("n", "trips"), [(103, (6, 0, 1, 3)), (16, (1, 0, 0, 0)), (31, (1, 1, 1, 3)), (8, (0, 1, 0, 0))]
)
def test_a_loop_that_the_assembler_unrolls_again(n, trips):
    """Of 16 elements, then once 8, then 4, then 1 each."""
    counts = counted("unrolled_again", 1, 32, X, np.zeros(32, np.float32), np.int32(n))
    loads = [row.warps for row in rows_of(counts, "LDG")]
    assert len(loads) == 16 + 8 + 4 + 1
    found = loads[0], loads[16], loads[24], loads[28]
    assert loads == [found[0]] * 16 + [found[1]] * 8 + [found[2]] * 4 + [found[3]]
    assert found == pytest.approx(trips)


def test_lanes_that_leave_a_loop_at_different_trips():
    """Trips 1 to 4: the warp goes round four times, and its lanes meet in four parts."""
    trips = np.arange(32, dtype=np.int32) % 4 + 1
    counts = counted("by_lane", 1, 32, trips, np.zeros(32, np.int32))
    (jump,) = back(counts)
    assert {(row.warps, row.threads) for row in loop_of(counts, jump)} == {(4, 80)}
    (meeting,) = rows_of(counts, "BSYNC")
    assert meeting.warps == pytest.approx(4)
    assert rows_of(counts, "STG")[0].warps == pytest.approx(1)
    assert counts.divergent_branches == pytest.approx(3)


def test_the_slow_way_of_a_root_is_not_taken():
    counts = counted("root", 1, 32, X, X.copy())
    assert {row.warps for row in rows_of(counts, "CALL")} == {0}
    assert {row.warps for row in rows_of(counts, "RET")} == {0}
    ran = [row for row in counts.rows if row.warps]
    assert {row.warps for row in ran} == {1}
    assert [row.opcode for row in ran if row.pipe == "XU"] == ["MUFU.RSQ", "MUFU.RCP"]


def test_a_slow_way_has_the_line_that_calls_it():
    counts = counted("root", 1, 32, X, X.copy())
    calls, ends = rows_of(counts, "CALL"), rows_of(counts, "RET")
    assert {(row.line, row.ptx) for row in ends} == {(row.line, row.ptx) for row in calls}
    assert all(row.line for row in calls)
    assert len({row.ptx for row in calls}) == 2  # of the root and of its reciprocal


def test_a_function_that_is_called_twice_runs_twice():
    counts = counted("call", 1, 32, X, X.copy())
    assert [row.warps for row in rows_of(counts, "CALL")] == [1, 1]
    (end,) = rows_of(counts, "RET")
    assert end.warps == 2
    assert sum(row.warps for row in rows_of(counts, "FFMA")) == 2


def test_a_function_is_run_by_the_warps_that_call_it():
    """Also where one of its calls is made by a single lane, so that its own warps have one thread."""
    text = r"""
__device__ __noinline__ float steps(float x) {
    float y = x * x + 3.0f;
    for (int k = 0; k < 3; k++) y = y * x + 1.0f;
    return y;
}
extern "C" __global__ void called_by_one(const float *in, float *out) {
    float first = threadIdx.x == 0 ? steps(in[32]) : 0.0f;
    out[threadIdx.x] = steps(in[threadIdx.x]) + first;
}"""
    counts = machine_counts(simulate(CudaSource(text, "called_by_one"), 1, 32, (X, X.copy())))
    for opcode in ("FFMA", "RET"):
        assert {(row.warps, row.threads) for row in rows_of(counts, opcode)} == {(2, 33)}


@pytest.mark.parametrize("launch", counted_kernels.LAUNCHES, ids=lambda launch: f"{launch.name}, {launch.instructions}")
def test_instructions_are_those_that_a_gpu_executed(launch):
    """Among them conditions made into one, lanes that meet late, and functions that are called."""
    code = counted_kernels.RECURSIVE if launch.name == "called_again" else counted_kernels.CODE
    kernel = CudaSource(code, launch.name, by_cupy=True)
    arguments = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments)
    counts = machine_counts(simulate(kernel, launch.grid, launch.block, arguments))
    assert counts.warp_instructions == pytest.approx(launch.instructions, rel=launch.within or 1e-6)
    assert 32 * counts.warp_efficiency == pytest.approx(launch.lanes, abs=0.3 if launch.within else 0.1)
    if launch.branches is not None:
        assert (counts.branches, counts.divergent_branches) == pytest.approx((launch.branches, launch.divergent))


def test_totals_are_sums_of_the_rows():
    counts = counted("unrolled", 2, 64, X, np.zeros(64, np.float32), np.int32(9))
    assert counts.warp_instructions == sum(row.warps for row in counts.rows)
    assert sum(counts.by_pipe.values()) == pytest.approx(counts.warp_instructions)
    assert sum(counts.by_line.values()) == pytest.approx(counts.warp_instructions)
    assert set(counts.by_pipe) == set(PIPES)
    assert counts.resources.registers > 0
    assert [row.address for row in counts.rows] == [16 * k for k in range(len(counts.rows))]


def test_the_text_says_how_often_each_instruction_ran():
    text = str(counted("straight", 4, 64, X, X.copy()))
    head, *rows = text.splitlines()
    assert head.startswith(
        "straight for sm_90: 120 machine instructions issued (inst_executed), 100.0 % of their lanes"
    )
    assert "LSU " in head
    assert len(rows) == 15
    assert all(" 8  " in row for row in rows)


def test_a_sampled_grid_is_scaled():
    whole = counted("straight", 64, 64, X, X.copy())
    sample = counted("straight", 64, 64, X, X.copy(), sample_blocks=16)
    assert sample.warp_instructions == pytest.approx(whole.warp_instructions)


def test_another_card():
    counts = machine_counts(simulate(CudaSource(CODE, "straight"), 4, 64, (X, X.copy())), card="A100")
    assert counts.arch == 80
    assert {row.warps for row in counts.rows} == {8}


def test_a_launch_without_counters_is_refused():
    with pytest.raises(ValueError, match="holds no counts, as counters were off; launch it in `with profile"):
        machine_counts(LaunchRecord("kernel", (1, 1, 1), (32, 1, 1)))
    with pytest.raises(ValueError, match="takes one launch and the profile has 2"):
        machine_counts([LaunchRecord("kernel", (1, 1, 1), (32, 1, 1))] * 2)


def test_pipes():
    assert pipe_of("LDG.E.128") == "LSU"
    assert pipe_of("IMAD.WIDE") == "FMA"
    assert pipe_of("UIADD3") == "uniform"
    assert pipe_of("HMMA.16816.F32") == "tensor"
    assert pipe_of("LOP3.LUT") == "ALU"
    assert {pipe_of(name) for name in ("DFMA", "MUFU.RCP", "BRA", "UBLKCP", "BAR.SYNC")} == {
        "FP64", "XU", "branch", "TMA", "other"
    }  # fmt: skip
