"""Datasets that are written and read, and damaged ones that break nothing else."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.files import DigitsError, Lock, read_json, save_array, write_json
from digits.workspace import Workspace

RNG = np.random.default_rng(17)


@pytest.fixture
def space(tmp_path):
    return Workspace(tmp_path)


def classification(n=6):
    return {
        "images": RNG.integers(0, 256, (n, 5, 4, 3), np.uint8),
        "labels": np.arange(n) % 2,
        "names": [f"ä{index}.png" for index in range(n)],
    }


def create(space, parts, kind="classification", classes=("a", "b")):
    return Dataset.create(space, "Test set", kind, classes, parts, seed=3, source="a test")


def test_dataset_is_read_as_it_was_written(space):
    train, test = classification(), classification(2)
    dataset = create(space, {"train": train, "test": test})
    again = Dataset.open(space, dataset.id)
    assert again == dataset
    assert (again.status, again.progress, again.name, again.seed) == ("ready", 1.0, "Test set", 3)
    assert again.counts == {"train": 6, "validation": 0, "test": 2}
    assert again.shape == (5, 4, 3)
    assert np.array_equal(again.images("train"), train["images"])
    assert np.array_equal(again.labels("test"), test["labels"])
    assert again.labels("test").dtype == np.int64
    assert again.images("validation").shape == (0, 5, 4, 3)
    assert again.names("train") == train["names"]
    np.testing.assert_allclose(again.mean(), train["images"].mean(axis=0), rtol=1e-6)
    assert not again.images("train").flags.writeable


def test_boxes_and_masks_come_back(space):
    images = RNG.integers(0, 256, (3, 6, 7, 1), np.uint8)
    boxes = np.full((3, 2, 5), -1.0)
    boxes[0, 0] = [1, 2.5, 3, 2, 2]
    masks = RNG.integers(0, 3, (3, 6, 7), np.uint8)
    found = create(space, {"train": {"images": images, "boxes": boxes}}, "detection")
    assert np.array_equal(found.boxes("train"), boxes.astype(np.float32))
    assert found.boxes("test").shape == (0, 2, 5)
    drawn = create(space, {"train": {"images": images, "masks": masks}}, "segmentation")
    assert np.array_equal(drawn.masks("train"), masks)
    with pytest.raises(DigitsError, match="for segmentation and has no labels"):
        drawn.labels("train")
    assert [d.id for d in Dataset.list(space, "detection")] == [found.id]


IMAGES = np.zeros((4, 8, 8, 1), np.uint8)


@pytest.mark.parametrize(
    ("kind", "parts", "why"),
    [
        ("regression", {"train": {}}, "for classification, detection, segmentation"),
        ("classification", {"test": {"images": IMAGES, "labels": [0, 0, 1, 1]}}, "needs train"),
        ("classification", {"train": {"images": IMAGES}}, "needs images and labels"),
        ("classification", {"train": {"images": IMAGES, "labels": [0, 0, 1]}}, "4 images, but not as many labels"),
        ("classification", {"train": {"images": IMAGES, "labels": [0, 0, 1, 2]}}, "classes that do not exist"),
        ("classification", {"train": {"images": IMAGES, "labels": [0, 0, 1, -1]}}, "classes that do not exist"),
        ("classification", {"train": {"images": IMAGES, "labels": [0, 0, 1, 0.5]}}, "labels of train must"),
        ("classification", {"train": {"images": IMAGES / 255, "labels": [0, 0, 1, 1]}}, "images of train must"),
        ("classification", {"train": {"images": IMAGES[..., 0], "labels": [0, 0, 1, 1]}}, "must have 4 dimensions"),
        ("classification", {"train": {"images": IMAGES[:0], "labels": np.zeros(0, int)}}, "no image to train on"),
        ("detection", {"train": {"images": IMAGES, "boxes": np.full((4, 1, 5), np.nan)}}, "finite numbers"),
        ("detection", {"train": {"images": IMAGES, "boxes": np.full((4, 1, 5), 2.0)}}, "classes that do not exist"),
        ("segmentation", {"train": {"images": IMAGES, "masks": np.full((4, 8, 8), 3)}}, "classes that do not exist"),
        ("segmentation", {"train": {"images": IMAGES, "masks": np.zeros((4, 8, 9), int)}}, "Masks of train"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(space, kind, parts, why):
    with pytest.raises(DigitsError, match=why):
        create(space, parts, kind)
    assert os.listdir(space.datasets) == []


@pytest.mark.parametrize(("name", "kept"), [("  a\x1b[1m\n", "a�[1m�"), (" ", "dataset"), ("x" * 5000, "x" * 100)])
def test_name_is_made_fit_to_be_shown(space, name, kept):
    parts = {"train": classification()}
    assert Dataset.create(space, name, "classification", ["a", "b"], parts, seed=0, source="a test").name == kept


def test_classes_need_different_names(space):
    with pytest.raises(DigitsError, match="each of another name"):
        create(space, {"train": classification()}, classes=("a", "a"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value.pop("classes"),
        lambda value: value.update(counts={"train": -1, "validation": 0, "test": 0}),
        lambda value: value.update(image=[8, 8, 1]),
        lambda value: value.update(kind="<b>"),
        lambda value: value.update(status="perfect"),
        lambda value: value.update(skipped=["a"]),
        lambda value: value.update(progress="half"),
        lambda value: value.update(seed=1e400),
    ],
)
def test_damaged_description_spoils_no_list(space, damage):
    good = create(space, {"train": classification()})
    bad = create(space, {"train": classification()})
    value = read_json(bad.folder / "dataset.json")
    damage(value)
    (bad.folder / "dataset.json").write_text(json.dumps(value))
    listed = {dataset.id: dataset for dataset in Dataset.list(space)}
    assert listed[good.id] == good
    assert listed[bad.id].status == "damaged"
    assert "is damaged" in listed[bad.id].message
    assert Dataset.list(space, "classification") == [good]
    with pytest.raises(DigitsError, match="is damaged"):
        Dataset.open(space, bad.id)
    listed[bad.id].delete()
    assert Dataset.list(space) == [good]


def test_arrays_that_break_the_promise_are_refused(space):
    dataset = create(space, {"train": classification()})
    save_array(dataset.folder / "train_images.npy", np.zeros((6, 5, 4, 1), np.uint8))
    with pytest.raises(DigitsError, match=r"train_images\.npy of .* holds uint8 \(6, 5, 4, 1\)"):
        dataset.images("train")
    save_array(dataset.folder / "train_labels.npy", np.full(6, 7))
    with pytest.raises(DigitsError, match="classes that do not exist"):
        dataset.labels("train")
    (dataset.folder / "test_images.npy").unlink()
    with pytest.raises(DigitsError, match=r"Cannot read test_images\.npy"):
        dataset.images("test")
    with pytest.raises(DigitsError, match="train, validation, test"):
        dataset.images("../train")


def test_building_without_a_builder_is_killed(space):
    dataset = create(space, {"train": classification()})
    description = read_json(dataset.folder / "dataset.json")
    write_json(dataset.folder / "dataset.json", {**description, "status": "building", "progress": 0.4})
    assert Dataset.open(space, dataset.id).status == "killed"
    with pytest.raises(DigitsError, match="not ready"):
        Dataset.open(space, dataset.id).images("train")
    with Lock(dataset.folder / "lock"):
        assert Dataset.open(space, dataset.id).status == "building"
        with pytest.raises(DigitsError, match="is being built"):
            dataset.delete()
    dataset.delete()
    assert Dataset.list(space) == []


def test_folder_without_description_is_listed_once_it_is_old(space):
    folder = space.create("datasets", "new")
    assert Dataset.list(space) == []
    os.utime(folder, (0, 0))
    assert [dataset.status for dataset in Dataset.list(space)] == ["damaged"]


def test_failed_creation_leaves_nothing(space, monkeypatch):
    def full(*_):
        raise DigitsError("the disk is full")

    monkeypatch.setattr("digits.data.dataset.finish", full)
    with pytest.raises(DigitsError, match="the disk is full"):
        create(space, {"train": classification()})
    assert os.listdir(space.datasets) == []


def test_sklearn_digits_are_all_there(space):
    dataset = sklearn_digits(space, seed=5)
    assert sum(dataset.counts.values()) == 1797
    assert dataset.shape == (8, 8, 1)
    assert dataset.classes == tuple("0123456789")
    assert dataset.counts["validation"] == dataset.counts["test"] == 269
    images = np.concatenate([dataset.images(part) for part in dataset.counts])
    assert len(np.unique(images)) == 17  # their grey levels
    assert (images.min(), images.max()) == (0, 255)
    names = [name for part in dataset.counts for name in dataset.names(part)]
    assert len(set(names)) == 1797


def test_sklearn_digits_keep_label_and_image_together(space):
    from sklearn.datasets import load_digits

    bunch = load_digits()
    dataset = sklearn_digits(space)
    index = int(dataset.names("test")[7].split()[1])
    assert dataset.labels("test")[7] == bunch.target[index]
    np.testing.assert_array_equal(np.rint(dataset.images("test")[7, :, :, 0] / 255 * 16), bunch.images[index])


def test_sklearn_digits_of_another_size(space):
    assert sklearn_digits(space, size=12).images("train").shape[1:] == (12, 12, 1)
    with pytest.raises(DigitsError, match="from 1 to"):
        sklearn_digits(space, size=0)
    with pytest.raises(DigitsError, match="left to train on"):
        sklearn_digits(space, validation=0.6, test=0.4)
