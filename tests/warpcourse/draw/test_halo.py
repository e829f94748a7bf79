"""`draw_halo`: tile, halo and what lies outside, read back from the figure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.halo import draw_halo


def parts(figure) -> Counter:
    return Counter(p.get_gid() for p in figure.axes[0].patches)


def test_a_block_inside_the_array():
    figure = draw_halo(8, 2, 24, 1)
    assert parts(figure) == {"tile": 8, "halo": 4, "array": 12, "shared tile": 8, "shared halo": 4, "result": 8}
    assert "block 1: 12 loads for 8 results, each of which reads 5 words" in texts(figure)
    assert len(figure.axes[0].lines) == 5
    assert overlapping(figure) == []


def test_blocks_at_the_ends():
    first = draw_halo(8, 3, 24, 0)
    assert parts(first)["outside"] == 6  # in the array's row and in shared memory
    assert "block 0: 11 loads for 8 results" in texts(first)
    last = draw_halo(8, 1, 20, 2)
    assert parts(last)["result"] == 4
    assert "block 2: 5 loads for 4 results, each of which reads 3 words" in texts(last)
    assert parts(draw_halo(8, 0, 24, 0))["halo"] == 0


def test_sizes_that_cannot_be_drawn():
    for name in ("block", "n"):
        with pytest.raises(ValueError, match=rf"{name} is 0; .* at least 1"):
            draw_halo(**{name: 0})
    with pytest.raises(ValueError, match=r"radius is -1; .* at least 0"):
        draw_halo(radius=-1)
    with pytest.raises(ValueError, match="up to 40 elements"):
        draw_halo(n=41)
    with pytest.raises(ValueError, match="24 elements have blocks 0 to 2"):
        draw_halo(8, 2, 24, 3)
