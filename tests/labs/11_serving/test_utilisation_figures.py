"""Pictures of utilisation show what they are given, and name where numbers are from."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from kernels.serving import recordings
from kernels.serving.utilisation import figures as figures
from kernels.serving.utilisation.three_roads import decide
from kernels.serving.utilisation.virtual import Kernel, samples
from warpcourse.bench.recordings import Measurement
from warplab import CudaSource, simulate

CODE = r"""
extern "C" __global__ void copied(const float *x, float *out) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    out[i] = x[i];
}
"""
KERNELS = [Kernel(0.0, 0.25, 33, 66, "small"), Kernel(0.3, 0.1, 132, 8448)]


def recorded(value):
    return Measurement(value, "Virtual H100", "2026-11-23", live=False)


def test_samples_are_those_of_the_model():
    above, below = figures.draw_samples(KERNELS, 0.1, 0.4).axes
    boxes = [patch.get_bbox().bounds for patch in above.patches]
    assert boxes == [pytest.approx((0, 0, 0.25, 0.25)), pytest.approx((0.3, 0, 0.1, 1))]
    assert [text.get_text() for text in above.texts] == ["small"]
    drawn = {patch.get_label(): list(patch.get_data().values) for patch in below.patches}
    looks = samples(KERNELS, 0.1, 0.4)
    assert drawn["utilisation (NVML)"] == [look.utilisation for look in looks]
    assert drawn["SM activity"] == [look.sm_activity for look in looks]
    assert drawn["occupancy"] == [look.occupancy for look in looks]
    assert "virtual" in below.get_xlabel()
    assert not figures.draw_samples([], 0.1, 0.2).axes[0].patches
    with pytest.raises(ValueError, match="no sample period to draw"):
        figures.draw_samples([], 0.1)


def test_numbers_at_the_bars_are_percentages_that_do_not_overlap():
    figure = figures.draw_utilisation(recordings.recorded("utilisation"))
    figure.canvas.draw()
    (ax,) = figure.axes
    assert all(re.fullmatch(r"\d+\.\d\d %", text.get_text()) for text in ax.texts)
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert len(boxes) == 40
    assert [a for a, b in itertools.pairwise(boxes) if a.y1 > b.y0 and a.x1 > b.x0 and b.x1 > a.x0] == []
    assert max(box.x1 for box in boxes) <= ax.get_window_extent().x1


def test_measured_loads_have_a_bar_for_each_thing_told():
    gpm = {"sm": 0.0076, "occupancy": 0.0001, "fp32": None, "dram": None}
    rows = [{"load": "idle", "nvml": 0.0, "gpm": dict.fromkeys(gpm, 0.0) | {"fp32": None, "dram": None}}]
    rows.append({"load": "one thread", "nvml": 1.0, "gpm": gpm})
    (ax,) = figures.draw_utilisation(recorded({"rows": rows})).axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "utilisation (NVML)",
        "SM activity",
        "occupancy",
    ]
    assert [bar.get_width() for bar in ax.patches] == [0, 1, 0, 0.0076, 0, 0.0001]
    assert "recorded on Virtual H100, 2026-11-23" in ax.get_title(loc="left")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["idle", "one thread"]


def test_roads_are_drawn_where_their_shares_are():
    n = 2**20
    launch = simulate(CudaSource(CODE, "copied"), n // 256, 256, [np.zeros(n, np.float32) for _ in range(2)])
    by_counters, measured = decide(launch), decide(launch, seconds=1.0, name="slow")
    (ax,) = figures.draw_roads([by_counters, measured]).axes
    (x, _), (slow, _) = (line.get_xydata()[0] for line in ax.lines)
    assert x == by_counters.memory == 1
    assert slow == pytest.approx(measured.memory)
    assert slow < 0.01
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        f"{number} {d.name}: memory {d.memory:.0%}, instructions {d.instructions:.0%}: {road}"
        for number, d, road in ((1, by_counters, "memory"), (2, measured, "latency"))
    ]
    assert "not measured" in figures.draw_roads([by_counters]).axes[0].get_title(loc="left")
    assert "times measured" in figures.draw_roads([measured]).axes[0].get_title(loc="left")
    with pytest.raises(ValueError, match="no decision to draw"):
        figures.draw_roads([])


def test_marks_at_one_place_stay_there_and_their_numbers_apart():
    n = 2**20
    launch = simulate(CudaSource(CODE, "copied"), n // 256, 256, [np.zeros(n, np.float32) for _ in range(2)])
    (ax,) = figures.draw_roads([decide(launch)] * 3).axes
    assert len({tuple(line.get_xydata()[0]) for line in ax.lines}) == 1
    assert len({text.xy for text in ax.texts if hasattr(text, "xy")}) == 3


def test_figures_are_closed():
    figures.draw_samples(KERNELS, 0.1)
    assert not plt.get_fignums()
