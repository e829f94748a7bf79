"""`draw_mask`: masks, rows and active lanes, read back from the figure."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.mask import OFF, draw_mask


def rows(figure) -> list[list[bool]]:
    """Return, for each row from the top, which lanes are drawn active."""
    found: dict[float, list[bool]] = {}
    for patch in sorted(figure.axes[0].patches, key=lambda p: p.get_x()):
        found.setdefault(patch.get_y(), []).append(to_hex(patch.get_facecolor()) != OFF.lower())
    return [found[y] for y in sorted(found)]


def test_both_sides_are_executed_one_after_the_other():
    figure = draw_mask(lambda lane: lane < 4, ["a = 1", "b = 2"], "x = 3", "z = 0")
    first = [lane < 4 for lane in range(32)]
    other = [lane >= 4 for lane in range(32)]
    assert rows(figure) == [[True] * 32, first, first, other, [True] * 32]
    shown = texts(figure).splitlines()
    assert [t for t in shown if t.startswith("0x")] == [
        *("0xffffffff", "0x0000000f", "0x0000000f", "0xfffffff0", "0xffffffff")
    ]
    assert "One warp, both sides, one after the other: 36 of 96 lanes active in the branch" in shown
    assert [t for t in shown if t in ("if", "else")] == ["if", "if", "else"]
    assert overlapping(figure) == []


def test_a_side_that_no_lane_takes_is_skipped():
    figure = draw_mask([True] * 32, "x = 1", "y = 2")
    assert "y = 2" not in texts(figure)
    assert "One warp, one side: 32 of 32 lanes active in the branch" in texts(figure)
    assert len(rows(draw_mask(lambda lane: lane % 2, "x = 1", ""))) == 3
    assert "no lane takes a side" in texts(draw_mask([False] * 32, "x = 1", ""))


def test_conditions_and_statements_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="condition has 3 values; give one for each of the 32 lanes"):
        draw_mask([True, False, True])
    with pytest.raises(ValueError, match="13 statements; draw at most 12"):
        draw_mask([True] * 32, ["x"] * 13)
