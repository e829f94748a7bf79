"""Exercise 05: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestTensorCores(ExerciseTests):
    topic = "05_tensor_cores"
    points: ClassVar = {
        "peaks": [1, 1, 2],
        "linear": [2, 2, 1],
        "pad": [1, 1],
        "any": [2, 1, 1],
        "sums": [1, 1, 2],
        "tiles": [2, 2],
        "relu": [1, 2, 1],
        "warpgroup": [2, 2],
        "ring": [1, 1, 1],
    }
    gaps = 14
    least_wrong = 189
