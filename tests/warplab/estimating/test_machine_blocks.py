"""Blocks and loops of machine code written by hand, and the linear program."""

from __future__ import annotations

import pytest

from warplab.compile.disassembler import MachineInstruction
from warplab.estimating.least_deviation import LeastDeviation
from warplab.estimating.machine_blocks import OUTSIDE, Edge, cut, is_conditional, loops, parts_lanes


def code(*lines):
    """Rows from "label: text" or "text"; a label with "$" begins a function."""
    rows = []
    for number, line in enumerate(lines):
        label, _, text = line.rpartition(": ")
        is_function = label.startswith("$")
        rows.append(
            MachineInstruction(16 * number, "" if is_function else label, text, "", 0, label if is_function else "")
        )
    return rows


def test_a_loop_and_an_exit_under_a_predicate():
    rows = code("S2R R0, SR_TID.X", "@P0 EXIT", ".L_x_1: FADD R1, R1, R2", "@P1 BRA (.L_x_1)", "EXIT")
    blocks, edges = cut(rows)
    assert [(block.first, block.end, block.ends) for block in blocks] == [
        (0, 2, "exit some"),
        (2, 4, "branch"),
        (4, 5, "exit"),
    ]
    assert set(edges) == {
        Edge(OUTSIDE, 0, False),
        Edge(0, OUTSIDE, True),
        Edge(0, 1, False),
        Edge(1, 1, True),
        Edge(1, 2, False),
        Edge(2, OUTSIDE, True),
    }
    assert loops(blocks, edges) == {1: {1}}


def test_a_function_is_entered_by_calls_alone():
    rows = code("CALL.REL.NOINC ($f)", "CALL.REL.NOINC ($f)", "EXIT", "$f: FADD R1, R1, R1", "RET.REL.NODEC R4 (k)")
    blocks, edges = cut(rows)
    assert [block.calls for block in blocks] == [[1, 1], []]
    assert blocks[1].ends == "return"
    assert all(edge.target != 1 for edge in edges)


def test_conditions():
    """In front, or as the first operand; jumps of warps that have come apart are never taken."""
    plain, guarded, own, apart = code("BRA (.L_x_1)", "@!P0 BRA (.L_x_1)", "BRA !P2, (.L_x_1)", "BRA.DIV UR4, (.L_x_1)")
    assert [is_conditional(row) for row in (plain, guarded, own)] == [False, True, True]
    assert not parts_lanes(apart)


def test_nested_loops():
    rows = code("NOP", ".L_x_1: NOP", ".L_x_2: NOP", "@P0 BRA (.L_x_2)", "@P1 BRA (.L_x_1)", "EXIT")
    blocks, edges = cut(rows)
    assert loops(blocks, edges) == {1: {1, 2, 3}, 2: {2}}


def test_the_heavier_word_wins():
    program = LeastDeviation(2, [0.0, 0.0])
    program.equal([(0, 1.0), (1, 1.0)], 10.0)
    program.near([(0, 1.0)], 7.0, 3.0)
    program.near([(1, 1.0)], 9.0, 1.0)
    assert program.solve() == pytest.approx([7.0, 3.0])


def test_limits_hold_and_contradictions_are_told():
    program = LeastDeviation(2, [0.0, 0.0])
    program.near([(0, 1.0)], 8.0, 1.0)
    program.near([(1, 1.0)], 2.0, 1.0)
    program.at_most_zero([(0, 1.0), (1, -3.0)])
    found = program.solve()
    assert found[0] <= 3 * found[1] + 1e-9
    program.equal([(0, 1.0)], 1.0)
    program.equal([(0, 1.0)], 2.0)
    with pytest.raises(RuntimeError, match="has no solution"):
        program.solve()
