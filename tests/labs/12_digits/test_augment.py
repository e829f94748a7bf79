"""Changes that are known exactly, and draws that depend on seed, epoch and image alone."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from digits.data import augment
from digits.data.augment import LIMITS, Augmentation
from digits.files import DigitsError

SEED = 4
RNG = np.random.default_rng(SEED)
IMAGES = RNG.integers(0, 256, (40, 9, 12, 3), np.uint8)
INDICES = np.arange(40)
ALL = Augmentation(shift=0.1, rotation=20, scale=0.2, flip="both", noise=8, contrast=0.3)


def test_none_changes_nothing_and_copies():
    result = Augmentation().apply(IMAGES, INDICES, 0, SEED)
    assert np.array_equal(result, IMAGES)
    assert not np.shares_memory(result, IMAGES)
    assert Augmentation.from_dict({}).is_none
    assert Augmentation.from_dict(None).is_none


def test_image_depends_on_seed_epoch_and_index_alone():
    whole = ALL.apply(IMAGES, INDICES, 3, SEED)
    order = RNG.permutation(40)[:7]
    assert np.array_equal(ALL.apply(IMAGES[order], order, 3, SEED), whole[order])
    assert np.array_equal(ALL.apply(IMAGES[5:6], INDICES[5:6], 3, SEED)[0], whole[5])
    for other in (ALL.apply(IMAGES, INDICES, 4, SEED), ALL.apply(IMAGES, INDICES, 3, SEED + 1)):
        assert (other != whole).any(axis=(1, 2, 3)).all()


def test_many_images_are_changed_a_few_at_a_time(monkeypatch):
    masks, boxes = IMAGES[..., 0], np.full((40, 2, 5), 3, np.float32)
    whole = ALL.apply(IMAGES, INDICES, 3, SEED, masks, boxes)
    monkeypatch.setattr(augment, "_PIXELS_TOGETHER", 9 * 12 * 7 + 5)  # seven images and a bit
    for at_once, in_pieces in zip(whole, ALL.apply(IMAGES, INDICES, 3, SEED, masks, boxes), strict=True):
        assert np.array_equal(at_once, in_pieces)
    monkeypatch.setattr(augment, "_PIXELS_TOGETHER", 1)
    assert np.array_equal(ALL.apply(IMAGES, INDICES, 3, SEED), whole[0])


def test_two_images_of_the_same_pixels_differ():
    result = ALL.apply(IMAGES[[0, 0]], np.array([0, 1]), 0, SEED)
    assert not np.array_equal(result[0], result[1])


@pytest.mark.parametrize(
    ("flip", "versions"),
    [
        ("horizontal", {(1, 1), (1, -1)}),
        ("vertical", {(1, 1), (-1, 1)}),
        ("both", {(1, 1), (1, -1), (-1, 1), (-1, -1)}),
    ],
)
def test_flips_are_exact_and_each_occurs(flip, versions):
    seen = set()
    for image, result in zip(IMAGES, Augmentation(flip=flip).apply(IMAGES, INDICES, 0, SEED), strict=True):
        match = [(v, h) for v in (1, -1) for h in (1, -1) if np.array_equal(image[::v, ::h], result)]
        assert len(match) == 1
        seen.update(match)
    assert seen == versions


def test_shift_moves_by_what_was_drawn():
    augmentation = Augmentation(shift=0.5)
    ramp = np.broadcast_to((10 * np.arange(21, dtype=np.uint8))[None, None, :, None], (40, 21, 21, 1))
    result = augmentation.apply(ramp, INDICES, 0, SEED)
    for index in range(40):
        draw = np.random.default_rng([SEED, 0, index]).random(7)
        expected = 10 * (np.arange(21) - 0.5 * (2 * draw[1] - 1) * 21)
        assert np.abs(result[index, 10, :, 0] - expected.clip(0, 200)).max() <= 0.5 + 1e-4


def test_quarter_turn_is_exact(monkeypatch):
    square = IMAGES[:, :, :9]
    monkeypatch.setattr(np.random, "default_rng", lambda seed: FixedDraws(1.0))
    turned = Augmentation(rotation=90).apply(square, INDICES, 0, SEED)
    assert np.array_equal(turned, np.rot90(square, -1, axes=(1, 2))) or np.array_equal(
        turned, np.rot90(square, 1, axes=(1, 2))
    )
    monkeypatch.setattr(np.random, "default_rng", lambda seed: FixedDraws(0.0))
    assert np.array_equal(Augmentation(rotation=180).apply(square, INDICES, 0, SEED), square[:, ::-1, ::-1])


class FixedDraws:
    def __init__(self, value):
        self.value = value

    def random(self, count):
        return np.full(count, self.value)


def test_scale_enlarges_about_the_middle(monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", lambda seed: FixedDraws(1.0))
    image = np.zeros((1, 9, 9, 1), np.uint8)
    image[0, 3:6, 3:6] = 255
    result = Augmentation(scale=0.9).apply(image, np.array([0]), 0, SEED)[0, :, :, 0]
    assert (result[2:7, 2:7] > 220).all()  # pixels 2 from the middle come from 2 / 1.9
    assert result[0].max() == result[:, 0].max() == 0
    assert np.array_equal(result, result[::-1, ::-1])


def test_contrast_keeps_the_mean_and_changes_the_spread():
    grey = (96 + IMAGES // 4).astype(np.uint8)
    result = Augmentation(contrast=0.5).apply(grey, INDICES, 0, SEED).astype(float)
    np.testing.assert_allclose(result.mean(axis=(1, 2, 3)), grey.mean(axis=(1, 2, 3)), atol=0.2)
    ratio = result.std(axis=(1, 2, 3)) / grey.std(axis=(1, 2, 3))
    assert 0.5 <= ratio.min() < 0.8
    assert 1.2 < ratio.max() <= 1.51


def test_noise_has_the_deviation_asked_for():
    grey = np.full((40, 30, 30, 1), 128, np.uint8)
    result = Augmentation(noise=10).apply(grey, INDICES, 0, SEED).astype(float)
    assert abs(result.mean() - 128) < 0.3
    assert abs(result.std() - 10) < 0.2


def test_masks_and_boxes_move_with_the_image():
    """An image of one bright rectangle, its mask and its box still agree after each change."""
    n = 60
    images = np.zeros((n, 40, 48, 1), np.uint8)
    boxes = np.full((n, 2, 5), -1, np.float32)
    rng = np.random.default_rng(SEED)
    for index in range(n):
        x, y, w, h = rng.integers([10, 10, 8, 8], [25, 20, 14, 14])
        images[index, y : y + h, x : x + w] = 255
        boxes[index, 0] = [1, x, y, w, h]
    masks = (images[..., 0] > 0).astype(np.uint8) * 2
    augmentation = Augmentation(shift=0.3, scale=0.3, flip="both")
    changed, moved_masks, moved_boxes = augmentation.apply(images, np.arange(n), 0, SEED, masks, boxes)
    assert set(np.unique(moved_masks)) == {0, 2}
    for image, mask, (box, none) in zip(changed[..., 0], moved_masks, moved_boxes, strict=True):
        assert none[0] == -1
        rows, columns = np.nonzero(mask)
        if box[0] == -1:
            continue
        found = [columns.min(), rows.min(), columns.max() + 1 - columns.min(), rows.max() + 1 - rows.min()]
        np.testing.assert_allclose(box[1:], found, atol=1.01)
        inside = np.zeros_like(mask, bool)
        inside[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
        assert ((image > 127) & inside == (mask > 0)).mean() > 0.97
    assert (moved_boxes[:, 0, 0] == 1).sum() > n // 2


def test_turned_box_holds_its_corners(monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", lambda seed: FixedDraws(1.0))
    images = np.zeros((1, 20, 20, 1), np.uint8)
    boxes = np.array([[[0, 4, 8, 12, 4]]], np.float32)
    _, quarter = Augmentation(rotation=90).apply(images, np.array([0]), 0, SEED, boxes=boxes)
    np.testing.assert_allclose(quarter[0, 0], [0, 8, 4, 4, 12], atol=1e-5)
    _, eighth = Augmentation(rotation=45).apply(images, np.array([0]), 0, SEED, boxes=boxes)
    side = 16 / np.sqrt(2)
    np.testing.assert_allclose(eighth[0, 0], [0, 10 - side / 2, 10 - side / 2, side, side], atol=1e-5)


def test_box_that_leaves_the_image_is_no_box(monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", lambda seed: FixedDraws(1.0))
    images = np.zeros((1, 20, 20, 1), np.uint8)
    boxes = np.array([[[3, 16, 2, 4, 4], [2, 6, 2, 6, 6]]], np.float32)
    _, moved = Augmentation(shift=0.5).apply(images, np.array([0]), 0, SEED, boxes=boxes)
    assert moved[0, 0].tolist() == [-1, 0, 0, 0, 0]
    assert moved[0, 1].tolist() == [2, 16, 12, 4, 6]


def test_empty_batch():
    assert ALL.apply(IMAGES[:0], INDICES[:0], 0, SEED).shape == (0, 9, 12, 3)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [-0.01, 1000, "1", None, float("nan"), True])
def test_number_out_of_range_says_the_range(name, value):
    with pytest.raises(DigitsError, match=rf"{name} is .* from 0 to {LIMITS[name][0]:g}"):
        Augmentation.from_dict({name: value})


def test_unknown_names_are_refused():
    with pytest.raises(DigitsError, match=r"no blur\. It has shift, rotation"):
        Augmentation.from_dict({"blur": 1})
    with pytest.raises(DigitsError, match="Choose one of none, horizontal"):
        Augmentation.from_dict({"flip": "sideways"})
    with pytest.raises(DigitsError, match="not as"):
        Augmentation.from_dict([1])
    assert Augmentation.from_dict(asdict(ALL)) == ALL
