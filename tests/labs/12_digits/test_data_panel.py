"""The data panel without a browser: what its controls do, and what it shows of good and bad datasets."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

from digits.data import build, building, scenes
from digits.data.augment import Augmentation
from digits.data.build_options import BuildOptions
from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.files import Lock, read_json, write_json
from digits.page import data_view, new_dataset
from digits.page.data_panel import EXAMPLE, DataPanel
from digits.page.page import Page
from digits.workspace import Workspace

PANELS = (("Data", "digits.page.data_panel", "DataPanel"), ("Solver", "digits.page.solver_panel", "SolverPanel"))


@pytest.fixture
def space(tmp_path):
    return Workspace(tmp_path / "space")


@pytest.fixture
def inline(monkeypatch):
    """Build in this process: what is built is the same, and errors are seen."""
    monkeypatch.setattr(building, "launch", lambda folder, *_, **__: build.build(folder))


def opened(space) -> tuple[Page, DataPanel]:
    page = Page(space, PANELS, open_at="Data")
    return page, page.panel("Data")


def said(page) -> str:
    return page._status.value


def shown(widget) -> str:
    """All text of a widget and those in it that is in sight."""
    if widget.layout.display == "none":
        return ""
    own = f"{getattr(widget, 'value', '')} {getattr(widget, 'description', '')}"
    return own + " ".join(shown(child) for child in getattr(widget, "children", ()))


def press(panel, label):
    def find(widget):
        if widget.layout.display == "none":
            return
        if getattr(widget, "description", None) == label:
            yield widget
        for child in getattr(widget, "children", ()):
            yield from find(child)

    (button,) = find(panel.widget)
    assert not button.disabled
    button.click()


def png(grey, size=(8, 8)):
    stream = io.BytesIO()
    Image.new("L", size, grey).save(stream, "PNG")
    return stream.getvalue()


def folder_of_pets(root):
    for label, base in (("cat", 0), ("<b>dog</b>", 100)):
        (root / label.replace("/", "_")).mkdir(parents=True)
        for index in range(8):
            (root / label.replace("/", "_") / f"{index}.png").write_bytes(png(base + index))
    return root


def test_digits_are_made_and_selected(space, monkeypatch):
    page, panel = opened(space)
    assert "A first network" in shown(panel.widget)
    press(panel, "Make the dataset")
    (dataset,) = Dataset.list(space)
    assert page.selected.dataset == dataset.id
    assert page.selected.datasets_version == 1
    assert "The dataset digits has been made" in said(page)
    text = shown(panel.widget)
    assert "1797 of 8 × 8 grey: 1259 to train on, 269 for validation, 269 for test" in text
    assert text.count("<img") >= data_view.AT_ONCE
    assert 'alt=""' not in text
    assert "Make the dataset" not in text
    monkeypatch.setattr(time, "strftime", lambda form: dataset.id[:15])  # made in the same second
    press(panel, "New dataset …")
    press(panel, "Make the dataset")
    assert len(Dataset.list(space)) == 2
    titles = [title for title, _ in panel._dataset.options]
    assert len(set(titles)) == 2
    assert all(title.startswith("digits (8 × 8 grey, 10 classes), 2") for title in titles)
    dataset.folder.rename(space.datasets / "20260102-030405-digits")
    page.tick()
    assert panel._dataset.options[1][0] == "digits (8 × 8 grey, 10 classes), 2026-01-02 03:04:05"


def test_folder_is_built_and_its_names_are_escaped(space, tmp_path, inline):
    page, panel = opened(space)
    form = panel._new
    root = folder_of_pets(tmp_path / "pets")
    (root / "cat" / "<script>.png").write_bytes(b"x")
    form._source.value = new_dataset.FOLDER
    form._path.value = str(root)
    form._width.value = form._height.value = 8
    press(panel, "Make the dataset")
    dataset = Dataset.open(space, page.selected.dataset)
    assert dataset.status == "ready"
    assert dataset.name == "pets"
    assert dataset.channels == 3
    text = shown(panel.widget)
    assert "<b>dog" not in text
    assert "&lt;b&gt;dog" in text
    assert "<script" not in text
    assert "1 file was skipped" in text
    assert "cat/&lt;script&gt;.png" in text


def test_wrong_input_is_said_and_the_form_stays_usable(space, tmp_path):
    page, panel = opened(space)
    form = panel._new
    form._source.value = new_dataset.FOLDER
    for path, why in (
        ("", "Give the path"),
        ("../imgs", "Give the whole path of ../imgs, from / or ~ on"),
        (str(tmp_path / "nothing"), "is not there"),
    ):
        form._path.value = path
        press(panel, "Make the dataset")
        assert why in said(page)
        assert 'role="alert"' in said(page)
    form._source.value = new_dataset.ARCHIVE
    press(panel, "Make the dataset")
    assert "Choose a .zip file first" in said(page)
    form._source.value = new_dataset.FILES
    press(panel, "Make the dataset")
    assert "two classes at least" in said(page)
    form._validation.value = form._test.value = 50
    form._source.value = new_dataset.DIGITS
    press(panel, "Make the dataset")
    assert "left to train on" in said(page)
    assert Dataset.list(space) == []


def test_wrong_folder_is_corrected_in_the_form_and_leaves_no_failed_try(space, tmp_path, inline):
    page, panel = opened(space)
    form = panel._new
    (tmp_path / "empty" / "cat").mkdir(parents=True)
    form._source.value = new_dataset.FOLDER
    form._path.value, form._name.value, form._seed.value = str(tmp_path / "empty"), "my pets", 7
    press(panel, "Make the dataset")
    assert "my pets was not built" in said(page)
    assert "cat/ was skipped: The folder is empty" in said(page)
    assert (form._path.value, form._name.value, form._seed.value) == (str(tmp_path / "empty"), "my pets", 7)
    form._path.value = str(folder_of_pets(tmp_path / "pets"))
    press(panel, "Make the dataset")
    (dataset,) = Dataset.list(space)
    assert (dataset.name, dataset.status, dataset.seed) == ("my pets", "ready", 7)
    assert "Make the dataset" not in shown(panel.widget)


def test_failed_try_stays_when_another_dataset_is_made(space, tmp_path, inline):
    _, panel = opened(space)
    form = panel._new
    (tmp_path / "empty" / "cat").mkdir(parents=True)
    form._source.value = new_dataset.FOLDER
    form._path.value = str(tmp_path / "empty")
    press(panel, "Make the dataset")
    form._source.value, form._name.value = new_dataset.DIGITS, ""
    press(panel, "Make the dataset")
    assert sorted(dataset.name for dataset in Dataset.list(space)) == ["digits", "empty"]


def test_wrong_number_does_not_stay_where_it_is_hidden(space):
    _, panel = opened(space)
    form = panel._new
    form._source.value = new_dataset.FOLDER
    form._height._line.set_state({"value": "2.5"})
    assert "no whole number" in form._height.wrong
    form._source.value = new_dataset.DIGITS
    press(panel, "Make the dataset")
    assert len(Dataset.list(space)) == 1


def test_broken_archive_is_refused_by_its_own_name_when_it_is_chosen(space, monkeypatch):
    page, panel = opened(space)
    form = panel._new
    form._source.value = new_dataset.ARCHIVE
    taken = list(uploaded(("letters.zip", zip_of_letters())))
    monkeypatch.setattr(type(form._zip), "value", property(lambda self: taken))
    page.guarded(form._take_archive)()
    assert "Chosen: letters.zip, 0.0 MB" in shown(panel.widget)
    taken[:] = uploaded(("<i>no.zip", b"no archive"))
    page.guarded(form._take_archive)()
    assert "&lt;i&gt;no.zip is no zip archive" in said(page)
    assert "letters.zip" not in shown(panel.widget)
    press(panel, "Make the dataset")
    assert "Choose a .zip file first" in said(page)
    assert form._zip.tooltip == ""  # the browser shows null for None


def zip_of_letters():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for index in range(8):
            archive.writestr(f"{'ab'[index % 2]}/{index}.png", png(index))
    return stream.getvalue()


def uploaded(*files):
    return tuple({"name": name, "type": "", "size": len(data), "content": memoryview(data)} for name, data in files)


def test_images_are_uploaded_class_by_class(space, inline, monkeypatch):
    page, panel = opened(space)
    form = panel._new
    form._source.value = new_dataset.FILES
    # A browser's upload sets more than the trait takes from Python; the handler is called as the browser would.
    taken = []
    monkeypatch.setattr(type(form._images), "value", property(lambda self: taken, lambda self, value: taken.clear()))
    for label in ("", "cat", "dog"):
        form._class.value = label
        taken[:] = uploaded(*((f"{index}.png", png(index)) for index in range(4)))
        page.guarded(form._take_images)(form._images)
        if not label:
            assert "A class needs a name" in said(page)
    assert "4 images of the class dog" in said(page)
    assert "Uploaded so far" in shown(panel.widget)
    press(panel, "Make the dataset")
    dataset = Dataset.open(space, page.selected.dataset)
    assert dataset.classes == ("cat", "dog")
    assert "Uploaded so far" not in shown(panel.widget)


def test_archive_is_uploaded(space, inline):
    page, panel = opened(space)
    panel._new._source.value = new_dataset.ARCHIVE
    panel._new._archive = ("letters.zip", zip_of_letters())
    press(panel, "Make the dataset")
    dataset = Dataset.open(space, page.selected.dataset)
    assert (dataset.name, dataset.source) == ("letters", "upload of letters.zip")


def begun(space, tmp_path, monkeypatch):
    """A dataset whose process has not come to run yet; the lock that it holds."""
    locks = []

    def start(folder, lock, *_, **__):
        locks.append(os.dup(lock.descriptor))

    monkeypatch.setattr(building, "launch", start)
    dataset = building.from_path(space, "Pets", folder_of_pets(tmp_path / "pets"), BuildOptions())
    return dataset, locks[0]


def test_building_is_followed_to_its_end(space, tmp_path, monkeypatch):
    ready = sklearn_digits(space)
    started, lock = begun(space, tmp_path, monkeypatch)
    page, panel = opened(space)
    panel._dataset.value = started.id
    assert "Being built" in shown(panel.widget)
    assert "<progress" in shown(panel.widget)
    assert page.selected.dataset == ready.id  # nothing trains on half a dataset
    page.selected.dataset = ""
    page.selected.dataset = ready.id  # another panel wants one that is ready
    assert panel._shown.id == started.id
    description = read_json(started.folder / "dataset.json")
    write_json(started.folder / "dataset.json", {**description, "progress": 0.4, "message": "40 of 100 files read."})
    page.tick()
    assert 'value="0.4000"' in shown(panel.widget)
    press(panel, "Stop building")
    assert (started.folder / "wanted").read_text() == "stop"
    build.build(started.folder)
    os.close(lock)
    page.tick()
    assert "Not built" in shown(panel.widget)
    assert "Pets was not built. Stopped before it was done" in said(page)
    version = page.selected.datasets_version
    monkeypatch.setattr(building, "launch", lambda folder, *_, **__: build.build(folder))
    press(panel, "Build it again")
    assert page.selected.dataset == started.id
    assert page.selected.datasets_version > version
    assert "Build it again" not in shown(panel.widget)
    assert "The dataset Pets is ready: 16 images." in said(page)


def test_killed_and_damaged_datasets_leave_the_others_usable(space, tmp_path, monkeypatch):
    killed, lock = begun(space, tmp_path, monkeypatch)
    os.close(lock)
    damaged = sklearn_digits(space, "damaged")
    (damaged.folder / "dataset.json").write_text("{")
    broken = sklearn_digits(space, "cut off")
    (broken.folder / "train_images.npy").write_bytes(b"")
    good = sklearn_digits(space, "good")
    page, panel = opened(space)
    assert page.selected.dataset == good.id
    for dataset, words in ((killed, "was killed"), (damaged, "is damaged"), (broken, "")):
        panel._dataset.value = dataset.id
        assert words in shown(panel.widget)
    assert "train_images.npy" in said(page)
    panel._dataset.value = good.id
    assert page.selected.dataset == good.id
    panel._dataset.value = damaged.id
    press(panel, "Delete …")
    press(panel, "Yes, delete it")
    assert damaged.id not in [dataset.id for dataset in Dataset.list(space)]


def test_deletion_is_asked_for_and_never_under_a_run(space):
    dataset = sklearn_digits(space)
    run = space.create("runs", "trains on it")
    spec = {
        "id": run.name, "name": "my <run>", "kind": "classification", "dataset": dataset.id, "start": None,
        "network": {"name": "lenet"}, "solver": {},
    }  # fmt: skip
    write_json(run / "run.json", spec)
    page, panel = opened(space)
    press(panel, "Delete …")
    assert "One run was trained on it" in shown(panel.widget)
    press(panel, "No, keep it")
    assert Dataset.open(space, dataset.id) == dataset
    with Lock(run / "lock"):
        press(panel, "Delete …")
        press(panel, "Yes, delete it")
        assert "my &lt;run&gt; trains on digits. Stop it, then delete" in said(page)
    press(panel, "Delete …")
    press(panel, "Yes, delete it")
    assert Dataset.list(space) == []
    assert page.selected.dataset == ""
    assert "A first network" in shown(panel.widget)


def test_dataset_deleted_elsewhere_is_no_longer_shown(space):
    first, second = sklearn_digits(space, "first"), sklearn_digits(space, "second")
    page, _ = opened(space)
    assert page.selected.dataset == second.id
    second.delete()
    page.tick()
    assert page.selected.dataset == first.id


def test_images_are_shown_by_part_and_class(space):
    dataset = sklearn_digits(space)
    page, panel = opened(space)
    panel._part.value = "test"
    panel._class.value = 7
    of_class = int((dataset.labels("test") == 7).sum())
    assert f"1 to 24 of {of_class} images" in panel._images.value
    assert panel._images.value.count("<strong>7</strong>") == 24
    assert panel._before.disabled
    press(panel, "Show the next images")
    assert f"25 to {of_class} of {of_class}" in panel._images.value
    assert panel._more.disabled
    press(panel, "Show the images before")
    assert f"1 to 24 of {of_class}" in panel._images.value
    assert said(page) == ""


def test_preview_shows_the_solvers_augmentation(space):
    sklearn_digits(space)
    page, panel = opened(space)
    assert "The solver says none" in panel._augmented.value
    press(panel, "Use this augmentation")
    assert Augmentation.from_dict(page.selected.solver["augment"]) == EXAMPLE
    assert "What the solver says: shift 0.1, rotation 15" in panel._augmented.value
    before = panel._augmented.value
    press(panel, "Show other images")
    assert panel._augmented.value != before
    page.selected.solver = {**page.selected.solver, "augment": {"flip": "both"}}
    assert "What the solver says: flip both" in panel._augmented.value


def test_preview_is_what_training_sees(space):
    dataset = sklearn_digits(space)
    seen = data_view.augmented(dataset, [5, 9], EXAMPLE, seed=3)
    version = EXAMPLE.apply(np.array(dataset.images("train")[[9]]), np.array([9]), 2, 3)[0]
    assert data_view._picture(version, f"{dataset.name_of('train', 9)} in epoch 3") in seen


def test_large_datasets_are_shown_in_part(space):
    classes = [f"class {index}" for index in range(300)]
    images = np.zeros((300, 200, 300, 3), np.uint8)
    parts = {"train": {"images": images, "labels": np.arange(300)}}
    skipped = [{"file": f"{index}.png", "reason": "bad"} for index in range(1000)]
    dataset = Dataset.create(space, "large", "classification", classes, parts, seed=0, source="a test", skipped=skipped)
    assert "100 more classes are not listed" in data_view.classes(dataset)
    assert "1000 files were skipped" in data_view.skipped(dataset)
    assert "800 more are not listed" in data_view.skipped(dataset)
    assert len(data_view.images(dataset, "train", range(24))) < 60_000  # pictures are reduced
    assert "no such images in test" in data_view.images(dataset, "test", [])


def test_example_of_the_resize_modes(space):
    _, panel = opened(space)
    panel._new._source.value = new_dataset.FOLDER
    press(panel, "Show an example")
    assert panel._new._example.value.count("<figure") == 5


@pytest.mark.parametrize("kind", ["detection", "segmentation"])
def test_scenes_are_shown_with_what_is_in_them(space, kind):
    scenes.build(space, kind, "scenes", counts={"train": 6, "validation": 2, "test": 2})
    page, panel = opened(space)
    text = shown(panel.widget)
    assert "Classes: 0, 1, 2" in text
    assert "Of class" not in text
    assert said(page) == ""
    (dataset,) = Dataset.list(space)
    boxes_or_masks = dataset.boxes("train")[0][:, 0] if kind == "detection" else dataset.masks("train")[0].ravel() - 1.0
    for value in boxes_or_masks[boxes_or_masks >= 0]:
        assert dataset.classes[int(value)] in panel._images.value.split("</figcaption>")[0].split("<figcaption>")[1]


def test_empty_scene_says_so(space):
    images, masks = np.zeros((1, 16, 16, 1), np.uint8), np.zeros((1, 16, 16), np.uint8)
    boxes = np.full((1, 0, 5), -1.0)
    for kind, target in (("segmentation", {"masks": masks}), ("detection", {"boxes": boxes})):
        parts = {"train": {"images": images, **target}}
        dataset = Dataset.create(space, "empty", kind, ["a", "b"], parts, seed=0, source="a test")
        assert "train 0: nothing" in data_view.images(dataset, "train", [0])


def test_html_holds_no_script(space, tmp_path):
    hostile = '"><img src=x onerror=alert(1)>'
    parts = {"train": {"images": np.zeros((2, 8, 8, 1), np.uint8), "labels": [0, 1], "names": [hostile] * 2}}
    skipped = [{"file": hostile, "reason": hostile}]
    Dataset.create(
        space, hostile, "classification", [hostile, "b"], parts, seed=0, source=hostile, resize=hostile, skipped=skipped
    )
    _, panel = opened(space)
    for note in (panel._state, panel._facts, panel._classes, panel._images, panel._augmented):
        assert "onerror=alert(1)>" not in note.value
    assert json.dumps(panel._facts.value).count("&lt;img") >= 3


@pytest.mark.parametrize("kind", ["detection", "segmentation"])
def test_false_count_of_a_copied_dataset_is_said_and_costs_no_memory(space, kind):
    dataset = scenes.build(space, kind, counts={"train": 3, "validation": 1, "test": 0})
    described = read_json(dataset.folder / "dataset.json")
    write_json(dataset.folder / "dataset.json", {**described, "counts": {**described["counts"], "train": 10**13}})
    page = Page(space, open_at="Data")
    page.tick()
    assert "where dataset.json promises" in page._status.value
    assert not (space.root / "page.log").exists()
