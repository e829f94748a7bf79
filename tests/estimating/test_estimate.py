"""`warplab.estimate`: what it shows, what it says of itself, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from warplab import CudaSource, cp, estimate, profile
from warplab.draw.estimated_time import draw_estimate
from warplab.estimating import estimate as module
from warplab.hardware.cards import CARDS, card
from warplab.launch.simulate import simulate

SOURCE = r"""extern "C" __global__ void copy(const float *in, float *out, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride];
}"""
COPY = CudaSource(SOURCE, "copy")
BLOCKS = 264


def run(stride: int = 1, **options):
    arrays = np.zeros(BLOCKS * 256 * stride, np.float32), np.zeros(BLOCKS * 256, np.float32)
    return simulate(COPY, BLOCKS, 256, (*arrays, np.int32(stride)), **options)


@pytest.fixture(scope="module")
def launch():
    return run()


@pytest.mark.parametrize("name", CARDS)
def test_every_card_gets_an_estimate_that_says_it_is_one(launch, name: str) -> None:
    found = estimate(launch, name)
    assert found.seconds > 0
    assert found.limit in {r.name for r in found.resources}
    text = str(found)
    assert text.startswith(f"copy (264 × 256) on {card(name).full_name}: about ")
    assert "An estimate by arithmetic, no measurement." in text
    assert ("Not validated" in text) == (name not in ("H100", "H200") and module._published() is not None)


def test_the_label_gives_the_published_error(launch, monkeypatch) -> None:
    known = {"launches": 80, "mean_percent": 14.6, "within_30": 71, "device": "an H100", "date": "2026-11-21"}
    monkeypatch.setattr(module, "_published", lambda: known)
    text = estimate(launch, "H100").label
    assert "On 80 launches held out while it was built it was off by 15 % on average (71 within 30 %)" in text
    assert estimate(launch, "V100").label.endswith("Not validated for the V100: its rates are published ones.")


def test_longer_strides_take_longer_and_the_load_costs_most(launch) -> None:
    strided = estimate(run(16))
    assert strided.seconds > estimate(launch).seconds
    assert strided.lines[0].line == 3
    assert strided.lines[0].code == "out[i] = in[i * stride];"
    assert sum(line.share for line in strided.lines) == pytest.approx(1)


def test_data_in_the_l2_come_sooner(launch) -> None:
    assert estimate(launch, warm=True).seconds < estimate(launch).seconds


def test_the_notebook_shows_bars_and_the_label(launch) -> None:
    html = estimate(launch)._repr_html_()
    assert len(re.findall(r"min-width:1px", html)) == len(estimate(launch).resources)
    assert "An estimate by arithmetic, no measurement." in html


def test_the_picture_shows_every_resource_and_the_label(launch) -> None:
    found = estimate(launch)
    figure = draw_estimate(launch)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [r.name for r in found.resources[::-1]]
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == pytest.approx([r.seconds for r in found.resources[::-1]])
    assert "no measurement" in figure.texts[0].get_text().replace("\n", " ")


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="no card is named 'H1'"):
        estimate(run(), "H1")
    with pytest.raises(ValueError, match="holds no counts, as counters were off"):
        estimate(run(counters=False))
    with profile() as p:
        pass
    with pytest.raises(ValueError, match=re.escape("estimate() takes one launch and the profile has 0")):
        estimate(p)
    with profile() as p:
        for _ in range(2):
            cp.RawKernel(SOURCE, "copy")(
                (1,), (256,), (cp.zeros(256, cp.float32), cp.zeros(256, cp.float32), np.int32(1))
            )
    with pytest.raises(ValueError, match="the profile has 2; pass one"):
        estimate(p)
    assert estimate(p[0]).seconds > 0
