"""Exercise 11, second part: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestOverlap(ExerciseTests):
    topic = "11_overlap"
    points: ClassVar = {"crop": [2, 1, 1], "overlap": [2, 1], "stages": [1, 2]}
    gaps = 4
    least_wrong = 80
