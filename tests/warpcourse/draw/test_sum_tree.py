"""`draw_sum_tree`: the numbers of each step, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.sum_tree import draw_sum_tree


def rows(figure) -> list[list[str]]:
    """Return the numbers of each row from the top."""
    cells = [t for t in figure.axes[0].texts if t.get_fontsize() == 8 and t.get_position()[1] > 0]
    found: dict[float, list[str]] = {}
    for text in sorted(cells, key=lambda t: t.get_position()[0]):
        found.setdefault(text.get_position()[1], []).append(text.get_text())
    return [found[y] for y in sorted(found)]


def test_sequential_the_first_threads_add():
    figure = draw_sum_tree([3, 1, 4, 1])
    assert rows(figure) == [["3", "1", "4", "1"], ["7", "2", "4", "1"], ["9", "2", "4", "1"]]
    text = texts(figure)
    assert "step 2: 2 threads" in text
    assert "step 1: 1 thread" in text
    assert "sequential: 4 values, 2 steps, 3 additions" in text
    assert overlapping(figure) == []


def test_interleaved_every_second_fourth_thread_adds():
    figure = draw_sum_tree(8, "interleaved")
    assert rows(figure)[1] == ["3", "2", "7", "4", "11", "6", "15", "8"]
    assert rows(figure)[-1][0] == "36"
    assert len(figure.axes[0].lines) == 2 * 7
    assert overlapping(draw_sum_tree(32)) == []


def test_trees_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="order is 'random'; choose 'sequential' or 'interleaved'"):
        draw_sum_tree(8, "random")
    for wrong in (0, 1, 6, 64, [1, 2, 3]):
        with pytest.raises(ValueError, match="takes 2, 4, 8, 16 or 32"):
            draw_sum_tree(wrong)
