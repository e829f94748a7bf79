"""`heat_map`: its lines, numbers and colours, read back from the figure."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.support.synthetic_profiles import FILE, vector_multiply
from warplab.draw.heat_map import DARKEST, heat_map
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.count.counters import Counts

TRANSPOSE = """extern "C" __global__ void transpose(const float *a, float *out) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = a[32 * threadIdx.y + threadIdx.x];
    __syncthreads();
    out[32 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


def test_heat_map_shows_lines_and_numbers():
    figure = heat_map(vector_multiply())
    texts = [text.get_text() for text in figure.axes[0].texts]
    for shown in ("if (i < n)", "    out[i] = a[i] * b[i];", "262 144", "393 216", "4.00", "65 536"):
        assert shown.replace("2 1", "2\u202f1").replace("3 2", "3\u202f2").replace("5 5", "5\u202f5") in texts
    columns = coloured(figure)
    assert len(columns) == 2  # ratios have no colour
    assert columns[0] == {4: heat(8 / 14), 3: heat(2 / 14), 2: heat(4 / 14)}
    assert columns[1] == {4: heat(1)}


def heat(share: float) -> tuple:
    return plt.get_cmap("YlOrBr")(DARKEST * share)


def coloured(figure) -> list[dict[int, tuple]]:
    """Return, for each coloured column from the left, {source line: colour}."""
    ax = figure.axes[0]
    numbers = {round(t.get_position()[1] - 0.53): int(t.get_text()) for t in ax.texts if t.get_position()[0] == 3.5}
    columns: dict[float, dict[int, tuple]] = {}
    for patch in ax.patches:
        columns.setdefault(patch.get_x(), {})[numbers[round(patch.get_y() - 0.04)]] = patch.get_facecolor()
    return [columns[x] for x in sorted(columns)]


def test_one_scale_for_the_figure_and_its_key():
    figure = heat_map(vector_multiply())
    (strip,) = figure.axes[0].images
    colours = np.asarray(strip.get_array())[0]
    assert colours[0] == pytest.approx(heat(0))
    assert colours[-1] == pytest.approx(heat(1))
    assert "share of the launch, by line:  0" in [t.get_text() for t in figure.axes[0].texts]
    assert len(heat_map(vector_multiply(), ["warp_efficiency"]).axes[0].images) == 0  # nothing to explain


def test_bank_conflicts_by_source_line():
    launch = simulate(CudaSource(TRANSPOSE, "transpose"), 1, (32, 32), [np.zeros(1024, np.float32) for _ in "ab"])
    figure = heat_map(launch)
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert "conflicts" in texts
    assert "0" in texts  # the line that stores without conflict
    assert str(32 * 31) in texts
    assert coloured(figure)[-1] == {5: heat(1)}
    assert "conflicts" not in [t.get_text() for t in heat_map(vector_multiply()).axes[0].texts]


def test_heat_map_takes_other_metrics():
    texts = [t.get_text() for t in heat_map(vector_multiply(), "flops_f32").axes[0].texts]
    assert "1\u202f048\u202f576" in texts
    assert "sectors" in texts
    texts = [t.get_text() for t in heat_map(vector_multiply(), ["warp_efficiency"]).axes[0].texts]
    assert texts.count("100.0 %") == 3
    assert "sectors" not in texts
    with pytest.raises(ValueError, match=r"no metric is named 'speed'; choose one of sectors, .*warp_instructions"):
        heat_map(vector_multiply(), "speed")
    with pytest.raises(ValueError, match="0 metrics; name one to 6"):
        heat_map(vector_multiply(), [])
    with pytest.raises(ValueError, match="no counts by source line"):
        heat_map(vector_multiply(lines={}))


def test_heat_map_of_a_long_kernel_keeps_its_size():
    lines = {(FILE, n): Counts(warp_instructions=n) for n in range(1, 400)}
    source = "\n".join(f"x[{n}] = $y$ * {'long ' * 40};" for n in range(1, 400))
    figure = heat_map(vector_multiply(lines=lines, sources={FILE: source}))
    assert figure.get_size_inches()[1] * figure.dpi <= 500
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "399" in texts
    assert "100" not in texts
    assert max(len(t) for t in texts) < 80
