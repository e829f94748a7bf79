"""The panel that looks inside, used as the page uses it, without a browser."""

import datetime
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from digits.page import look_panel
from digits.page.page import Page
from digits.workspace import Workspace
from warpcourse.paths import COURSE

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("look")
    script = Path(__file__).with_name("make_look_runs.py")
    environment = {**os.environ, "PYTHONPATH": str(COURSE)}
    made = subprocess.run([sys.executable, str(script), str(root)], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return Workspace(root)


def named(workspace, name):
    (found,) = [id for id in workspace.ids("runs") if id.endswith(f"-{name}")]
    return found


@pytest.fixture(scope="module")
def looking(workspace):
    page = Page(workspace, open_at="Look inside")
    yield page
    if page.panel("Look inside").inside:
        page.panel("Look inside").inside.close()
    page.close()


@pytest.fixture
def panel(looking, workspace):
    """The panel with the linear network's run selected."""
    looking.say("")
    looking.selected.run = named(workspace, "linear")
    return looking.panel("Look inside")


def widgets_of(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from widgets_of(child)


def control(panel, label):
    found = [one for one in widgets_of(panel.widget) if getattr(one, "description", None) == label]
    assert len([one for one in found if one not in getattr(found[0], "children", ())]) == 1
    return found[0]  # a number's field, not the line in it


def press(panel, label):
    control(panel, label).click()


def seen(panel):
    """What is shown, as HTML."""

    def shown(widget):
        if widget.layout.display == "none":
            return ""
        own = widget.value if type(widget).__name__ == "HTML" else ""
        return own + "".join(shown(child) for child in getattr(widget, "children", ()))

    return shown(panel.widget)


def file(pixels, name="drawn.png"):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return {"name": name, "content": stream.getvalue()}


def give(panel, *files):
    upload = control(panel, "Upload images")
    about = {"type": "image/png", "size": 0, "last_modified": datetime.datetime(2026, 11, 23)}
    upload.set_trait("value", tuple({**about, **one} for one in files))  # as the browser does


def test_every_picture_has_words(panel):
    for label in ("Classify", "Show the layers", "Show what the answer hangs on", "Show all its channels", "Test"):
        press(panel, label)
    html = seen(panel)
    pictures = re.findall(r"<img [^>]*>", html)
    assert len(pictures) > 5
    assert all(re.search(r'alt="[^"]{8,}"', one) for one in pictures)
    svgs = re.findall(r"<svg [^>]*>", html)
    assert svgs
    assert all('role="img"' in one and re.search(r'aria-label="Histogram of [^"]+"', one) for one in svgs)
    # The class <b>one</b> is a name, not markup.
    assert "&lt;b&gt;one&lt;/b&gt;" in html
    assert "<b>one" not in html


def test_an_image_of_the_dataset_is_classified(panel, looking):
    control(panel, "Image from").value = "validation"
    control(panel, "Number").value = 3
    press(panel, "Classify")
    html = seen(panel)
    truth = int(panel.dataset.labels("validation")[3])
    assert "validation image 3, of class" in html
    assert "The most probable classes" in html
    assert html.count(" (true)") == 1
    best = panel.inside.classify(np.array(panel.dataset.images("validation")[3:4]))[0].argmax()
    assert ("Right: " if best == truth else "Wrong: ") in html
    assert not looking._status.value
    press(panel, "Next image")
    assert control(panel, "Number").value == 4
    assert "The most probable classes" not in seen(panel)  # it was of another image


def test_uploads_are_read_classified_and_refused_one_by_one(panel):
    pixels = np.full((12, 10), 200, np.uint8)
    give(panel, file(pixels, EVIL), {"name": "notes.txt", "content": b"no image"})
    html = seen(panel)
    assert "Not read: <ul><li>notes.txt: " in html
    assert EVIL not in html
    assert f"uploaded: {EVIL}" in [label for label, _ in control(panel, "Image from").options]
    press(panel, "Classify")
    assert "The most probable classes" in seen(panel)
    image, name, truth = panel._image.image()
    assert (image.shape, name, truth) == ((6, 5, 1), EVIL, None)
    assert (image == 200).all()
    control(panel, "Invert uploads (dark on white)").value = True
    assert (panel._image.image()[0] == 55).all()
    control(panel, "Invert uploads (dark on white)").value = False
    give(panel, file(pixels, "second.png"))
    press(panel, "Classify all uploaded images")
    html = seen(panel)
    assert "Answers for each image" in html
    assert "second.png" in html
    assert EVIL not in html


def test_saliency_of_a_chosen_class_by_both_methods(panel):
    control(panel, "Image from").value = "validation"
    control(panel, "Class asked about").value = 1
    for method, words in (("gradient", "Gradient × input: to first order"), ("occlusion", "a patch of 2 × 2 pixels")):
        control(panel, "Saliency by").value = method
        press(panel, "Show what the answer hangs on")
        html = seen(panel)
        assert words in html
        assert "How pixels speak for class &lt;b&gt;one&lt;/b&gt;" in html


def test_a_part_is_tested_and_leads_to_its_mistakes(panel):
    control(panel, "Part of the dataset").value = "validation"
    press(panel, "Test")
    html = seen(panel)
    found = panel.inside.test("validation")
    right = int((found.probabilities.argmax(1) == found.labels).sum())
    assert f"{right} of 30 right" in html
    assert "Confusion matrix: rows are the truth" in html
    mistake = control(panel, "Mistake")
    assert len(mistake.options) == min(12, 30 - right)
    mistake.value = mistake.options[1][1]
    press(panel, "Look at this mistake")
    assert (control(panel, "Image from").value, control(panel, "Number").value) == ("validation", mistake.value)
    control(panel, "Images, at most").value = 5
    press(panel, "Test")
    assert "of 5 right" in seen(panel)


def test_errors_are_said_and_the_panel_lives_on(panel, looking):
    panel._image.own.clear()
    press(panel, "Classify all uploaded images")
    assert "No image was uploaded" in looking._status.value
    control(panel, "Image from").value = "validation"
    press(panel, "Classify")
    assert "The most probable classes" in seen(panel)


def test_that_the_network_is_busy_is_said_for_as_long_as_it_is(panel, looking):
    panel._busy, panel._doing = True, "classifying the image"
    press(panel, "Show the layers")
    assert looking.said == "The network is busy: classifying the image. Wait for it, or break it off."
    panel._free()
    assert looking.said == ""
    looking.say("Something else.")
    panel._free()
    assert looking.said == "Something else."


def test_other_runs_show_what_they_have(panel, looking, workspace):
    looking.selected.run = named(workspace, "scenes")
    html = seen(panel)
    assert "tested in the panel Scenes" in html
    press(panel, "Show the layers")
    assert "coverage" in seen(panel)
    looking.selected.run = named(workspace, "diverged")
    press(panel, "Classify")
    assert "its training has diverged" in seen(panel)
    press(panel, "Show what the answer hangs on")
    assert "diverged" in looking._status.value
    looking.selected.run = named(workspace, "empty")
    press(panel, "Classify")
    assert "no weights yet" in looking._status.value
    looking.selected.run = named(workspace, "tangled")
    assert "20260101-000000-deleted" in seen(panel)
    looking.selected.run = named(workspace, "linear")
    press(panel, "List the network's layers")
    assert "93 parameters, input 6 × 5 × 1" in seen(panel)


def test_weights_of_a_checkpoint_are_chosen(panel, looking, workspace):
    looking.selected.run = named(workspace, "kept")
    weights = control(panel, "Weights")
    assert [label for label, _ in weights.options] == ["the last", "step 20, epoch 2", "step 10, epoch 1"]
    press(panel, "Classify")
    last = seen(panel)
    weights.value = "step-000000010"
    assert "The most probable classes" not in seen(panel)
    press(panel, "Classify")
    assert "The most probable classes" in seen(panel)
    assert seen(panel) != last


def test_a_process_that_nobody_asks_gives_its_memory_back(panel, looking):
    panel.inside.model()
    looking.tick()
    assert panel.inside.pid
    panel._asked -= look_panel.REST + 1
    looking.tick()
    assert panel.inside.pid is None
    press(panel, "Classify")
    assert "The most probable classes" in seen(panel)


def test_without_a_run_the_panel_says_what_to_do(tmp_path):
    page = Page(Workspace(tmp_path), open_at="Look inside")
    assert "Train a network first" in seen(page.panel("Look inside"))
    page.close()
