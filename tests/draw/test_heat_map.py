"""`heat_map`: its lines, numbers and colours, read back from the figure."""

from __future__ import annotations

import pytest
from matplotlib.patches import Rectangle

from tests.support.synthetic_profiles import FILE, vector_multiply
from warplab.draw.heat_map import heat_map
from warplab.simulator.count.counters import Counts


def test_heat_map_shows_lines_and_numbers():
    figure = heat_map(vector_multiply())
    texts = [text.get_text() for text in figure.axes[0].texts]
    for shown in ("if (i < n)", "    out[i] = a[i] * b[i];", "262 144", "393 216", "4.00", "65 536"):
        assert shown.replace("2 1", "2\u202f1").replace("3 2", "3\u202f2").replace("5 5", "5\u202f5") in texts
    cells = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    column = sorted({p.get_x() for p in cells})[0]
    brightness = {p.get_y(): sum(p.get_facecolor()[:3]) for p in cells if p.get_x() == column}
    rows = sorted(brightness)
    assert brightness[rows[2]] < brightness[rows[0]] < brightness[rows[1]]
    assert len(cells) == 5


def test_heat_map_takes_other_metrics():
    texts = [t.get_text() for t in heat_map(vector_multiply(), "flops_f32").axes[0].texts]
    assert "1\u202f048\u202f576" in texts
    assert "sectors" in texts
    texts = [t.get_text() for t in heat_map(vector_multiply(), ["warp_efficiency"]).axes[0].texts]
    assert texts.count("100.0 %") == 3
    assert "sectors" not in texts
    with pytest.raises(ValueError, match=r"no metric is named 'speed'; choose one of sectors, .*warp_instructions"):
        heat_map(vector_multiply(), "speed")
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
