"""`draw_zoom`: sizes of tiles and their parts, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import overlapping, titles
from warpcourse.draw.zoom import draw_zoom


def test_each_panel_is_the_lit_part_of_the_one_before():
    figure = draw_zoom({"block": (128, 128), "warp": (64, 32), "thread": (8, 8)})
    assert titles(figure) == ["block: 128 × 128", "warp: 64 × 32", "thread: 8 × 8"]
    assert [ax.get_xlabel() for ax in figure.axes] == [
        *("8 = 2 × 4 warps", "32 = 8 × 4 threads", "64 = 8 × 8 elements")
    ]
    for ax, outer, lit in zip(figure.axes, ((128, 128), (64, 32), (8, 8)), ((64, 32), (8, 8), (1, 1)), strict=True):
        whole, part = ax.patches
        assert (whole.get_height(), whole.get_width()) == outer
        assert (part.get_height(), part.get_width()) == lit
    assert [p.get_gid() for ax in figure.axes for p in ax.patches] == [
        *("block", "warp", "warp", "thread", "thread", "element")
    ]
    assert overlapping(figure) == []


def test_two_to_five_levels_that_divide_each_other():
    assert len(draw_zoom({"matrix": (4096, 4096), "block": (128, 256)}).axes) == 2
    with pytest.raises(ValueError, match=r"1 levels; draw_zoom\(\) takes 2 to 5"):
        draw_zoom({"block": (8, 8)})
    with pytest.raises(ValueError, match="a warp's tile of 3 × 4 does not divide a block's of 8 × 8"):
        draw_zoom({"block": (8, 8), "warp": (3, 4)})
    for wrong in (8, (8,), (0, 8), (8.0, 8)):
        with pytest.raises(ValueError, match=r"warp is .*give \(rows, columns\)"):
            draw_zoom({"block": (8, 8), "warp": wrong})
