"""`draw_tile_order`: numbers of tiles and the strips that they read, read back from the figure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.figure_shapes import overlapping
from warpcourse.draw.tile_order import draw_tile_order, order


def parts(ax) -> Counter:
    return Counter(p.get_gid() for p in ax.patches)


def test_rows_and_groups_of_rows():
    assert order(2, 3, 1) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert order(3, 2, 2) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert sorted(order(7, 5, 3)) == sorted(order(7, 5, 1))


def test_a_group_reads_fewer_strips():
    plain, grouped = draw_tile_order(8, 8, at_once=16, group=4).axes
    assert parts(plain) == {"now": 16, "C": 48, "A read": 2, "A": 6, "B read": 8}
    assert parts(grouped) == {"now": 16, "C": 48, "A read": 4, "A": 4, "B read": 4, "B": 4}
    assert plain.get_title(loc="left").endswith("16 at once read 2 of A + 8 of B = 10 strips")
    assert grouped.get_title(loc="left").endswith("16 at once read 4 of A + 4 of B = 8 strips")
    numbers = {t.get_position(): t.get_text() for t in grouped.texts}
    assert [numbers[0.5, row + 0.5] for row in range(5)] == ["0", "1", "2", "3", "32"]


def test_labels_stay_apart():
    for figure in (draw_tile_order(8, 8, 16, 4), draw_tile_order(4, 4, 3), draw_tile_order(16, 16, 132, 8)):
        assert overlapping(figure) == []


def test_orders_that_cannot_be_drawn():
    for wrong in ({"rows": 17}, {"columns": 0}, {"group": 9}, {"group": True}):
        with pytest.raises(ValueError, match=r"draw_tile_order\(\) takes 1 to"):
            draw_tile_order(**wrong)
    with pytest.raises(ValueError, match="C has 64 tiles"):
        draw_tile_order(at_once=65)
