"""Looking inside, in a real browser: an image classified, layers seen, a mistake followed, by keyboard too."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.chromium import missing
from tests.support.waiting import until
from warpcourse.paths import COURSE

pytestmark = pytest.mark.skipif(missing() != "", reason=missing())
harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    root = tmp_path_factory.mktemp("look")
    script = Path(__file__).with_name("make_look_runs.py")
    subprocess.run([sys.executable, str(script), str(root)], env={**os.environ, "PYTHONPATH": str(COURSE)}, check=True)
    with harness.page_in_chromium(root) as page:
        page.press("Look inside")
        (option,) = [one for one in page.options("Run") if one.startswith("linear ")]
        page.choose("Run", option)
        page.until_says("forty, images of 6 × 5 × 1, 3 classes")
        yield page


@pytest.fixture
def page(opened):
    opened.size(1280)
    yield opened
    opened.check()
    assert opened.nameless() == []


def test_an_image_is_classified_its_layers_seen_and_a_mistake_followed(page):
    page.fill("Number", "4")
    page.until_says("validation image 4, of class")
    page.press("Classify")
    page.until_says("The most probable classes")
    page.press("Show the layers")
    page.until_says("values of out, from")
    # The pictures are drawn: as many pixels as the layer has values, larger on the screen.
    sizes = page.run(
        "return [...document.querySelectorAll('.look-layer img')].filter(seen)"
        ".map(one => [one.naturalWidth, one.naturalHeight, one.getBoundingClientRect().width])"
    )
    assert [size[:2] for size in sizes] == [[30, 1], [3, 1], [3, 30]]
    assert all(shown > pixels for pixels, _, shown in sizes)
    page.press("Test")
    page.until_says("of 30 right")
    page.press("Look at this mistake")
    page.until_says("Shown above, under One image")
    assert not page.says("The most probable classes")


def test_uploaded_images_are_taken_and_others_named(page, tmp_path):
    good, bad = tmp_path / "drawn & grey.png", tmp_path / "notes.png"
    Image.fromarray(np.full((9, 9), 128, np.uint8)).save(good)
    bad.write_text("no image")
    page.upload("Upload images", good, bad)
    page.until_says("notes.png: ")
    page.until_says("drawn & grey.png")
    page.press("Classify")
    page.until_says("The most probable classes")
    page.press("Classify all uploaded images")
    page.until_says("Answers for each image")
    page.choose("Image from", "validation (30)")
    assert page.value("Number") == "0"  # there again


def test_it_can_be_used_by_keyboard(page):
    page.run("labelled('Number')[0].focus()")
    seen = []
    for _ in range(12):
        page.key("Tab")
        seen.append(page.focused())
    for name in ("Next image", "Classify", "Saliency by", "Class asked about", "Show what the answer hangs on"):
        assert name in seen
    page.run("buttons('Classify')[0].focus()")
    page.key("Space")
    page.until_says("The most probable classes")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(page, width, dark):
    page.size(width, dark=dark)
    until(lambda: page.run("return innerWidth") == width)
    assert page.run("return document.documentElement.scrollWidth") <= width
