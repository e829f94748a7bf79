"""Exercise 12: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

import pytest

from tests.support.exercise_harness import ExerciseTests

pytestmark = pytest.mark.tensorflow


class TestDigits(ExerciseTests):
    topic = "12_digits"
    points: ClassVar = {
        "curves": [1, 1, 1, 2],
        "numbers": [1],
        "batches": [1, 1],
        "softmax": [1, 1],
        "resume": [1, 1],
        "choose": [1, 2, 2],
        "overlaps": [2, 1, 1],
        "kept": [1],
        "overlay": [2, 1, 1],
        "confusion": [1, 2, 1],
    }
    gaps = 19
    least_wrong = 212
