"""What a classifier gets right and wrong, counted."""

import warnings

import numpy as np
import pytest

from digits.look.confusion import (
    accuracy,
    answers,
    confusion_matrix,
    f1,
    interval,
    mean_loss,
    precision,
    recall,
    top,
    worst,
)
from tests.support.lazily import module
from tests.support.random_inputs import generator

reference, statistics = module("sklearn.metrics"), module("scipy.stats")


def test_rows_are_the_truth_and_columns_the_answers():
    assert confusion_matrix([0, 0, 1, 2], [0, 1, 1, 1], 3).tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 0]]


def test_matrix_precision_recall_and_f1_are_scikit_learns():
    rng = generator()
    labels, predicted = rng.integers(0, 7, 500), rng.integers(0, 7, 500)
    matrix = confusion_matrix(labels, predicted, 7)
    assert np.array_equal(matrix, reference.confusion_matrix(labels, predicted, labels=range(7)))
    expected = reference.precision_recall_fscore_support(labels, predicted, labels=range(7))
    for ours, theirs in zip((precision(matrix), recall(matrix), f1(matrix)), expected, strict=False):
        np.testing.assert_allclose(ours, theirs)
    assert accuracy(matrix) == pytest.approx((labels == predicted).mean())


def test_a_class_that_is_never_answered_or_never_there_has_no_share():
    matrix = confusion_matrix([0, 0, 2], [0, 0, 0], 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(precision(matrix)).tolist() == [False, True, True, True]
        assert np.isnan(recall(matrix)).tolist() == [False, True, False, True]
        assert np.isnan(f1(matrix)).tolist() == [False, True, False, True]
        assert np.isnan(accuracy(confusion_matrix([], [], 4)))


@pytest.mark.parametrize(("labels", "predicted"), [([0, 3], [0, 0]), ([0, 0], [-1, 0]), ([0], [0, 1])])
def test_labels_outside_or_of_another_length_are_refused(labels, predicted):
    with pytest.raises(ValueError, match=r"lies outside|both must be"):
        confusion_matrix(labels, predicted, 3)


def test_top_names_the_most_probable_first_and_what_is_no_number_last():
    probabilities = np.array([[0.1, 0.6, 0.3], [np.nan, 0.0, 0.2]], np.float32)
    best = top(probabilities, 2)
    assert [[c for c, _ in row] for row in best] == [[1, 2], [2, 1]]
    assert best[0][0][1] == pytest.approx(0.6)
    assert len(top(probabilities, 5)[0]) == 3
    assert answers(probabilities).tolist() == [1, 2]


def test_worst_are_the_wrong_answers_that_gave_the_truth_least():
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.99, 0.01], [np.nan, np.nan]])
    labels = np.array([0, 1, 1, 1])
    # The network that answers no number gives the truth nothing.
    assert worst(probabilities, labels).tolist() == [3, 2, 1]
    assert worst(probabilities, labels, most=1).tolist() == [3]
    assert worst(probabilities[:1], labels[:1]).size == 0


def test_mean_loss_is_cross_entropy_in_nats():
    assert mean_loss(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])) == pytest.approx(
        -(np.log(0.5) + np.log(0.75)) / 2
    )
    assert np.isnan(mean_loss(np.zeros((0, 2)), np.zeros(0, np.int64)))
    assert mean_loss(np.array([[0.0, 1.0]]), np.array([0])) == pytest.approx(-np.log(1e-12))


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (261, 269), (269, 269), (0, 40), (5, 10), (97, 100)])
def test_interval_is_scipys_wilson_interval(right, count):
    expected = statistics.binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert interval(right, count) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_interval_without_images_is_none():
    assert np.isnan(interval(0, 0)).all()
