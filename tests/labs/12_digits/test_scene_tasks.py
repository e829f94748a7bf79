"""Detection and segmentation as the trainer sees them: batches, networks, losses and figures."""

from __future__ import annotations

import numpy as np
import pytest

from digits import networks
from digits.data import scenes
from digits.data.scene_drawing import SceneOptions
from digits.files import DigitsError
from digits.tasks import grid, masks
from digits.tasks.detection import EDGES_WEIGHT, Detection
from digits.tasks.segmentation import Segmentation
from digits.training.spec import RunSpec, Solver
from digits.training.task import prepare, task_of
from digits.workspace import Workspace
from tests.support.lazily import module

pytestmark = pytest.mark.tensorflow
keras, tf = module("keras"), module("tensorflow")

NETWORK = {"detection": "detectnet", "segmentation": "fcn"}
KINDS = tuple(NETWORK)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    made = {}
    for kind in KINDS:
        dataset = scenes.build(workspace, kind, counts={"train": 6, "validation": 3, "test": 0}, seed=2)
        made[kind] = task_of(dataset, RunSpec(dataset.id, {"name": NETWORK[kind], "filters": 4}, kind=kind))
    return made


def shifting(task):
    """The same task with augmentation."""
    solver = Solver(augment={"shift": 0.2})
    return type(task)(task.dataset, RunSpec(task.dataset.id, task.spec.network, solver, task.kind))


def test_tasks_are_found_by_kind(tasks):
    assert isinstance(tasks["detection"], Detection)
    assert isinstance(tasks["segmentation"], Segmentation)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_images_from_0_to_1_and_targets_of_as_many_rows(tasks, kind):
    images, targets = tasks[kind].batch("train", np.array([4, 1]), None)
    np.testing.assert_array_equal(images, prepare(tasks[kind].dataset.images("train")[[4, 1]]))
    assert {len(array) for array in targets.values()} == {2}


