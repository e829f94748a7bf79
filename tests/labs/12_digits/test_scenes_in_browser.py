"""Detection as a learner meets it, in Chromium: scenes made, a network trained on them, its boxes looked at."""

from __future__ import annotations

import importlib
import re

import pytest

from digits.training import runs
from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]
FORM = {
    "Number to train on": "300",
    "Number for each other part": "50",
    "Most digits": "1",
    "Smallest digit (pixels)": "14",
    "Largest digit (pixels)": "22",
}


def test_scenes_are_made_trained_on_and_found(tmp_path):
    workspace = tmp_path / "workspace"
    with harness.page_in_chromium(workspace) as page:
        page.press("Scenes")
        page.until_says("What they look like")
        page.choose("Side of a scene", "32 pixels")
        for label, value in FORM.items():
            page.fill(label, value)
        page.press("Make the scenes")
        page.until_says("400 scenes of 32 × 32 pixels are ready")
        until(lambda: "detection" in page.value("Dataset of scenes"), "the new scenes among those to train on")
        assert page.count("img[alt^='A scene with boxes around digits']") == 4

        page.fill("Epochs on scenes", "8")
        page.press("Train on these scenes")
        page.until_says("has been started")
        page.until_says("Done: detectnet on scenes")
        page.press("Find the digits")
        page.until_says("as PASCAL VOC counts")
        page.until_says("Scene ")
        said = float(re.search(r"mAP (\d+\.\d) %", page.text()).group(1))
        # 300 scenes and 8 epochs are too few for good boxes, and enough to tell learning from chance.
        assert said > 10
        (run,) = runs.listing(Workspace(workspace))
        last = [line for line in run.curves() if line["part"] == "validation"][-1]
        assert said == pytest.approx(100 * last["mAP"], abs=0.06)
        assert page.count(".scenes-figure img") == 8
        page.choose("From cells to boxes", "Keep every cell's box")
        page.until_says("wrong")

        page.choose("Precision and recall of", "3")
        page.until_says("Precision and recall of class 3")
        for width, dark in ((1280, False), (390, False), (390, True)):
            page.size(width, dark=dark)
            page.picture(tmp_path / f"scenes_{width}{'_dark' * dark}.png")
            assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.run("return [...document.images].filter(one => seen(one) && !one.alt).length") == 0

        page.check()
