"""Exercise 07: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

import pytest

from tests.support.exercise_harness import ExerciseTests

pytestmark = pytest.mark.tensorflow


class TestTraining(ExerciseTests):
    topic = "07_training"
    points: ClassVar = {
        "cycle": [1, 1, 1],
        "average": [2, 1, 1],
        "scaling": [1, 2, 1],
        "op": [1, 2, 2],
        "loop": [1, 1, 2],
        "sums": [1, 1, 2],
    }
    gaps = 13
    least_wrong = 110
