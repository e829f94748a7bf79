"""Exercise 11: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestServing(ExerciseTests):
    topic = "11_serving"
    points: ClassVar = {
        "figures": [1, 1, 1, 1],
        "shares": [1],
        "centre": [2, 2, 1],
        "crop": [2, 1, 1],
        "overlap": [2, 1],
        "stages": [1, 2],
        "batcher": [2, 2, 2],
        "little": [1, 1, 1, 1],
    }
    gaps = 15
    least_wrong = 231
