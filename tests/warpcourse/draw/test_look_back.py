"""`draw_look_back`: which blocks are visited and what is added, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.look_back import draw_look_back


def visited(figure) -> list[str]:
    return [p.get_gid() for p in figure.axes[0].patches if p.get_gid().startswith("to ")]


def test_sums_are_added_until_a_prefix():
    figure = draw_look_back([3, 1, 4, 1, 5, 9], "PPAAAA", 5)
    assert visited(figure) == ["to 4", "to 3", "to 2", "to 1"]
    assert "before block 5: 5 + 1 + 4 + 4 (prefix of block 1) = 14; it publishes the prefix 23" in texts(figure)
    assert overlapping(figure) == []


def test_a_block_that_has_published_nothing_makes_it_wait():
    figure = draw_look_back([3, 1, 4, 1, 5, 9], "P-AAAA", 5)
    assert visited(figure)[-1] == "to 1"
    assert "block 5 waits with 5 + 1 + 4 so far: block 1 has published nothing yet" in texts(figure)
    assert "block 2 waits: block 1 has" in texts(draw_look_back([3, 1, 4], "P-A", 2))


def test_the_first_and_the_nearest():
    assert "its prefix is its sum" in texts(draw_look_back([3, 1], "--", 0))
    assert visited(draw_look_back([3, 1, 2], "PPA", 2)) == ["to 1"]
    assert overlapping(draw_look_back([1] * 12, "P" + 11 * "A", 11)) == []


def test_states_that_cannot_be_drawn():
    for sums, published in (([1, 2], "P"), ([1], "X"), ([], ""), ([1] * 13, "P" * 13)):
        with pytest.raises(ValueError, match="give 1 to 12 sums and one of"):
            draw_look_back(sums, published, 0)
    with pytest.raises(ValueError, match="block 0 publishes its sum as a prefix"):
        draw_look_back([1, 2], "AA", 1)
    for wrong in (2, -1, True):
        with pytest.raises(ValueError, match="there are blocks 0 to 1"):
            draw_look_back([1, 2], "PA", wrong)
