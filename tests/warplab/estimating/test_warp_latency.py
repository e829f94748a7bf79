"""The cycles of one warp, by hand."""

from __future__ import annotations

import pytest

from tests.support.launch_works import instruction, launch_work
from warplab.compile.control_codes import Control, controls, decode, section
from warplab.estimating.warp_latency import PASSES, Access, cycles


def latency(row) -> Access:
    return Access(400.0 if row.name == "LDG" else 0.0)


def test_a_warp_waits_for_what_it_loads() -> None:
    """Issue at 0, stall 2, wait until 400, stall 4."""
    rows = (
        instruction("LDG.E", "LSU", 1.0, stall=2, writes=0),
        instruction("FADD", "FMA", 1.0, stall=4, waits=0b1),
    )
    assert cycles(launch_work(rows, blocks=1, threads=32), latency) == 404


def test_two_loads_under_way_cost_one_wait() -> None:
    rows = (
        instruction("LDG.E", "LSU", 1.0, stall=2, writes=0),
        instruction("LDG.E", "LSU", 1.0, stall=2, writes=1),
        instruction("FADD", "FMA", 1.0, stall=4, waits=0b11),
    )
    assert cycles(launch_work(rows, blocks=1, threads=32), latency) == 406


def test_accesses_that_occupy_the_way_come_one_after_the_other() -> None:
    rows = (
        instruction("LDG.E", "LSU", 1.0, stall=1, writes=0),
        instruction("LDG.E", "LSU", 1.0, stall=1, writes=1),
        instruction("FADD", "FMA", 1.0, stall=1, waits=0b11),
    )
    work = launch_work(rows, blocks=1, threads=32)
    assert cycles(work, lambda row: Access(400.0, 50.0) if row.name == "LDG" else Access(0.0)) == 501


def test_a_loop_counts_as_often_as_it_runs() -> None:
    """A pass waits for the load of the pass before: 10 + 400, and the first one 10."""
    rows = (
        instruction("FADD", "FMA", 100.0, stall=8, waits=0b1),
        instruction("LDG.E", "LSU", 100.0, stall=2, writes=0),
    )
    work = launch_work(rows, blocks=1, threads=32, loop=0)
    assert cycles(work, latency) == pytest.approx(10 + 99 * 408)
    assert PASSES < 100


def test_code_that_half_of_the_warps_run_counts_half() -> None:
    rows = (instruction("FADD", "FMA", 0.5, stall=8),)
    assert cycles(launch_work(rows, blocks=1, threads=32), latency) == 4


def test_asking_for_what_other_blocks_write_counts_once() -> None:
    rows = (instruction("LDG.E.STRONG.GPU", "LSU", 50.0, stall=8),)
    assert cycles(launch_work(rows, blocks=1, threads=32, loop=0), latency) == 8


def test_control_bits() -> None:
    """An instruction as the assembler writes it: stall 4, scoreboard 2 until written, waits for 0 and 3."""
    high = 4 << 41 | 2 << 46 | 7 << 49 | 0b1001 << 52
    assert decode(high) == Control(4, 2, 7, 0b1001)
    assert decode(high).boards == (0, 3)


def test_what_is_no_machine_code_is_refused() -> None:
    with pytest.raises(ValueError, match="no ELF file"):
        section(b"PTX", ".text.kernel")
    with pytest.raises(ValueError, match="no ELF file"):
        controls(b"", "kernel")
