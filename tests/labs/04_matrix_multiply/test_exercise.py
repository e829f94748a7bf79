"""Exercise 04: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestMatrixMultiply(ExerciseTests):
    topic = "04_matrix_multiply"
    points: ClassVar = {
        "strides": [1, 2],
        "distances": [2, 2, 1],
        "update": [2, 2, 1],
        "linear": [2, 3, 1],
        "turned": [2, 2, 1],
        "roof": [1, 1, 1, 1],
        "rule": [1, 2],
    }
    gaps = 13
    least_wrong = 163
