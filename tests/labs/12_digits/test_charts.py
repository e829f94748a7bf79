"""Charts: colours from the page, names escaped, long curves thinned by means, gaps and values said in words."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from digits.page import charts
from digits.page.charts import Line, chart

TEN = Line("validation", range(1, 11), [1 / n for n in range(1, 11)])


def svg(made):
    return made[made.index("<svg") : made.index("</svg></svg>") + 12]


def test_all_colours_come_from_the_page():
    lines = [Line(f"run {look}", [1, 2], [look, look + 1], look, look % 2 == 1) for look in range(charts.LOOKS)]
    made = chart(lines, "Loss", "epoch", "loss")
    assert re.findall(r"#[0-9a-fA-F]{6}\b", made) == []
    for look in range(charts.LOOKS):
        assert f"stroke: var(--digits-line-{look})" in made
    assert "font-family" not in made


def test_nothing_in_it_holds_for_the_rest_of_the_page():
    made = chart([TEN], "Loss", "epoch", "loss")
    assert "<style" not in made
    assert "<script" not in made
    assert re.findall(r"https?://(?!www\.w3\.org)", made) == []
    xml.etree.ElementTree.fromstring(svg(made))
    assert " id=" not in made


def test_names_of_users_are_escaped_and_no_formulas():
    lines = [Line("<b>$x_1$</b>", [1, 2], [1, 2]), Line("_other", [1, 2], [2, 1], 1)]
    made = chart(lines, "A & B", "epoch", "loss")
    assert "<b>" not in made
    assert "&lt;b&gt;$x_1$&lt;/b&gt;" in made
    assert "_other" in made
    assert "A &amp; B" in made


def test_lines_differ_by_more_than_colour():
    keys = {charts.key(look).replace(f"line-{look}", "line") for look in range(charts.LOOKS)}
    assert len(keys) == charts.LOOKS
    assert "stroke-dasharray" in charts.key(0, dashed=True)
    made = chart([Line("a", [1, 2], [1, 2], 0), Line("b", [1, 2], [2, 1], 1)], "Loss", "epoch", "loss")
    assert len(set(re.findall(r'<path d="([^"]+)" data-at="0"', made))) == 2


def test_the_picture_is_told_in_words():
    made = chart([Line("validation", [1, 2, 3], [0.5, 0.9, 0.8])], "Accuracy", "epoch", "accuracy", percent=True)
    label = re.search(r'aria-label="([^"]*)"', made)[1]
    assert label == ("Accuracy. validation: from 50.0 % to 80.0 % at epoch 3; lowest 50.0 % at 1, highest 90.0 % at 2.")


def test_without_points_it_says_so():
    assert "No points yet" in chart([], "Loss", "epoch", "loss")
    assert "No points yet" in chart([Line("a", [], [])], "Loss", "epoch", "loss")
    assert "<svg" in chart([Line("a", [1], [0.5])], "Loss", "epoch", "loss")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_diverged_training_is_said_in_words(bad):
    made = chart([Line("training", [1, 2, 3], [2.0, 9.0, bad])], "Loss", "epoch", "loss")
    assert "training is not a finite number from 3 on" in made
    xml.etree.ElementTree.fromstring(svg(made))
    assert "<svg" in chart([Line("training", [1, 2], [bad, bad])], "Loss", "epoch", "loss", logarithmic=True)


def test_long_lines_are_drawn_by_means_of_neighbours():
    n = 7 * charts.POINTS + 3
    x, y = np.arange(n, dtype=float), np.arange(n, dtype=float)
    y[5] = np.nan
    _, places, values = charts._thinned(Line("a", x, y), logarithmic=False)
    assert len(places) <= charts.POINTS
    size = -(-n // charts.POINTS)
    for bucket in (0, 1, len(places) - 1):
        of = slice(bucket * size, min((bucket + 1) * size, n))
        assert places[bucket] == pytest.approx(np.mean(x[of]))
        assert values[bucket] == pytest.approx(np.nanmean(y[of]))


def test_a_logarithmic_axis_leaves_out_what_is_not_positive():
    _, _, values = charts._thinned(Line("a", [1, 2, 3], [1.0, 0.0, -1.0]), logarithmic=True)
    assert np.isnan(values).tolist() == [False, True, True]
    assert "<svg" in chart([Line("a", [1, 2, 3], [1.0, 0.0, 100.0])], "Loss", "epoch", "loss", logarithmic=True)


def test_powers_of_ten_are_written_as_such():
    made = chart([Line("a", [1, 2, 3], [1e-7, 3.0, 1e10])], "Loss", "epoch", "loss", logarithmic=True)
    assert "10⁸" in made
    assert [charts._power(value) for value in (0.01, 1, 1000, 1e4, 2e-5)] == ["0.01", "1", "1000", "10⁴", "2·10⁻⁵"]


def test_the_axis_ends_where_the_training_will():
    def right(made):
        return max(float(text) for text in re.findall(r">(\d+)</text>", made))

    assert right(chart([TEN], "Loss", "epoch", "loss", most=100)) == 100
    assert right(chart([TEN], "Loss", "epoch", "loss")) == 10


def test_the_browser_is_told_every_point_that_is_drawn():
    made = chart([TEN, Line("<other>", [1, 2, 3], [0.25, float("nan"), 1e-9], 1, True)], "Loss", "epoch", "loss")
    told = json.loads(html.unescape(re.search(r'data-chart="([^"]*)"', made)[1]))
    assert [line["name"] for line in told["lines"]] == ["validation", "<other>"]
    assert told["lines"][0]["x"] == list(range(1, 11))
    assert told["lines"][1]["y"] == [0.25, None, 1e-9]
    left, top, right, bottom = told["box"]
    points = re.findall(r"[ML]([\d.]+) ([\d.]+)", re.search(r'<path d="(M[^"]*)" fill="none"', made)[1])
    assert len(points) == 10
    low, high = told["x"]
    for (x, y), at in zip(points, told["lines"][0]["x"], strict=True):
        assert float(x) == pytest.approx(left + (at - low) / (high - low) * (right - left), abs=0.06)
        assert top <= float(y) <= bottom
    assert [float(y) for _, y in points] == sorted(float(y) for _, y in points)  # the loss falls: further down


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.37, 0.38), (-5, 2000), (1e-9, 3e-9), (0, 50_000), (7, 7.5)])
def test_ticks_are_few_round_and_inside(low, high):
    ticks = charts._ticks(low, high, False)
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-12 <= tick <= high + 1e-12 for tick in ticks)
    steps = np.diff(ticks)
    assert steps == pytest.approx(steps[0])
    assert f"{steps[0]:e}"[0] in "125"
