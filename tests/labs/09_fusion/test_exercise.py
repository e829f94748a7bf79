"""Exercise 09: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestFusion(ExerciseTests):
    topic = "09_fusion"
    points: ClassVar = {
        "cbr": [1, 2, 1],
        "siblings": [1, 2],
        "into": [1, 2],
        "concats": [1, 2],
        "threshold": [1, 1, 2],
        "quantise": [1, 1, 1],
        "dot": [2, 1, 1],
        "bound": [1, 1],
        "buffers": [1, 1, 2],
    }
    gaps = 12
    least_wrong = 255
