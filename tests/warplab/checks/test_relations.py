"""The sentence on what all elements of a wrong output have in common."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.checks.relations import relation, stored

RNG = np.random.default_rng(7)
X, Y = (RNG.uniform(1, 9, 40).astype(np.float32) for _ in range(2))
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) ** 2
SUM = X + Y


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (2 * SUM, SUM, "every element is 2 times as large as the right one"),
        (-3 * SUM, SUM, "every element is -3 times as large as the right one"),
        (64 * SUM[:1], SUM[:1], "every element is 64 times as large as the right one"),
        (np.array(4000), np.array(2000), "every element is 2 times as large as the right one"),
        (SUM / 2, SUM, "every element is 1/2 of the right one"),
        (-SUM, SUM, "every element has the wrong sign"),
        (SUM + 1, SUM, "every element is too large by 1"),
        (np.arange(9) ** 2 - 3, np.arange(9) ** 2, "every element is too small by 3"),
        (SUM[::-1], SUM, "it is backwards: the first element holds what belongs to the last"),
        (np.roll(SUM, -1), SUM, "it is shifted: an element holds what belongs 1 place after it"),
        (np.roll(SUM, 2), SUM, "it is shifted: an element holds what belongs 2 places before it"),
        (SQUARE.T, SQUARE, "it is transposed: element [i, j] holds what belongs to [j, i]"),
        (TABLE.T.reshape(3, 4), TABLE, "it is transposed: element [i, j] holds what belongs to [j, i]"),
        (TABLE[::-1], TABLE, "the rows are in the opposite order"),
        (TABLE[:, ::-1], TABLE, "the columns are in the opposite order"),
        (X - Y, SUM, "x - y gives every element that was stored"),
        (Y - X, SUM, "y - x gives every element that was stored"),
        (X * Y, SUM, "x * y gives every element that was stored"),
        (X**Y, SUM, "x ** y gives every element that was stored"),
        (Y, SUM, "every element is the one of y"),
        (np.tile([4.0, 2.0], 8), np.tile([2.0, 4.0], 8), "of two values every element holds the other one"),
    ],
)
def test_a_plain_relation_is_said(got, expected, said):
    assert relation(got, expected, {"x": X, "y": Y, "out": None}) == said


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (X * X + Y, SUM),
        (SUM[:3] + 2, SUM[:3]),  # too few to tell
        (np.array([6]), np.array([3])),
        (SUM * 100, SUM),
        (np.full(40, np.nan, np.float32), SUM),
        (SUM + 0.37, SUM),
        (np.zeros(40, np.float32), SUM),
        (np.full(9, 5), np.full(9, 4)),  # the difference and the ratio of two numbers
        (np.arange(1, 9) ** 3, np.arange(1, 9)),
    ],
)
def test_without_one_nothing_is_said(got, expected):
    assert relation(got, expected, {"x": X, "y": Y, "out": None}) == ""


def test_a_multiple_may_be_off_by_the_tolerance():
    halves = (3 * SUM).astype(np.float16).astype(np.float32) + np.float32(0.01)
    said = "every element is 3 times as large as the right one"
    assert relation(halves, SUM, {}, rtol=1e-3, atol=0.02) == said
    assert relation(halves, SUM, {}) == ""
    assert relation(SUM * (1 + 1e-4), SUM, {}, rtol=1e-3) == ""


def test_integers_to_negative_powers_raise_nothing():
    x = np.array([1, 2, -3, 4])
    assert relation(x * 7 + 1, x - x, {"x": x, "y": -x}) == ""


EXACT = RNG.uniform(-140, 140, 300)
STEPS = np.clip(np.rint(EXACT), -127, 127).astype(np.int8)
RELU = np.maximum(EXACT, 0)
LIMIT = "is a limit missing, such as ReLU or a clip, or is it another?"
WRAPS = " What a byte cannot hold wraps around."


def steps(values, least=-127, most=127):
    return np.clip(values, least, most).astype(np.int8)


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (EXACT, RELU, f"only elements that should be 0 are wrong: {LIMIT}"),
        (
            EXACT.reshape(3, 100),
            np.clip(EXACT, -9, 9).reshape(3, 100),
            f"only elements that should be -9 or 9 are wrong: {LIMIT}",
        ),
        (steps(np.rint(EXACT)), steps(np.rint(EXACT), 0), f"only elements that should be 0 are wrong: {LIMIT}{WRAPS}"),
        (
            np.rint(EXACT).astype(int).astype(np.int8),
            STEPS,
            f"only elements that should be -127 or 127 are wrong: {LIMIT}{WRAPS}",
        ),
        (
            steps(np.trunc(EXACT)),
            STEPS,
            "each wrong element is nearer to 0 by 1: is it cut off in place of rounded to the nearest?",
        ),
        (
            steps(np.trunc(EXACT), 0),
            steps(STEPS, 0),
            "each wrong element is nearer to 0 by 1: is it cut off in place of rounded to the nearest?",
        ),
        (steps(np.floor(EXACT)), STEPS, "each wrong element is too small by 1: is it rounded to the nearest?"),
        (steps(np.ceil(EXACT)), STEPS, "each wrong element is too large by 1: is it rounded to the nearest?"),
        (
            steps(np.trunc(EXACT + 0.5)),
            STEPS,
            "only negative elements are wrong, nearer to 0 by 1: 0.5 added and cut off rounds positive ones alone",
        ),
        (
            np.arange(99) * 7 + 256 * (np.arange(99) % 3),
            np.arange(99) * 7,
            "each wrong element is off by a multiple of 256: are signed bytes taken for unsigned ones?",
        ),
        (
            SUM + np.float32(2**32) * RNG.normal(size=40).astype(np.float32),
            SUM,
            "wrong elements are some 2^32 times too large: does an unsigned number go below 0, where it wraps around?",
        ),
    ],
)
def test_how_results_were_stored(got, expected, said):
    assert stored(got, expected) == said


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (steps(np.rint(EXACT * 127 / 128)), STEPS),  # another scale
        (steps(np.rint(EXACT * 127 / 127.5)), STEPS),
        (steps(np.rint(EXACT) + RNG.integers(-1, 2, 300)), STEPS),
        (np.where(RELU == 0, RNG.normal(size=300), RELU), RELU),  # garbage, on both sides
        (np.where(RELU == 0, -1, RELU), RELU),  # one number
        (np.where(np.arange(300) == RELU.argmax(), 999, RELU), RELU),  # the largest alone
        (RELU + 1, RELU),
        (np.full(300, np.nan), RELU),
        (RELU[:5] - 1, RELU[:5]),
        (np.arange(99) * 256 + 512, np.arange(99) * 256),
        (SUM * 2**20, SUM),
    ],
)
def test_of_other_mistakes_nothing_is_said_on_storing(got, expected):
    assert stored(got, expected) == ""
