"""`draw_cluster`: blocks, tiles and who gets them, read back from the figure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.cluster import draw_cluster


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (2, 2), (1, 4), (4, 2), (2, 4)])
def test_each_tile_is_loaded_once_and_sent_to_all_who_need_it(rows, columns):
    figure = draw_cluster(rows, columns)
    blocks = rows * columns
    assert Counter(p.get_gid() for p in figure.axes[0].patches) == {
        "A": rows,
        "B": columns,
        "block": blocks,
        "multicast A": blocks,
        "multicast B": blocks,
    }
    assert f"= {rows + columns} tiles loaded" in texts(figure)
    assert f"without multicast {blocks} × 2 = {2 * blocks}" in texts(figure)
    assert overlapping(figure) == []


def test_clusters_that_are_not_portable():
    with pytest.raises(ValueError, match=r"4 × 4 = 16 blocks; a portable cluster has at most 8"):
        draw_cluster(4, 4)
    for wrong in (0, 5, True):
        with pytest.raises(ValueError, match=r"draw_cluster\(\) takes 1 to 4"):
            draw_cluster(wrong, 1)
