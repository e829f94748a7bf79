"""A picture in a notebook."""

from __future__ import annotations

import base64
import re

import matplotlib.pyplot as plt
import nbformat
import pytest
from matplotlib.colors import to_rgb
from nbclient import NotebookClient

from tests.support.synthetic_profiles import vector_multiply
from warplab import (
    draw_accesses,
    draw_cluster,
    draw_grid,
    draw_look_back,
    draw_machine,
    draw_mask,
    draw_roofline,
    draw_rounds,
    draw_stages,
    draw_swizzle,
    draw_zoom,
    heat_map,
)
from warplab.draw import style, timeline
from warplab.draw.style import closed


def test_a_notebook_shows_each_picture_once(monkeypatch):
    # The kernel must choose the notebook's own backend, as it does for a learner.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cell = nbformat.v4.new_code_cell("from warplab import draw_grid\ndraw_grid(2, 4, 7)")
    silent = nbformat.v4.new_code_cell("figure = draw_grid(2, 4, 7)")
    notebook = nbformat.v4.new_notebook(cells=[cell, silent])
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    images = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(images) == 1
    assert base64.b64decode(images[0]).startswith(b"\x89PNG")
    assert silent.outputs == []


def test_a_notebook_shows_what_a_picture_says_in_words(monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cell = nbformat.v4.new_code_cell("from warplab import draw_grid\ndisplay(draw_grid(2, 4, 7))")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    words = draw_grid(2, 4, 7).says
    assert "grid 2 × block 4 = 8 threads, n = 7" in words
    assert [o.data["text/plain"] for o in cell.outputs if "text/html" in o.data] == [words]


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance, by its text: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(part) for part in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", [*timeline.COLOURS, style.GREY, style.PALE, style.AMBER, style.SKY, "#777777"])
def test_letters_on_a_colour_can_be_read(colour):
    assert contrast(style.ink(colour), colour) >= 4.5
    assert contrast("white", style.ORANGE) < 4.5  # as it was


PROFILE = vector_multiply()
DRAWN = {
    "accesses": lambda: draw_accesses(PROFILE),
    "cluster": draw_cluster,
    "grid": lambda: draw_grid(2, 4, 7),
    "heat_map": lambda: heat_map(PROFILE),
    "look_back": draw_look_back,
    "machine": lambda: draw_machine("SM"),
    "mask": lambda: draw_mask(lambda lane: lane < 3),
    "roofline": lambda: draw_roofline(PROFILE),
    "rounds": lambda: draw_rounds(200, 132, 2),
    "stages": draw_stages,
    "swizzle": draw_swizzle,
    "zoom": lambda: draw_zoom({"block": (128, 128), "warp": (64, 32)}),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_a_picture_says_its_numbers_in_words(draw):
    says = draw().says
    assert re.search(r"\d", says)
    assert len(says.split()) > 4
    assert says.endswith(".")
    assert "\n" not in says


def test_the_words_say_where_times_are_from_that_a_legend_names():
    figure, ax = plt.subplots()
    ax.plot([1, 2], label="kernel")
    figure.legend(title="recorded on NVIDIA H100, 2026-11-22")
    ax.set_title("layer: 37.3 ms", loc="left")
    assert closed(figure).says == "layer: 37.3 ms; recorded on NVIDIA H100, 2026-11-22; kernel from 1 to 2."


def test_bars_are_named_by_their_labels_or_else_by_where_they_stand():
    figure, (labelled, by_place) = plt.subplots(2)
    labelled.bar(["sum", "copy"], [3, 4])
    by_place.bar([0.8, 31.8], [1, 2], width=0.4)
    assert closed(figure).says == "sum 3, copy 4; 1 1, 32 2."


def test_a_curve_begins_and_ends_where_it_has_numbers():
    figure, ax = plt.subplots()
    ax.plot([float("nan"), 3, 2768.4, float("inf")], label="errors")
    assert closed(figure).says == "errors from 3 to 2,770."


def test_powers_on_a_logarithmic_axis_are_said_plainly():
    figure, ax = plt.subplots()
    ax.set_xscale("log")
    ax.bar([1000], [5], 10)
    assert closed(figure).says == "10^3 5."
