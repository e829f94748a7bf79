"""Synthetic scenes: the same seed, the same arrays; boxes fit masks; datasets as agreed; bad options named."""

from __future__ import annotations

import numpy as np
import pytest

from digits.data import scenes
from digits.data.scene_drawing import NOTHING, SceneOptions, draw_scene, pack_boxes, unpack_boxes
from digits.files import DigitsError
from digits.workspace import Workspace

COUNTS = {"train": 6, "validation": 3, "test": 2}


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def drawn(count=40, seed=1, **options):
    return list(scenes.draw_part("train", count, seed, SceneOptions(**options)))


def test_a_box_is_the_smallest_around_its_digit():
    boxes = 0
    for scene in drawn(most=1):
        for label, x, y, width, height in scene.boxes:
            rows, columns = np.nonzero(scene.mask == label + 1)
            assert (rows.min(), columns.min()) == (y, x)
            assert (rows.max() + 1, columns.max() + 1) == (y + height, x + width)
            boxes += 1
    assert boxes == 40


def test_mask_and_boxes_tell_of_the_same_classes():
    for scene in drawn():
        assert set(np.unique(scene.mask)) - {0} == {int(label) + 1 for label in scene.boxes[:, 0]}
        assert scene.boxes.dtype == np.float32
        assert scene.mask.dtype == scene.image.dtype == np.uint8


def test_a_digit_is_brighter_than_the_ground_and_the_ground_is_textured():
    for scene in drawn(clutter=0):
        ground, ink = scene.image[scene.mask == 0], scene.image[scene.mask > 0]
        assert ink.mean() > ground.mean() + 40
        assert ground.std() > 3


def test_sizes_and_numbers_of_digits_are_those_asked_for():
    found = drawn(200, fewest=2, most=4, smallest=10, largest=20)
    heights = np.concatenate([scene.boxes[:, 4] for scene in found])
    counts = [len(scene.boxes) for scene in found]
    assert set(counts) == {2, 3, 4}
    # What more than half of the ink covers may be a pixel more or less than the digit's height.
    assert 8 <= heights.min() <= 11
    assert 19 <= heights.max() <= 22
    assert {int(label) for scene in found for label in scene.boxes[:, 0]} == set(range(10))


def test_a_full_scene_leaves_digits_out_instead_of_piling_them_up():
    scene = drawn(1, fewest=20, most=20, height=32, width=32, smallest=16, largest=16)[0]
    assert 1 <= len(scene.boxes) < 20


def test_scenes_depend_on_seed_part_and_number_alone():
    first, again, other = drawn(4), drawn(2), drawn(2, seed=2)
    for one, same in zip(first, again, strict=False):
        np.testing.assert_array_equal(one.image, same.image)
        np.testing.assert_array_equal(one.mask, same.mask)
    assert (first[0].image != other[0].image).any()
    assert (first[0].image != first[1].image).any()
    assert (next(scenes.draw_part("test", 1, 1)).image != first[0].image).any()


def test_parts_share_no_digit():
    parts = [scenes._digits(part, 5) for part in scenes.PARTS]
    rows = [{image.tobytes() for image in images} for images, _ in parts]
    assert rows[0].isdisjoint(rows[1] | rows[2])
    assert rows[1].isdisjoint(rows[2])
    assert sum(len(images) for images, _ in parts) == 1797
    assert [round(len(images) / 1797, 2) for images, _ in parts] == [0.7, 0.15, 0.15]


@pytest.mark.parametrize("kind", scenes.KINDS)
def test_a_dataset_is_what_the_contract_says(workspace, kind):
    told = []
    options = SceneOptions(height=40, width=48)
    dataset = scenes.build(workspace, kind, "my scenes", COUNTS, 3, options, told.append)
    assert [dataset.id] == workspace.ids("datasets")
    assert (dataset.kind, dataset.status, dataset.shape) == (kind, "ready", (40, 48, 1))
    assert dataset.classes == tuple("0123456789")
    assert dataset.counts == COUNTS
    assert dataset.source == "scenes of 1 to 5 digits, 12 to 24 pixels high"
    assert told[-1] == 1.0
    for part, count in COUNTS.items():
        expected = list(scenes.draw_part(part, count, 3, options))
        np.testing.assert_array_equal(dataset.images(part)[..., 0], [scene.image for scene in expected])
        if kind == "segmentation":
            np.testing.assert_array_equal(dataset.masks(part), [scene.mask for scene in expected])
        else:
            for row, scene in zip(dataset.boxes(part), expected, strict=True):
                np.testing.assert_array_equal(unpack_boxes(row), scene.boxes)


def test_only_the_test_part_may_be_empty(workspace):
    dataset = scenes.build(workspace, "detection", counts={"train": 1, "validation": 1, "test": 0})
    assert dataset.images("test").shape == (0, 64, 64, 1)
    assert dataset.boxes("test").shape == (0, 5, 5)
    for part in ("train", "validation"):
        with pytest.raises(DigitsError, match=f"{part} has 0 scenes; give a whole number from 1 to 100000"):
            scenes.build(workspace, "detection", counts={"train": 1, "validation": 1, "test": 0, part: 0})


def test_cancelling_leaves_nothing_behind(workspace):
    asked = iter([False, False, True])
    with pytest.raises(DigitsError, match="Building scenes was cancelled"):
        scenes.build(workspace, "detection", counts=COUNTS, cancelled=lambda: next(asked))
    assert workspace.ids("datasets") == []


def test_packed_boxes_come_back():
    rows = [np.array([[1, 2, 3, 4, 5]], np.float32), np.zeros((0, 5), np.float32)]
    packed = pack_boxes(rows, 3)
    assert packed.shape == (2, 3, 5)
    assert (packed[0, 1:, 0] == NOTHING).all()
    for row, expected in zip(packed, rows, strict=True):
        np.testing.assert_array_equal(unpack_boxes(row), expected)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"height": 10}, "height is 10; give a whole number from 24 to 512"),
        ({"most": 2.5}, "most is 2.5; give a whole number from 1 to 20"),
        ({"fewest": True}, "fewest is True"),
        ({"fewest": 5, "most": 3}, "fewest digits is 5, above most, 3"),
        ({"smallest": 30, "largest": 20}, "digits from 30 to 20 pixels do not fit"),
        ({"largest": 65}, "digits from 12 to 65 pixels do not fit a scene of 64 × 64"),
        ({"noise": -1.0}, "noise is -1.0; give a standard deviation from 0 to 64"),
        ({"noise": float("nan")}, "noise is nan"),
    ],
)
def test_wrong_options_are_named(wrong, said):
    with pytest.raises(DigitsError, match=said):
        SceneOptions(**wrong)


def test_wrong_kind_and_seed_are_named(workspace):
    with pytest.raises(DigitsError, match="detection or segmentation, not for 'classification'"):
        scenes.build(workspace, "classification", counts=COUNTS)
    with pytest.raises(DigitsError, match="The seed is -1; give a whole number from 0 on"):
        scenes.build(workspace, "detection", counts=COUNTS, seed=-1)
    assert workspace.ids("datasets") == []


def test_one_scene_takes_scikit_learns_arrays():
    random = np.random.default_rng(0)
    digits = random.integers(0, 17, (3, 8, 8)).astype(float)
    scene = draw_scene(random, digits, np.array([4, 4, 4]), SceneOptions(fewest=1))
    assert set(scene.boxes[:, 0]) == {4.0}
