"""Exercise 13: the release, the solution, and the wrong answers that its tests must reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestExercise(ExerciseTests):
    topic = "13_attention"
    points: ClassVar = {"add": [2]}
    gaps = 1
    least_wrong = 5
