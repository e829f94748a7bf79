"""The draw within each class: shares held, nothing twice, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from digits.data.split import draw
from digits.files import DigitsError

LABELS = np.repeat([0, 1, 2], [100, 40, 3])


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.floats(0, 0.49),
    st.floats(0, 0.49),
    st.integers(0, 2**32),
)
def test_every_image_is_drawn_once_and_each_class_is_trained_on(labels, validation, test, seed):
    parts = draw(labels, validation, test, seed)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(len(labels)))
    assert set(np.array(labels)[parts["train"]]) == set(labels)


def test_shares_hold_within_each_class():
    parts = draw(LABELS, 0.25, 0.1, seed=1)
    assert [np.bincount(LABELS[parts[part]], minlength=3).tolist() for part in parts] == [
        [65, 26, 2],
        [25, 10, 1],
        [10, 4, 0],
    ]


def test_seed_decides():
    first, again, other = (draw(LABELS, 0.25, 0.25, seed)["test"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert set(first) != set(other)


def test_another_class_does_not_change_the_draw():
    alone = draw(np.zeros(100, int), 0.25, 0.25, seed=1)
    beside = draw(LABELS, 0.25, 0.25, seed=1)
    assert set(alone["test"]) == {index for index in beside["test"] if index < 100}


def test_parts_are_not_in_the_order_of_classes():
    train = LABELS[draw(LABELS, 0.25, 0.25, seed=1)["train"]]
    assert not np.array_equal(train, np.sort(train))


def test_class_of_one_image_is_trained_on():
    assert [len(part) for part in draw([0], 0.9, 0.05, seed=0).values()] == [1, 0, 0]


@pytest.mark.parametrize("shares", [(0.5, 0.5), (-0.1, 0.2), (1.0, 0.0), (float("nan"), 0.1)])
def test_shares_that_leave_nothing_are_refused(shares):
    with pytest.raises(DigitsError, match="left to train on"):
        draw(LABELS, *shares, seed=0)


def test_negative_seed_is_refused():
    with pytest.raises(DigitsError, match="Choose 0 or more"):
        draw(LABELS, 0.1, 0.1, seed=-1)
