"""`draw_roofline`: where its marks lie, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.synthetic_profiles import vector_multiply
from warplab.draw.roofline import draw_roofline
from warplab.simulator.count.counters import Counts


def test_roofline_places_predictions_and_measurements():
    launch = vector_multiply(blocks=1 << 20, gpu_seconds=1.165e-3, gpu_name="NVIDIA H100 80GB HBM3")
    ax = draw_roofline(launch, "H100").axes[0]
    points = {line.get_label(): line.get_xydata()[0] for line in ax.lines if line.get_marker() == "o"}
    assert [label.split(":")[1].split(",")[0] for label in points] == [" predicted", " measured"]
    predicted, measured = points.values()
    assert predicted == pytest.approx([1 / 12, 3.35e12 / 12])
    assert measured == pytest.approx([1 / 12, 2**28 / 1.165e-3])
    other = draw_roofline(launch, "V100").axes[0]
    assert [line.get_label() for line in other.lines if line.get_marker() == "o"][1:] == []


def test_roofline_leaves_out_what_has_no_place():
    copy = vector_multiply(counts=Counts(warp_instructions=1))
    with pytest.raises(ValueError, match="none can be placed"):
        draw_roofline(copy)
    ax = draw_roofline([copy, vector_multiply(), vector_multiply(kernel="second")]).axes[0]
    assert len([line for line in ax.lines if line.get_marker() == "o"]) == 2
