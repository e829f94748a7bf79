"""What is made of a model's answers about scenes: boxes, masks, figures, and where it is most wrong."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from digits.files import DigitsError
from digits.look import scene_answers
from digits.workspace import Workspace

helpers = importlib.import_module("tests.labs.12_digits.scenes_for_tests")
BLIND = (2, 7)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    return {kind: helpers.small_scenes(workspace, kind) for kind in scene_answers.KINDS}


def test_a_detector_that_knows_all_finds_all(datasets):
    answers = scene_answers.ask(helpers.Knowing(datasets["detection"]), datasets["detection"])
    assert len(answers) == 10
    found = answers.boxes("suppress")
    figures = scene_answers.detection_figures(answers, found, 0.5)
    assert figures.whole == {"mAP": 1.0, "mAP_coco": 1.0, "precision": 1.0, "recall": 1.0}
    there = np.concatenate([boxes[:, 0] for boxes in answers.truth])
    for label, (name, boxes, by_voc, by_coco) in enumerate(figures.rows):
        assert (name, boxes) == (str(label), int((there == label).sum()))
        assert [by_voc, by_coco] == [1.0, 1.0] if boxes else np.isnan([by_voc, by_coco]).all()
    assert (scene_answers.mistakes(answers, scene_answers.sure(found, 0.5)) == 0).all()


def test_scenes_that_a_detector_does_not_see_are_its_mistakes(datasets):
    dataset = datasets["detection"]
    answers = scene_answers.ask(helpers.Knowing(dataset, blind=BLIND), dataset)
    found = answers.boxes("group")
    missed = {index: len(answers.truth[index]) for index in BLIND}
    wrong = scene_answers.mistakes(answers, found)
    assert {int(index): int(wrong[index]) for index in np.flatnonzero(wrong)} == missed
    figures = scene_answers.detection_figures(answers, found, 0.5)
    there = sum(len(boxes) for boxes in answers.truth)
    assert figures.whole["precision"] == 1.0
    assert figures.whole["recall"] == pytest.approx(1 - sum(missed.values()) / there)


def test_a_score_that_is_not_reached_is_not_shown(datasets):
    answers = scene_answers.ask(helpers.Knowing(datasets["detection"]), datasets["detection"])
    found = answers.boxes("group")  # all with a score of 0.9
    figures = scene_answers.detection_figures(answers, found, 0.95)
    assert (figures.whole["mAP"], figures.whole["recall"], figures.whole["precision"]) == (1.0, 0.0, 0.0)
    assert sum(map(len, scene_answers.sure(found, 0.95))) == 0
    assert len(answers.boxes("cells")[0]) > len(found[0])


def test_a_segmenter_that_knows_all_and_one_that_is_blind(datasets):
    dataset = datasets["segmentation"]
    knowing = scene_answers.ask(helpers.Knowing(dataset), dataset)
    figures = scene_answers.segmentation_figures(knowing)
    assert figures.whole["mean_iou"] == figures.whole["pixel_accuracy"] == 1.0
    assert figures.rows[0][0] == "ground"
    assert sum(pixels for _, pixels, _ in figures.rows) == knowing.truth.size
    blind = scene_answers.ask(helpers.Knowing(dataset, blind=tuple(range(10))), dataset)
    figures = scene_answers.segmentation_figures(blind)
    ground = (knowing.truth == 0).mean()
    assert figures.whole["pixel_accuracy"] == figures.whole["ground"] == pytest.approx(ground)
    assert figures.whole["mean_iou"] < 0.3
    np.testing.assert_array_equal(scene_answers.mistakes(blind), (knowing.truth > 0).sum(axis=(1, 2)))


def test_fewer_scenes_and_another_part(datasets):
    dataset = datasets["detection"]
    assert len(scene_answers.ask(helpers.Knowing(dataset), dataset, most=3)) == 3
    assert len(scene_answers.ask(helpers.Knowing(dataset, "test"), dataset, "test")) == 2


def test_images_that_nobody_labelled(datasets):
    dataset = datasets["detection"]
    answers = scene_answers.of_images(helpers.Knowing(dataset), dataset, np.array(dataset.images("validation")[:1]))
    assert answers.truth is None
    assert len(answers.boxes()[0]) == (dataset.boxes("validation")[0, :, 0] >= 0).sum()


def test_a_network_of_another_kind_is_named(datasets):
    with pytest.raises(DigitsError, match="The network has no output 'coverage': it is none for detection"):
        scene_answers.ask(helpers.Knowing(datasets["segmentation"]), datasets["detection"])


@pytest.mark.parametrize("kind", scene_answers.KINDS)
def test_a_network_of_another_dataset_is_named(datasets, tmp_path, kind):
    dataset = datasets[kind]

    class Another(helpers.Knowing):
        def predict(self, images, progress=None):
            return {name: output[..., :-1] for name, output in super().predict(images, progress).items()}

    with pytest.raises(DigitsError, match=r"output '\w+' is 16 × 16 × 9|output '\w+' is 64 × 64 × 10"):
        scene_answers.ask(Another(dataset), dataset)


@pytest.mark.parametrize("kind", scene_answers.KINDS)
def test_a_network_that_diverged_is_not_taken_for_one_that_sees_nothing(datasets, kind):
    dataset = datasets[kind]

    class Diverged(helpers.Knowing):
        def predict(self, images, progress=None):
            return {name: output * np.nan for name, output in super().predict(images, progress).items()}

    with pytest.raises(DigitsError, match="its training has diverged"):
        scene_answers.ask(Diverged(dataset), dataset)
