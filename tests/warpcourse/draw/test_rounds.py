"""`draw_rounds`: rounds, idle SMs and shares, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import overlapping, titles
from warpcourse.draw.rounds import draw_rounds


def boxes(ax, kind) -> list[tuple[float, float]]:
    """Return (start, number of SMs) of the boxes of a kind."""
    return [(p.get_x(), p.get_height()) for p in ax.patches if p.get_gid() == kind]


def test_the_last_round_is_not_full():
    figure = draw_rounds(133, 132)
    (ax,) = figure.axes
    assert boxes(ax, "busy") == [(0, 132), (1, 1)]
    assert boxes(ax, "idle") == [(1, 131)]
    assert titles(figure) == ["133 tiles, on 132 SMs: 2 rounds, time 2, 50.4 % of the SMs' time used"]
    assert overlapping(figure) == []


def test_full_rounds_leave_nobody_idle():
    figure = draw_rounds(32, 16)
    assert boxes(figure.axes[0], "idle") == []
    assert "2 rounds, time 2, 100.0 %" in titles(figure)[0]
    numbers = [int(t.get_text()) for t in figure.axes[0].texts]
    assert numbers == list(range(32))


def test_one_tile_on_one_sm_is_the_least():
    figure = draw_rounds(1, 1, split_k=1)
    assert boxes(figure.axes[0], "busy") == [(0, 1)]
    assert boxes(figure.axes[0], "idle") == []


def test_split_k_on_the_same_axis():
    figure = draw_rounds(4, 16, split_k=4)
    whole, split = figure.axes
    assert boxes(whole, "busy") == [(0, 4)]
    assert boxes(split, "busy") == [(0, 16)]
    assert [t.get_text() for t in split.texts] == [str(k // 4) for k in range(16)]
    assert whole.get_xlim() == split.get_xlim() == (0, 1)
    assert "1 round, time 0.25, 100.0 %" in titles(figure)[1]
    assert overlapping(figure) == []


def test_numbers_that_cannot_be_drawn():
    for name in ("tiles", "sms", "split_k"):
        for wrong in (0, 2.0, True):
            with pytest.raises(ValueError, match=f"{name} is {wrong!r}"):
                draw_rounds(**{"tiles": 4, "sms": 2, name: wrong})
    with pytest.raises(ValueError, match=r"1000 rounds; .* up to 40"):
        draw_rounds(1000, 1)