def test_targets_move_with_the_images(tasks):
    indices = np.arange(6)
    for kind, name in (("detection", "boxes"), ("segmentation", "mask")):
        plain, moving = tasks[kind], shifting(tasks[kind])
        _, still = plain.batch("train", indices, None)
        images, moved = moving.batch("train", indices, 3)
        assert (moved[name] != still[name]).any()
        images_again, moved_again = moving.batch("train", indices[::-1], 3)
        np.testing.assert_array_equal(images_again[::-1], images)
        np.testing.assert_array_equal(moved_again[name][::-1], moved[name])
        images_later, _ = moving.batch("train", indices, 4)
        assert (images_later != images).any()
        # Not augmented: validation, and training without an epoch.
        np.testing.assert_array_equal(moving.batch("train", indices, None)[0], plain.batch("train", indices, 3)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_loss_figures_and_gradients_of_a_new_network(tasks, kind):
    keras.utils.set_random_seed(0)
    task = tasks[kind]
    model = task.build()
    images, targets = task.batch("train", np.arange(4), None)
    with tf.GradientTape() as tape:
        outputs = model(images, training=True)
        loss = task.loss(targets, outputs)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert loss.dtype == tf.float32
    assert loss.shape == ()
    assert np.isfinite(loss)
    assert all(gradient is not None and np.isfinite(gradient).all() for gradient in gradients)
    sums = {name: float(value) for name, value in task.sums(targets, outputs).items()}
    assert set(task.measured(sums | {"count": 4.0})) <= set(task.figures)
    if task.keep_outputs:
        figures = task.validated(targets, [output.numpy() for output in outputs])
        assert set(figures) <= set(task.figures)
        assert task.main in figures


def test_the_detection_loss_by_hand(tasks):
    task = tasks["detection"]
    _, targets = task.batch("train", np.arange(2), None)
    wanted, edges, covered = (targets[name] for name in ("coverage", "edges", "covered"))
    said = np.random.default_rng(1).uniform(0.05, 0.95, wanted.shape).astype(np.float32)
    right = np.where(wanted == 1, said, 1 - said)
    focal = -((1 - right) ** 2 * np.log(right)).sum() / covered.sum()
    expected = focal + EDGES_WEIGHT * 4 * 0.25  # each of the four edges is a quarter of a cell off
    everywhere_off = edges + np.float32(0.25)
    assert float(task.loss(targets, [said, everywhere_off])) == pytest.approx(expected, rel=1e-4)
    sums = {name: float(value) for name, value in task.sums(targets, [said, everywhere_off]).items()}
    figures = task.measured(sums | {"count": 2.0})
    assert figures["coverage_loss"] == pytest.approx(focal, rel=1e-4)
    assert figures["box_loss"] == pytest.approx(1, rel=1e-4)


def test_outputs_that_are_the_targets_are_right_throughout(tasks):
    task = tasks["detection"]
    _, targets = task.batch("validation", np.arange(3), None)
    outputs = [targets["coverage"], targets["edges"]]
    assert float(task.loss(targets, outputs)) < 1e-4
    assert task.validated(targets, outputs) == {"mAP": 1.0, "mAP_coco": 1.0, "precision": 1.0, "recall": 1.0}


def test_a_scene_without_digits_has_a_finite_loss(tmp_path):
    workspace = Workspace(tmp_path)
    counts = {"train": 40, "validation": 1, "test": 0}
    dataset = scenes.build(workspace, "detection", counts=counts, options=SceneOptions(fewest=0, most=1))
    task = task_of(dataset, RunSpec(dataset.id, {"name": "detectnet"}, kind="detection"))
    _, targets = task.batch("train", np.arange(40), None)
    empty = np.flatnonzero(targets["covered"].sum(axis=(1, 2)) == 0)[:1]
    assert len(empty) == 1
    _, targets = task.batch("train", empty, None)
    loss = task.loss(targets, [np.full_like(targets["coverage"], 0.1), targets["edges"]])
    assert np.isfinite(loss)
    assert float(loss) > 0


def test_the_segmentation_loss_and_figures_by_numpy(tasks):
    task = tasks["segmentation"]
    _, targets = task.batch("train", np.arange(3), None)
    random = np.random.default_rng(2)
    outputs = random.random((*targets["mask"].shape, 11)) ** 4
    outputs = (outputs / outputs.sum(axis=-1, keepdims=True)).astype(np.float32)
    given = np.take_along_axis(outputs, targets["mask"][..., None], axis=-1)
    assert float(task.loss(targets, outputs)) == pytest.approx(-np.log(given.clip(1e-7)).mean(), rel=1e-4)
    sums = {name: float(value) for name, value in task.sums(targets, outputs).items()}
    counts = masks.confusion(targets["mask"], outputs.argmax(axis=-1), 11)
    figures = task.measured(sums | {"count": 3.0})
    assert figures == {"mean_iou": masks.mean_iou(counts), "pixel_accuracy": masks.pixel_accuracy(counts)}


def test_shapes_of_outputs():
    coverage, edges = networks.build("detectnet", (64, 48, 3), 7, {"filters": 4, "blocks": 1}).outputs
    assert tuple(coverage.shape) == (None, 16, 12, 7)
    assert tuple(edges.shape) == (None, 16, 12, 4)
    for skips in (0, 1, 2):
        model = networks.build("fcn", (64, 48, 1), 10, {"filters": 4, "skips": skips})
        assert tuple(model.outputs[0].shape) == (None, 64, 48, 11)
        assert sum(layer.name.startswith("skip_") for layer in model.layers) == skips
        np.testing.assert_allclose(np.sum(model(np.zeros((1, 64, 48, 1))), axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "image", "options", "said"),
    [
        ("detectnet", (62, 64, 1), {}, "multiples of 4; these have 62 × 64"),
        ("fcn", (64, 60, 1), {}, "multiples of 8; these have 64 × 60"),
        ("detectnet", (64, 64, 1), {"filters": 1}, "filters of the network detectnet must be a whole number from 2"),
        ("detectnet", (64, 64, 1), {"blocks": "3"}, "blocks of the network detectnet must be a whole number"),
        ("fcn", (64, 64, 1), {"skips": 3}, "skips of the network fcn must be a whole number from 0 to 2"),
    ],
)
def test_wrong_sizes_and_options_are_named(name, image, options, said):
    with pytest.raises(DigitsError, match=said):
        networks.build(name, image, 10, options)


def test_an_untrained_detector_says_little(tasks):
    keras.utils.set_random_seed(0)
    task = tasks["detection"]
    images, _ = task.batch("train", np.arange(2), None)
    coverage, edges = (output.numpy() for output in task.build()(images, training=False))
    for one_coverage, one_edges in zip(coverage, edges, strict=True):
        assert len(grid.detections(one_coverage, one_edges, 4, "cells", least=0.5)) == 0
