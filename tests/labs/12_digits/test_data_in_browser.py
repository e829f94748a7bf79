"""The data panel in Chromium: datasets are made, built, looked at and deleted, with the mouse and by keyboard.

One test, as each step goes on with what those before have made.
"""

from __future__ import annotations

import importlib
import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from digits.data.dataset import Dataset
from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]

LOADED = "return [...document.images].filter(seen).every(one => one.complete && one.naturalWidth > 0 && one.alt)"
SIDEWAYS = "return document.documentElement.scrollWidth > innerWidth"


@pytest.fixture
def pets(tmp_path):
    root = tmp_path / "images" / "pets"
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (root / label).mkdir(parents=True)
        for index in range(6):
            pixels = np.kron(rng.integers(0, 256, (9, 16, 3), np.uint8), np.ones((10, 10, 1), np.uint8))
            Image.fromarray(pixels).save(root / label / f"{index}.jpg")
    (root / "cat" / "<b>broken.png").write_bytes(b"no image")
    (root / "empty").mkdir()
    return root


def datasets(page):
    return {dataset.name: dataset for dataset in Dataset.list(Workspace(page.workspace))}


def digits_are_made_looked_at_and_previewed(page, tmp_path):
    page.until_says("A first network")
    page.press("Make the dataset")
    page.until_says("1797 of 8 × 8 grey: 1259 to train on")
    page.choose("Part", "Test")
    page.choose("Of class", "3")
    page.until_says("1 to 24 of 27 images")
    page.press("Show the next images")
    page.until_says("25 to 27 of 27 images")
    page.press("Show the images before")
    page.until_says("1 to 24 of 27 images")
    page.until_says("The solver says none")
    page.press("Use this augmentation")
    page.until_says("What the solver says: shift 0.1")
    until(lambda: page.run(LOADED), "the pictures, each with a text alternative")
    assert page.nameless() == []
    for width, dark in ((1280, False), (390, True)):
        page.size(width, dark=dark)
        until(lambda: not page.run(SIDEWAYS), "a page that needs no scrolling sideways")
        assert page.picture(tmp_path / f"{width}.png").stat().st_size > 10_000
    page.size(1280)


def folder_is_built_and_its_bad_image_listed(page, pets):
    page.press("New dataset …")
    page.choose("Source", "Folder or .zip on this machine")
    page.fill("Folder or .zip file", str(pets / "nothing"))
    page.press("Make the dataset")
    page.until_says("is not there. Give a folder that holds one folder per class", ".digits-status")
    page.fill("Folder or .zip file", str(pets))
    page.fill("Width (pixels)", "2.5")
    page.until_says("Width (pixels): '2.5' is no whole number")
    page.press("Make the dataset")
    page.until_says("Width (pixels): '2.5' is no whole number", ".digits-status")
    assert page.value("Width (pixels)") == "2.5"
    page.fill("Seed of the split", "1e3")
    until(lambda: page.value("Seed of the split") == "1000", "the seed as it was taken")
    page.fill("Width (pixels)", "48")
    page.choose("Resize mode", "Half crop, half fill")
    page.press("Show an example")
    page.until_says("The image")
    page.press("Make the dataset")
    page.until_says("The dataset pets is ready: 12 images.", ".digits-status")
    page.press("2 files and folders were skipped: which, and why")
    page.until_says("cat/<b>broken.png")
    page.until_says("The folder is empty. A class needs images.")
    page.until_says("12 of 48 × 32 colour: 8 to train on, 2 for validation, 2 for test")
    assert datasets(page)["pets"].classes == ("cat", "dog")


def archive_and_images_are_uploaded(page, pets, tmp_path):
    archive = tmp_path / "zoo.zip"
    noise = np.random.default_rng(1)
    with zipfile.ZipFile(archive, "w") as stream:
        for index in range(8):
            image = io.BytesIO()
            Image.fromarray(noise.integers(0, 256, (700, 700, 3), np.uint8)).save(image, "PNG")
            stream.writestr(f"{'ab'[index % 2]}/{index}.png", image.getvalue())
    assert archive.stat().st_size > 10_000_000  # more than a web socket takes by default
    page.press("New dataset …")
    page.choose("Source", "Upload of a .zip")
    page.upload("Choose a .zip file", archive)
    page.until_says("zoo.zip has been uploaded", ".digits-status")
    page.until_says("Chosen: zoo.zip, ")
    assert page.count("[title=null]") == 0
    page.press("Make the dataset")
    page.until_says("The dataset zoo is ready: 8 images.", ".digits-status")

    page.press("New dataset …")
    page.choose("Source", "Upload of images, class by class")
    for label in ("cat", "dog"):
        page.fill("Class", label)
        page.upload("Choose images of this class", *sorted((pets / label).glob("*.jpg")))
        page.until_says(f"6 images of the class {label}.", ".digits-status")
    page.fill("Name", "by hand")
    page.press("Make the dataset")
    page.until_says("The dataset by hand is ready: 12 images.", ".digits-status")
    assert sum(datasets(page)["by hand"].counts.values()) == 12


def dataset_is_deleted_by_keyboard_after_a_question(page):
    page.choose("Dataset", "zoo (32 × 32 colour, 2 classes)")
    page.until_says("upload of zoo.zip")
    page.run("buttons('Delete …')[0].focus()")
    page.key("Space")
    page.until_says("Delete the dataset zoo for good?")
    for _ in range(30):
        if page.focused() == "Yes, delete it":
            break
        page.key("Tab")
    page.key("Space")
    page.until_says("The dataset zoo has been deleted.", ".digits-status")
    assert "zoo" not in datasets(page)


def test_datasets_are_made_built_uploaded_and_deleted(pets, tmp_path):
    with harness.page_in_chromium(tmp_path / "page") as page:
        digits_are_made_looked_at_and_previewed(page, tmp_path)
        folder_is_built_and_its_bad_image_listed(page, pets)
        archive_and_images_are_uploaded(page, pets, tmp_path)
        dataset_is_deleted_by_keyboard_after_a_question(page)
        page.check()  # what users do wrong is said, and no defect of the page
