"""`draw_outer_product`: cells, products and loads, read back from the figure."""

from __future__ import annotations

from collections import Counter

import pytest
from matplotlib.colors import to_rgba

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.outer_product import LIT, draw_outer_product


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 4), (8, 4), (2, 8), (16, 16), (16, 1)])
def test_cells_of_the_three_matrices(rows, columns):
    figure = draw_outer_product(rows, columns)
    cells = Counter(p.get_gid() for p in figure.axes[0].patches)
    assert cells == {"A": rows, "B": columns, "C": rows * columns}
    text = texts(figure)
    assert f"{rows} + {columns} = {rows + columns} loads, {rows * columns} FMA" in text
    assert overlapping(figure) == []


def test_one_accumulator_and_what_it_is_made_of():
    figure = draw_outer_product(4, 8, lit=(1, 6))
    (cell,) = [p for p in figure.axes[0].patches if p.get_facecolor() == to_rgba(LIT)]
    assert (cell.get_x(), cell.get_y()) == (6, 1)
    bold = {t.get_text() for t in figure.axes[0].texts if t.get_weight() == "bold"}
    assert {"a1", "b6", "+a1b6"} < bold
    assert "4 + 8 = 12 loads, 32 FMAs: 2.67 FMAs per load" in texts(figure)


def test_sizes_that_cannot_be_drawn():
    for wrong in (0, 17, 2.0, True):
        with pytest.raises(ValueError, match=r"rows is .*takes 1 to 16"):
            draw_outer_product(wrong, 4)
    with pytest.raises(ValueError, match="the tile has rows 0 to 3 and columns 0 to 3"):
        draw_outer_product(4, 4, lit=(4, 0))
