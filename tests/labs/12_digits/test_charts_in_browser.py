"""Charts in Chromium: the value under the pointer, zoom, both by keys; and a chart that is drawn anew goes on."""

from __future__ import annotations

import importlib

import pytest

from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]
CHART = "const chart = [...document.querySelectorAll('.digits-chart')].find(seen), svg = chart.querySelector('svg');"
POINT = """
const box = svg.getBoundingClientRect(), told = JSON.parse(svg.dataset.chart), [left, , right] = told.box;
const at = share => box.left + (left + share * (right - left)) / svg.viewBox.baseVal.width * box.width;
const point = (kind, share) => svg.dispatchEvent(new PointerEvent(kind,
    {clientX: at(share), clientY: box.top + 20, bubbles: true, pointerId: 1}));
svg.setPointerCapture = () => {};
"""


@pytest.fixture
def page(tmp_path):
    workspace = Workspace(tmp_path / "space")
    stub.dataset(workspace)
    run = stub.written(workspace, "first", "paused", epochs=10, reached=6)
    with harness.page_in_chromium(workspace.root) as page:
        page.press("Train")
        until(lambda: page.count(".digits-chart svg[tabindex]") >= 2, "the charts")
        page.stub = run
        yield page
        page.check()


def read(page):
    return page.run(CHART + "return chart.querySelector('.digits-read').textContent")


def labels(page):
    return page.run(CHART + "return [...chart.querySelectorAll('.digits-x text')].map(one => +one.textContent)")


def test_values_and_zoom_by_pointer_and_by_keys(page):
    points = {line["epoch"]: line["loss"] for line in page.stub.curves() if line["part"] == "validation"}
    page.run(CHART + POINT + "point('pointermove', 0.3)")
    assert read(page).startswith("epoch 3: ")
    assert f"validation {points[3]:.4g}" in read(page)
    # A drag from 2 to 5 shows these epochs, and the line's points between them.
    page.run(CHART + POINT + "point('pointerdown', 0.2); point('pointermove', 0.5); point('pointerup', 0.5)")
    assert labels(page) == [2, 2.5, 3, 3.5, 4, 4.5, 5]
    moved = "one => +one.getAttribute('transform').match(/[-\\d.]+/)[0]"
    shown = page.run(f"{CHART}return [...chart.querySelectorAll('[data-at]')].map({moved})")
    left, _, right, _ = page.run(CHART + "return JSON.parse(svg.dataset.chart).box")
    at = {epoch: shown[epoch - 1] + 12 for epoch in range(1, 7)}
    assert at[2] == pytest.approx(left, abs=0.2)
    assert at[5] == pytest.approx(right, abs=0.2)
    page.press("Show all")
    assert labels(page) == [0, 2, 4, 6, 8, 10]
    # By keys: the button gave the focus to the chart.
    page.key("Home")
    assert read(page).startswith("epoch 0.25: ")
    page.key("End")
    assert read(page).startswith("epoch 6: ")
    page.key("ArrowLeft")
    assert read(page).startswith("epoch 5.75: ")
    page.run(CHART + "svg.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true}))")
    assert min(labels(page)) >= 3
    assert not page.run(CHART + "return chart.querySelector('button').hidden")
    # New points: the chart is another one, and shows what was looked at, with the focus still on it.
    page.run(CHART + "svg.dataset.old = '1'")
    stub.points(page.stub.folder, 6, 7, 0.9, 10)
    until(lambda: not page.run(CHART + "return svg.dataset.old"), "the chart with new points")
    until(lambda: read(page).startswith("epoch 5.75: "), "what was read before")
    assert min(labels(page)) >= 3
    assert page.run(CHART + "return document.activeElement === svg")
    page.run(CHART + "svg.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")
    assert labels(page) == [0, 2, 4, 6, 8, 10]
    assert read(page) == ""
