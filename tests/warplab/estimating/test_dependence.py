"""What in machine code depends on the thread or on loaded values, by hand."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.launch_works import instruction, launch_work
from warplab.estimating.dependence import looked_up, of_longest_warp
from warplab.estimating.warp_latency import Access, cycles
from warplab.estimating.work import CodeBlock, Work

# Blocks of code with their loop, the warps of the 8 of a thread block that run them, and their instructions.
FIRST_WARP = (
    (-1, 8, ("S2R R0, {of}", "ISETP.NE.AND P0, PT, R0, RZ, PT", "BAR.SYNC 0x0", "@P0 BRA (.L_x_1)")),
    (-1, 1, ("MOV R1, RZ",)),
    (2, 10, ("IADD3 R1, R1, 0x1, RZ", "ISETP.NE.AND P1, PT, R1, 0xa, PT", "@P1 BRA (.L_x_0)")),
    (-1, 8, ("BAR.SYNC 0x0", "EXIT")),
)


def code(*blocks: tuple[int, float, tuple[str, ...]]) -> Work:
    rows, made = [], []
    for number, (loop, warps, texts) in enumerate(blocks):
        made.append(CodeBlock(len(rows), len(rows) + len(texts), warps, loop))
        for text in texts:
            opcode = text.removeprefix("@P0 ").removeprefix("@P1 ").partition(" ")[0]
            rows.append(dataclasses.replace(instruction(opcode, "ALU", warps), text=text, block=number))
    return dataclasses.replace(launch_work(tuple(rows), blocks=1), code=tuple(made))


def of(register: str, blocks=FIRST_WARP) -> Work:
    return code(*((loop, n, tuple(text.format(of=register) for text in texts)) for loop, n, texts in blocks))


def test_a_block_waits_for_the_one_warp_that_goes_round_a_loop() -> None:
    """A warp goes round ten times, 1.25 times on average of eight."""
    work = of("SR_TID.X")
    assert of_longest_warp(work) == [1.0, 8.0, 8.0, 1.0]
    average = cycles(of("SR_CTAID.X"), lambda _: Access(0.0))
    assert cycles(work, lambda _: Access(0.0)) - average == pytest.approx(7 / 8 * (1 + 10 * (3 + 4)))


def test_what_a_block_decides_for_all_its_warps_keeps_none_of_them_longer() -> None:
    assert of_longest_warp(of("SR_CTAID.X")) == [1.0] * 4


def test_warps_that_do_not_wait_for_each_other_count_on_average() -> None:
    without = tuple((loop, n, tuple(t for t in texts if "BAR" not in t)) for loop, n, texts in FIRST_WARP)
    assert of_longest_warp(of("SR_TID.X", without)) == [1.0] * 4


def test_a_condition_of_passes_that_all_warps_make_leaves_the_average() -> None:
    """In a loop with a barrier, every second pass of each warp leaves code out."""
    loop = (
        (0, 80, ("IADD3 R1, R1, 0x1, RZ", "LOP3.LUT P0, RZ, R1, 0x1, RZ, 0xc0, !PT", "@P0 BRA (.L_x_0)")),
        (0, 40, ("FADD R2, R2, R2",)),
        (0, 80, ("BAR.SYNC 0x0", "@P1 BRA (.L_x_1)")),
    )
    assert of_longest_warp(code(*loop)) == [1.0, 1.0, 1.0]
    by_thread = ((-1, 8, ("S2R R1, SR_TID.X",)), *((1, n, texts) for _, n, texts in loop))
    assert of_longest_warp(code(*by_thread)) == [1.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("between", "share"),
    [
        ("IMAD.WIDE R6, R2, 0x4, R8", 0.5),  # the place is what was loaded
        ("IMAD.WIDE R6, R3, 0x4, R8", 0.0),
        ("EXIT", 0.0),  # what follows comes from elsewhere
    ],
)
def test_loads_whose_places_were_loaded(between: str, share: float) -> None:
    texts = "LDG.E R2, desc[UR4][R4.64]", between, "LDG.E R7, desc[UR4][R6.64]"
    assert looked_up(code((-1, 8, texts))) == share
