"""`draw_grid`: its blocks, elements and hatched threads, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import texts
from warplab.draw.grid import draw_grid


def hatched(figure) -> int:
    return sum(bool(patch.get_hatch()) for patch in figure.axes[0].patches)


def test_grid_with_a_guard():
    figure = draw_grid(4, 8, 29)
    assert hatched(figure) == 3
    assert "hatched: 3 threads with i \N{GREATER-THAN OR EQUAL TO} n" in texts(figure)
    assert "block 3" in texts(figure)
    assert hatched(draw_grid((4,), (8,), 32)) == 0


def test_grid_with_a_stride_and_one_that_is_too_small():
    figure = draw_grid(2, 8, 37, grid_stride=True)
    assert hatched(figure) == 3 * 16 - 37
    assert "pass 3: i + 32" in texts(figure)
    too_small = texts(draw_grid(2, 8, 37))
    assert "elements 16 to 36 have no thread" in too_small
    assert "100 passes, the first 4 drawn" in texts(draw_grid(1, 10, 1000, grid_stride=True))
    cut = draw_grid(1, 10, 999, grid_stride=True)
    assert hatched(cut) == 0
    assert "; 1 thread in the last pass with i" in texts(cut)


def test_large_grids_are_cut():
    figure = draw_grid(4096, 256, 1_000_000)
    assert "block 4\u202f095" in texts(figure)
    assert "hatched: 48\u202f576 threads" in texts(figure)
    assert len(figure.axes[0].patches) < 60


@pytest.mark.parametrize("wrong", [(0, 8, 8), (4, (8, 8), 8), (4, 8, -1), (2.5, 8, 8), (True, 8, 8)])
def test_grids_that_cannot_be_drawn(wrong):
    with pytest.raises(ValueError, match="takes a positive integer"):
        draw_grid(*wrong)
