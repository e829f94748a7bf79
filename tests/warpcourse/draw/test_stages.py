"""`draw_stages`: the times of loads and uses, read back from the figure and reckoned by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.support.figure_shapes import overlapping, titles
from warpcourse.draw.stages import draw_stages, schedule


def bars(figure, kind) -> list[tuple[float, float, int]]:
    """Return (start, end, stage) of each tile's bar of a kind."""
    found = [p for p in figure.axes[0].patches if (p.get_gid() or "").startswith(kind)]
    return [(p.get_x(), p.get_x() + p.get_width(), int(p.get_y())) for p in found]


def test_one_stage_loads_and_uses_in_turn():
    figure = draw_stages(3, 1, latency=3, use=1)
    assert bars(figure, "load") == [(0, 3, 0), (4, 7, 0), (8, 11, 0)]
    assert bars(figure, "use") == [(3, 4, 0), (7, 8, 0), (11, 12, 0)]
    assert titles(figure) == ["1 stage: 3 tiles in 12, arithmetic busy 25.0 %"]
    assert overlapping(figure) == []


def test_two_stages_load_one_tile_while_the_other_is_used():
    figure = draw_stages(4, 2, latency=2, use=2)
    assert bars(figure, "load") == [(0, 2, 0), (0, 2, 1), (4, 6, 0), (6, 8, 1)]
    assert bars(figure, "use") == [(2, 4, 0), (4, 6, 1), (6, 8, 0), (8, 10, 1)]


@pytest.mark.parametrize(("stages", "hidden"), [(1, False), (2, False), (3, False), (4, True), (5, True)])
def test_latency_is_hidden_when_the_other_stages_last_as_long_as_a_load(stages, hidden):
    turns = schedule(40, stages, latency=3.0, use=1.0)
    waits = [after.begins - before.ends for before, after in pairwise(turns)]
    assert (max(waits) == 0) is hidden
    for tile, turn in enumerate(turns):
        assert turn.issued >= (turns[tile - stages].ends if tile >= stages else 0)
        assert turn.begins >= turn.arrived == turn.issued + 3


def test_pipelines_that_cannot_be_drawn():
    for wrong in ({"tiles": 0}, {"tiles": 17}, {"stages": 9}, {"stages": 1.0}):
        with pytest.raises(ValueError, match=r"draw_stages\(\) takes 1 to"):
            draw_stages(**wrong)
    for wrong in ({"latency": 0}, {"use": -1}, {"use": "1"}):
        with pytest.raises(ValueError, match="give a positive time"):
            draw_stages(**wrong)
