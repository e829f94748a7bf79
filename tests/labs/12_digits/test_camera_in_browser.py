"""A photo by the camera, in Chromium: it arrives as an upload, and the camera is let go"""

from __future__ import annotations

import importlib

import pytest

from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]
TRACKS = "return window.digitsStream.getTracks().map(one => one.readyState)"
# A camera that sees white.
CAMERA = """
navigator.mediaDevices.getUserMedia = async () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [64, 48];
    const paint = () => { const on = canvas.getContext("2d"); on.fillStyle = "white"; on.fillRect(0, 0, 64, 48); };
    paint();
    setInterval(paint, 50);
    return window.digitsStream = canvas.captureStream(20);
};
"""


@pytest.fixture
def page(tmp_path):
    workspace = Workspace(tmp_path / "space")
    stub.dataset(workspace)
    stub.written(workspace, "first")
    with harness.page_in_chromium(workspace.root) as page:
        page.press("Look inside")
        page.until_says("validation image 0, of class")
        yield page
        page.check()


def test_a_photo_is_an_upload_and_the_camera_is_let_go(page):
    page.run(CAMERA)
    page.run("buttons(null, 'Take a photo')[0].click()")
    until(lambda: page.run("return document.querySelector('dialog video')?.videoWidth") == 64, "the camera's picture")
    page.press("Take the photo")
    until(lambda: page.value("Image from").startswith("uploaded: photo "), "the photo as an upload")
    white = (
        "const image = [...document.querySelectorAll('.digits-panel img')].find(seen);"
        "const canvas = document.createElement('canvas');"
        "[canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];"
        "const on = canvas.getContext('2d'); on.drawImage(image, 0, 0);"
        "return Math.min(...on.getImageData(0, 0, canvas.width, canvas.height).data)"
    )
    until(lambda: page.run(white) > 250, "a white picture")
    until(lambda: page.run(TRACKS) == ["ended"], "the camera let go")
    assert page.count("dialog") == 0
    # Given up: nothing is uploaded, and the camera is let go, too.
    page.run("buttons(null, 'Take a photo')[0].click()")
    page.press("Cancel")
    until(lambda: page.run(TRACKS) == ["ended"], "the camera let go")
    assert sum(option.startswith("uploaded") for option in page.options("Image from")) == 1
