"""`sliders`: its values, its pictures and its widget, moved as a hand would; and the pictures that come with them."""

from __future__ import annotations

import base64
import importlib.util

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pytest

from warplab.draw import explore, timeline
from warplab.draw.grid import draw_grid
from warplab.draw.sliders import sliders
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

PNG = b"\x89PNG"


def made():
    """Return sliders and the list of the calls of their function."""
    calls = []

    def draw(grid, stride):
        calls.append((grid, stride))
        return draw_grid(grid, 8, 29, grid_stride=stride)

    return sliders(draw, grid=range(1, 5), stride=[False, True]), calls


def controls(box) -> dict[str, widgets.Widget]:
    return {child.description: child for child in box.children if hasattr(child, "description") and child.description}


def test_the_first_values_are_drawn_at_first():
    shown, calls = made()
    assert calls == [(1, False)]
    assert shown.values == {"grid": 1, "stride": False}
    assert shown.png.startswith(PNG)
    before = shown.png
    shown.show(stride=True)
    assert calls[1:] == [(1, True)]
    assert shown.png != before


def test_a_dark_theme_leaves_the_picture_on_light_ground():
    assert "jp-needs-light-background" in made()[0].widget().children[0]._dom_classes


def test_moving_a_slider_draws_again():
    shown, calls = made()
    box = shown.widget()
    image = box.children[0]
    assert image.value == shown.png
    slider, buttons = (controls(box)[name] for name in ("grid", "stride"))
    assert isinstance(slider, widgets.SelectionSlider)
    assert isinstance(buttons, widgets.ToggleButtons)
    assert [option for option in slider.options] == [1, 2, 3, 4]
    before = image.value
    slider.value = 3
    buttons.value = True
    assert calls[1:] == [(3, False), (3, True)]
    assert image.value == shown.png != before


def test_an_error_is_shown_under_the_sliders_and_the_picture_stays():
    def draw(n):
        if n == 2:
            raise ZeroDivisionError("n < 3 && n > 1")
        return draw_grid(n, 8, 29)

    shown = sliders(draw, n=range(1, 5))
    box = shown.widget()
    image, message = box.children[0], box.children[-1]
    before = image.value
    controls(box)["n"].value = 2
    assert message.value == "<pre>ZeroDivisionError: n &lt; 3 &amp;&amp; n &gt; 1</pre>"
    assert image.value == before
    assert shown.values == {"n": 1}
    controls(box)["n"].value = 3
    assert message.value == ""
    assert image.value != before


def test_a_notebook_gets_widget_and_picture(monkeypatch):
    monkeypatch.delattr("ipywidgets.Widget._repr_mimebundle_")  # as ipywidgets 7, which Colab has
    shown, _ = made()
    bundle, _ = shown._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]) == shown.png
    assert bundle["text/plain"].startswith("<picture for grid 1, stride False>")
    assert "application/vnd.jupyter.widget-view+json" in bundle
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else found(name))
    assert set(shown._repr_mimebundle_()[0]) == {"image/png", "text/plain"}


def test_arguments_that_cannot_be_drawn():
    shown, _ = made()
    with pytest.raises(ValueError, match=r"there is no slider 'block'; there are grid, stride"):
        shown.show(block=3)
    with pytest.raises(ValueError, match=r"grid=9 is not on its slider: 1, 2, 3, 4"):
        shown.show(grid=9)
    with pytest.raises(ValueError, match="0 sliders; give the values of one to 4"):
        sliders(lambda: plt.figure())
    with pytest.raises(ValueError, match="n has 0 values"):
        sliders(lambda n: None, n=[])
    with pytest.raises(TypeError, match="give a function"):
        sliders(draw_grid(1, 8, 8), n=[1])
    with pytest.raises(TypeError, match="returned NoneType; return a picture"):
        sliders(lambda n: None, n=[1])


# -- the pictures that come with sliders -----------------------------------------------------------------------------


def titles_of(monkeypatch, module_name: str) -> list[str]:
    """Collect the titles of the pictures that `explore` draws from here on."""
    seen: list[str] = []
    real = getattr(explore, module_name)

    def draw(*args, **kwargs):
        figure = real(*args, **kwargs)
        seen.append(figure.axes[0].get_title(loc="left").split("\n")[-1])
        return figure

    monkeypatch.setattr(explore, module_name, draw)
    return seen


def test_stride_and_offset(monkeypatch):
    seen = titles_of(monkeypatch, "draw_accesses")
    shown = explore.explore_accesses()
    shown.show(stride=2)
    shown.show(stride=1, offset=1)
    shown.show(stride=32, offset=32)
    assert [title.split(" per")[0] for title in seen] == ["4 sectors", "8 sectors", "5 sectors", "32 sectors"]


def test_padding_and_swizzle(monkeypatch):
    seen = titles_of(monkeypatch, "draw_banks")
    shown = explore.explore_banks()
    shown.show(padding=1)
    shown.show(padding=2)
    shown.show(padding=8, column=31)
    shown.show(padding=0, layout="swizzled", column=17)
    assert seen == ["32 wavefronts", "1 wavefront", "2 wavefronts", "8 wavefronts", "1 wavefront"]


CODE = """extern "C" __global__ void sides(float *a) {
    int t = threadIdx.x;
    if (t < 4)
        a[t] = sqrtf(a[t] + 1.0f);
    else
        a[t] = a[t] / (a[t] + 3.0f);
}
"""


@pytest.fixture(scope="module")
def launch():
    return simulate(CudaSource(CODE, "sides"), 1, 32, (np.zeros(32, np.float32),))


def test_a_warp_step_by_step(launch):
    names = {"sqrtf": "A", "3.0f": "B"}
    steps = timeline.timeline_steps(launch, names=names, others=False)
    assert list(steps) == list(range(len(steps)))
    shown = explore.explore_timeline(launch, names=names, others=False)
    assert shown.choices == {"step": list(steps)}
    assert shown.values == {"step": steps[-1]}  # a saved notebook shows all
    whole = shown.png
    shown.show(step=0)
    assert shown.png != whole
    with pytest.raises(ValueError, match="the warp has"):
        explore.explore_timeline(launch, start=10_000)


def test_later_steps_are_blank_and_the_step_is_described(launch):
    def drawn(figure) -> float:
        return max(path.vertices[:, 0].max() for c in figure.axes[0].collections for path in c.get_paths()[:1])

    def said(figure) -> str:
        return figure.texts[1].get_text()

    names = {"sqrtf": "A", "3.0f": "B"}
    figures = [timeline.draw_timeline(launch, names=names, others=False, now=k) for k in (0, 1)]
    assert said(figures[0]).startswith("step 0, A: a[t] = sqrtf(a[t] + 1.0f);")
    masks = {text: said(f).rsplit(" ", 1)[1] for text, f in zip("AB", figures, strict=True)}
    assert masks == {"A": "0x0000000f", "B": "0xfffffff0"}
    assert "4 of 32 lanes active" in said(figures[0])
    labels = [[t.get_text() for t in f.axes[0].texts] for f in figures]
    assert labels == [["A"], ["A", "B"]]
    assert drawn(figures[0]) < drawn(figures[1])
    with pytest.raises(ValueError, match="now=7; the steps drawn are 0 to 2"):
        timeline.draw_timeline(launch, names=names, others=False, now=7)
