"""`draw_machine`: which parts are lit, which numbers stand in it, read back from the figure."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_rgba

from tests.support.figure_shapes import texts
from warpcourse.draw.machine import LIT, PARTS, draw_machine


def lit(figure) -> set[str]:
    return {p.get_gid() for p in figure.axes[0].patches if p.get_gid() and p.get_facecolor() == to_rgba(LIT)}


def drawn(figure) -> set[str]:
    return {p.get_gid() for p in figure.axes[0].patches if p.get_gid()}


def test_every_part_is_drawn_and_none_is_lit_unasked():
    figure = draw_machine()
    assert drawn(figure) == set(PARTS) - {"lane"}  # a lane is one of a warp's cells until it is asked for
    assert lit(figure) == set()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_lit_and_explained(part):
    figure = draw_machine(part)
    assert lit(figure) == {part}
    assert f"{part}: {PARTS[part].sentence}"[:60] in texts(figure)


def test_one_warp_is_lit_and_one_lane_of_it():
    cells = [p for p in draw_machine("warp").axes[0].patches if p.get_facecolor() == to_rgba(LIT)]
    assert len(cells) == 32
    assert len({p.get_y() for p in cells}) == 1
    (cell,) = [p for p in draw_machine("lane").axes[0].patches if p.get_facecolor() == to_rgba(LIT)]
    assert cell.get_x() in {p.get_x() for p in cells}


def test_usual_names_mean_the_same_parts():
    assert lit(draw_machine("Global memory", "L1 cache", "pcie")) == {"device memory", "L1", "bus"}
    assert texts(draw_machine("SM", "SMs")).count("SM: ") == 1


def test_the_numbers_are_the_cards():
    for name, shown, absent in (
        ("H100", ("132 SMs", "3.35 TB/s", "50 MiB", "228 KiB", "tensor cores"), ()),
        ("P100", ("56 SMs", "732 GB/s", "4 MiB", "up to 64 KiB"), ("tensor cores",)),
        ("T4", ("40 SMs", "at most 32 resident warps"), ()),
    ):
        text = texts(draw_machine(card=name))
        assert all(part in text for part in shown)
        assert not any(part in text for part in absent)
    assert texts(draw_machine(card="P100")).splitlines().count("scheduler") == 2


def test_a_part_that_is_not_on_the_card_or_not_known():
    with pytest.raises(ValueError, match=r"has no part 'cache'; choose from host, bus, .*shared memory"):
        draw_machine("cache")
    with pytest.raises(ValueError, match="has no part 3"):
        draw_machine(3)
    with pytest.raises(ValueError, match="P100 has no tensor cores"):
        draw_machine("tensor cores", card="P100")
    with pytest.raises(ValueError, match="no card"):
        draw_machine(card="X1")
