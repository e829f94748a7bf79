"""Exercise 11, third part: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestServing(ExerciseTests):
    topic = "11_serving"
    points: ClassVar = {"batcher": [2, 2, 2], "little": [1, 1, 1, 1]}
    gaps = 5
    least_wrong = 73
