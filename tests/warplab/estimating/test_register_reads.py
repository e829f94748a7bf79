"""Waits for the ports of registers, by hand; evidence/tests/test_estimate_error.py holds them to a sweep."""

from __future__ import annotations

import pytest

from warplab.estimating.register_reads import Ports, clocks_each, reads


def test_a_port_reads_one_register_a_clock():
    assert clocks_each(("FFMA R0, R2, R4, R6",) * 300) == pytest.approx(3, rel=0.01)
    assert clocks_each(("FFMA R0, R2, R4, R7",) * 300) == pytest.approx(2, rel=0.01)
    assert clocks_each(("FFMA R0, R2, R2, R7",) * 300) == 1  # the same register is read once
    assert clocks_each(("FADD R0, R2, R5",) * 300) == 1


def test_neighbours_share_the_clocks_of_a_window():
    odd, even = "FFMA R0, R3, R5, R7", "FFMA R0, R2, R4, R6"
    assert clocks_each((odd, even) * 150) == pytest.approx(1.5, rel=0.01)
    assert clocks_each(("FFMA R0, R2, R4, R7", "FADD R0, RZ, 1") * 150) == pytest.approx(1, rel=0.01)


def test_what_is_kept_is_read_once_until_another_takes_its_place():
    first, again = "FFMA R0, R2.reuse, R5, R0", "FFMA R1, R2, R7, R1"
    assert reads((first, again, again)) == ((2, 1), (0, 2), (1, 2))
    assert reads((first, "FFMA R1, R3, R5, R1", again))[2] == (0, 2)  # the other bank's place
    assert reads((first, "FFMA R1, R4, R5, R1", again))[2] == (1, 2)
    assert reads((first, "FFMA R1, R5, R2, R1"))[1] == (1, 2)  # another operand


def test_predicates_constants_and_uniform_registers_need_no_port():
    assert reads(("@P0 IADD3 R1, P2, R3, c[0x0][0x210], RZ", "ISETP.LT.AND P0, PT, R4, UR6, PT")) == ((0, 1), (1, 0))
    assert reads(("",)) == ((0, 0),)


def test_an_instruction_waits_at_any_time():
    ports = Ports()
    assert ports.wait(10.5, (3, 0)) == 0
    assert ports.wait(11.5, (3, 0)) == 2
    assert ports.wait(12.0, (0, 3)) == 0
