"""Diverged lanes reconverge, wherever the compiler put the two sides of a branch."""

from __future__ import annotations

import pytest

from warplab import simulator
from warplab.simulator.translate.basic_blocks import convergent_order

# The branch's rare side stands behind the kernel's end and jumps back to the join before the barrier.
RARE_SIDE_LAST = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p, %r2, 0;
    @%p bra RARE;
    add.u32 %r1, %r1, 100;
JOIN:
    bar.sync 0;
    ld.param.u64 %rd1, [out];
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
RARE:
    mul.lo.u32 %r1, %r1, 1000;
    bra JOIN;
}
"""


def test_jumps_that_cross_are_refused_before_they_take_minutes():
    """8,000 of them took more than a minute; loops as compilers write them are far from the limit."""
    crossing = [(number * 7919 % 4000, number + 1) for number in range(4000)]
    with pytest.raises(simulator.UnsupportedInstruction, match="jumps that cross: 4,001 basic blocks"):
        convergent_order([*crossing, ()])
    nested = [(number + 1, *([4000 - number] if number >= 3990 else [])) for number in range(4000)]
    assert len(convergent_order([*nested, ()])) == 4001


def test_a_join_in_front_of_one_of_its_ways_is_where_lanes_meet():
    device = simulator.Device(1 << 20)
    out = device.memory.allocate(4 * 32, "out")
    entry = simulator.load(RARE_SIDE_LAST).entries["kernel"]
    profile = device.launch(entry, (1,), (32,), [out.to_bytes(8, "little")])
    values = device.memory.view(out, 4 * 32).view("u4").tolist()
    assert values == [t + 100 if t % 2 else 1000 * t for t in range(32)]
    assert profile.counts.barriers == 1


def test_orders():
    straight = [(1,), (2,), ()]
    assert convergent_order(straight) == [0, 1, 2]
    loop_then_end = [(1,), (2,), (1, 3), ()]
    assert convergent_order(loop_then_end) == [0, 1, 2, 3]
    rare_side_last = [(1, 3), (2,), (), (1,)]
    assert convergent_order(rare_side_last) == [0, 3, 1, 2]
    # Blocks of the loop 1, 4 stand around the code that follows it.
    exit_inside_loop = [(1,), (2, 4), (3,), (), (1,)]
    assert convergent_order(exit_inside_loop) == [0, 1, 4, 2, 3]
    two_loops_with_rare_sides = [(1,), (2, 6), (3, 1), (4,), (5, 7), (), (2,), (4,)]
    assert convergent_order(two_loops_with_rare_sides) == [0, 1, 6, 2, 3, 4, 7, 5]
