"""The way of a new user through the page, in Chromium, with real training: from no dataset to a network that is tested.

One test, since each step needs those before it, and pytest may share out tests of a file among processes.
"""

from __future__ import annotations

import importlib
import io
import re

import numpy as np
import pytest
from PIL import Image

from digits.training import runs
from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.lazily import module
from tests.support.waiting import until

datasets = module("sklearn.datasets")
harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]

EPOCHS = 24  # 98 % and a little
LONG = 2_000  # epochs of a run that is stopped long before its end, and ends by itself if the test is killed
CHART = "[...document.querySelectorAll('.digits-chart svg[role=img]')].find(seen)"


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def page(workspace):
    with harness.page_in_chromium(workspace.root) as page:
        yield page
        page.check()
    for run in runs.listing(workspace):  # a test that failed may have left one
        if run.alive:
            run.stop()


def newest(workspace):
    return runs.listing(workspace)[0]


def epoch(page):
    said = re.search(r"epoch (\d+\.\d) of", page.text(".digits-state"))
    return float(said[1]) if said else 0.0


def start(page, name, epochs):
    page.press("Solver")
    page.fill("Epochs", str(epochs))
    page.fill("Base learning rate", "0.002")
    page.until_says(f"Learning rate over {40 * epochs:,} steps, 40 per epoch")
    page.press("Train")
    page.until_says(f"{epochs} epochs, 32 images per step, adam, rate 0.002")
    page.fill("Name of the run", name)
    page.press("Start training")


def the_digits_become_a_dataset(page):
    page.press("Data")
    page.until_says("A first network")
    page.press("Make the dataset")
    page.until_says("1797 of 8 × 8 grey")
    until(lambda: page.count("img[alt]") >= 24, "the pictures of the dataset")


def a_network_is_chosen(page):
    page.press("Network")
    page.until_says("8 × 8 × 1, 10 classes")
    page.choose("Network", "LeNet-like: two convolutions, two dense layers")


def training_is_started_and_its_curves_move(page):
    start(page, "a long run", LONG)
    page.until_says("Running: a long run")
    page.until_says("to go")
    until(lambda: page.run(f"return !!{CHART}"), "the first points")
    shape = page.run(f"return {CHART}.innerHTML")
    until(lambda: page.run(f"return {CHART}.innerHTML") != shape, "new points in the chart")
    page.until_says("CPU ")


def it_is_paused_and_goes_on_where_it_was(page, workspace):
    page.press("Pause")
    page.until_says("Paused: a long run")
    run = newest(workspace)
    before, points = run.state(), run.curves()
    assert 0 < before["step"] < before["steps"]
    page.press("Resume")
    page.until_says("Running: a long run")
    until(lambda: epoch(page) > before["epoch"] + 0.1, "progress after the pause")
    # What was before the pause is there still, point by point.
    assert run.curves()[: len(points)] == points


def it_is_stopped_and_is_there_after_a_reload(page, workspace):
    page.press("Stop")
    page.until_says("Stopped: a long run")
    step = newest(workspace).state()["step"]
    assert 0 < step < 40 * LONG
    page.browser.open(page.browser.address)
    until(lambda: page.run("return !!document.querySelector('.digits-steps button')"), "the page again")
    page.press("Train")
    page.until_says("Stopped: a long run")
    page.until_says(f"step {step} of {40 * LONG}")
    until(lambda: page.is_pressable("Resume"))


def enough_is_reached(page, workspace, tmp_path):
    start(page, "my first run", EPOCHS)
    page.until_says("Done: my first run")
    best = float(re.search(r"best accuracy (\d+\.\d) %", page.text(".digits-state"))[1])
    assert best >= 97.0
    lines = [line for line in newest(workspace).curves() if line["part"] == "validation"]
    assert [line["step"] for line in lines] == [40 * done for done in range(EPOCHS + 1)]
    assert best == pytest.approx(100 * max(line["accuracy"] for line in lines), abs=0.06)
    until(lambda: f"at epoch {EPOCHS};" in page.run(f"return {CHART}.getAttribute('aria-label')"), "the last point")
    for width, dark in ((1280, False), (1280, True), (390, False), (390, True)):
        page.size(width, dark=dark)
        page.picture(tmp_path / f"train_{width}{'_dark' * dark}.png")
    page.size(1280)


def an_image_of_ones_own_is_tested(page, tmp_path):
    """A digit as a photograph would hold it: larger, and with a name that is HTML."""
    bunch = datasets.load_digits()
    place = int(np.flatnonzero(bunch.target == 3)[0])
    image = Image.fromarray(np.rint(bunch.images[place] * (255 / 16)).astype(np.uint8)).resize((64, 64), Image.BOX)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    path = tmp_path / "<b>three.png"
    path.write_bytes(stream.getvalue())
    page.press("Look inside")
    page.until_says("validation image 0, of class")  # the whole panel is there; an upload before that may be lost
    page.upload("Upload images", path)
    page.until_says("<b>three.png")
    page.press("Classify")
    page.until_says("The most probable classes")
    rows = page.run(
        "return [...document.querySelectorAll('table')].filter(one => seen(one) && words(one).includes('probable'))"
        ".flatMap(one => [...one.tBodies[0].rows].map(words))"
    )
    assert len(rows) == 5
    assert rows[0].startswith("3")


def its_layers_are_shown_as_pictures(page, tmp_path):
    page.press("Show the layers")
    until(lambda: page.count(".look-layer") >= 5, "the layers")
    pictures = page.run(
        "return [...document.querySelectorAll('.look-layer img')].filter(seen)"
        ".map(one => [one.alt, one.naturalWidth, one.naturalHeight])"
    )
    assert len(pictures) >= 3
    for says, width, height in pictures:
        assert says
        assert width * height > 1
    page.picture(tmp_path / "layers.png")


def the_run_can_be_downloaded_and_is_there_for_others(page, workspace):
    run = newest(workspace)
    fetched = page.browser.wait(
        "const done = arguments[0];"
        f"fetch('files/runs/{run.id}/model.keras').then(one => one.arrayBuffer()).then(one => done(one.byteLength))"
    )
    assert fetched == (run.folder / "model.keras").stat().st_size


def test_a_new_user_gets_to_a_network_that_is_tested(page, workspace, tmp_path):
    the_digits_become_a_dataset(page)
    a_network_is_chosen(page)
    training_is_started_and_its_curves_move(page)
    it_is_paused_and_goes_on_where_it_was(page, workspace)
    it_is_stopped_and_is_there_after_a_reload(page, workspace)
    enough_is_reached(page, workspace, tmp_path)
    an_image_of_ones_own_is_tested(page, tmp_path)
    its_layers_are_shown_as_pictures(page, tmp_path)
    the_run_can_be_downloaded_and_is_there_for_others(page, workspace)
