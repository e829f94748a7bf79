"""Boxes and masks in pictures: right, wrong and missed are told apart, and each patch of a mask has its word."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from digits.tasks import drawing

CLASSES = tuple("0123456789")
GREY = np.full((64, 64, 1), 60, np.uint8)
BOX = [3, 16, 24, 20, 24]


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def count(png: bytes, colour: tuple[int, int, int]) -> int:
    return int((pixels(png) == colour).all(axis=2).sum())


def drawn(truth: list, found: list) -> bytes:
    truth_rows = np.array(truth, np.float32).reshape(-1, 5)
    return drawing.boxes(GREY, truth_rows, np.array(found, np.float32).reshape(-1, 6), CLASSES)


def test_right_wrong_and_missed_have_lines_of_their_own():
    right, wrong, missed = drawn([BOX], [[*BOX, 0.9]]), drawn([], [[*BOX, 0.9]]), drawn([BOX], [])
    for png, colour in ((right, drawing.RIGHT), (wrong, drawing.WRONG), (missed, drawing.MISSED)):
        assert count(png, colour) > 200
        for other in {drawing.RIGHT, drawing.WRONG, drawing.MISSED} - {colour}:
            assert count(png, other) == 0
    both = drawn([BOX], [[5, *BOX[1:], 0.9]])  # of a wrong class
    assert count(both, drawing.WRONG) > 200
    assert count(both, drawing.MISSED) > 200


def test_a_missed_box_is_dashed():
    whole, dashed = (pixels(drawn(*each))[4 * 24, 4 * 16 : 4 * 36] for each in (([BOX], [[*BOX, 0.9]]), ([BOX], [])))
    assert (whole == drawing.RIGHT).all()
    on = (dashed == drawing.MISSED).all(axis=1)
    assert 0.3 < on.mean() < 0.8


def test_true_boxes_alone():
    png = drawing.boxes(GREY, np.array([BOX], np.float32), None, CLASSES)
    assert pixels(png).shape == (256, 256, 3)
    assert count(png, drawing.RIGHT) > 200


def test_words_stay_in_the_picture():
    edge = np.array([[3, 56, 0, 8, 64], [4, 0, 60, 4, 4], [5, 0, 0, 64, 64]], np.float32)
    png = pixels(drawing.boxes(GREY, edge, np.zeros((0, 6)), CLASSES))
    assert png.shape == (256, 256, 3)


@pytest.mark.parametrize("shape", [(64, 64, 1), (40, 200, 3), (300, 500, 1)])
def test_pictures_keep_whole_pixels(shape):
    png = pixels(drawing.mask(np.zeros(shape, np.uint8), np.zeros(shape[:2], np.uint8), CLASSES))
    factor = max(1, round(256 / shape[1]))
    assert png.shape == (shape[0] * factor, shape[1] * factor, 3)


def test_a_mask_covers_its_pixels_only_and_is_outlined():
    found, truth = np.zeros((64, 64), np.uint8), np.zeros((64, 64), np.uint8)
    found[8:20, 8:20], truth[40:50, 40:50] = 4, 2
    plain = pixels(drawing.mask(GREY, found, CLASSES))
    assert (plain[4 * 30, 4 * 30] == 60).all()
    assert (plain[4 * 9, 4 * 9] != 60).any()
    assert (plain[4 * 40, 4 * 40] == 60).all()
    outlined = pixels(drawing.mask(GREY, found, CLASSES, truth))
    assert (outlined[4 * 40, 4 * 40] == 255).all()
    assert (outlined[4 * 45, 4 * 45] == 60).all()


def test_patches_are_connected_and_never_across_the_edges():
    found = np.zeros((64, 64), np.uint8)
    found[5:9, 5:15] = 3
    found[9:13, 5:15] = 8  # touches, but is another class
    found[30:34, 0:5] = found[30:34, 60:64] = 3  # at both edges
    found[50:53, 20:23] = 1  # 9 pixels: too small for a word
    assert drawing.patches(found) == [(3, 6.5, 9.5), (8, 10.5, 9.5), (3, 31.5, 2.0), (3, 31.5, 61.5)]
    assert drawing.patches(np.zeros((8, 8), np.uint8)) == []


def test_a_winding_patch_is_one():
    found = np.zeros((16, 16), np.uint8)
    found[::4], found[:, -1] = 2, 2
    found[1:16:8, 0] = 2
    assert len(drawing.patches(found)) == 1
